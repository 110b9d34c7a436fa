"""Tasks for worker processes."""

import os
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Square:
    number: int

    def __call__(self, report):
        report(f"squaring {self.number}")
        return self.number**2


def fail(report):
    raise ConnectionError("no luck")


def die(report):
    os._exit(9)


def save_when_interrupted(report):
    try:
        report(os.getpid())
        time.sleep(60)
    except KeyboardInterrupt:
        report("saved")
        raise


class Unreadable:
    """Can be pickled, but not unpickled."""

    def __reduce__(self):
        return int, ("x",)
