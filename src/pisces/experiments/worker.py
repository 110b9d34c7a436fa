"""What runs inside a worker process of a sweep."""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection

from pisces.experiments.interrupts import interrupt_once
from pisces.experiments.progress import Progress
from pisces.experiments.registry import experiment
from pisces.experiments.store import LockedError

REPORT_SECONDS = 0.5
PARENT_SECONDS = 1.0


@dataclass(frozen=True)
class Finished:
    """The run has its result."""


@dataclass(frozen=True)
class Taken:
    """Another process is busy with the run."""


@dataclass(frozen=True)
class Failed:
    """The run raised an error."""

    reason: str
    """The traceback."""


def work(connection: Connection, out: str, parent: int) -> None:
    """Runs the jobs that come over the connection, one after the other, until it closes or the parent dies."""
    threading.Thread(target=end_with_parent, args=(parent,), daemon=True).start()
    signal.signal(signal.SIGINT, interrupt_once)
    try:
        while True:
            name, values = connection.recv()
            connection.send(_run(name, values, out, connection))
    except (KeyboardInterrupt, EOFError):
        return


def _run(name: str, values: dict[str, object], out: str, connection: Connection) -> Finished | Taken | Failed:
    last = 0.0

    def listen(progress: Progress) -> None:
        nonlocal last
        if progress.evaluation is not None or time.monotonic() - last > REPORT_SECONDS:
            last = time.monotonic()
            connection.send(progress)

    try:
        chosen = experiment(name)
        chosen.run(chosen.config_from_dict(values), out, [listen])
    except LockedError:
        return Taken()
    except Exception:
        return Failed(traceback.format_exc())
    return Finished()


def end_with_parent(parent: int) -> None:
    """Ends this process when its parent is gone; to be run in a thread."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os._exit(1)
