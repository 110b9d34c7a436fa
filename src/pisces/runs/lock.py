"""Locks between processes, with a heartbeat that shows whether a lock is held."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pisces.errors import UserError

HEARTBEAT_SECONDS = 2.0
"""Time between two heartbeats of a lock's holder."""
STALE_SECONDS = 10.0
"""Age from which a heartbeat no longer counts."""
WAIT_SECONDS = 0.5
"""Time between two attempts of `wait_for_lock`."""

T = TypeVar("T")


class LockedError(UserError):
    """Another process holds the lock."""


@dataclass(frozen=True)
class Lock:
    """A lock that one process at a time can hold; the system releases it when that process dies.

    The lock file stays after the release: removing it could let two processes hold locks on two files of one name.
    """

    path: Path
    """The lock file. The heartbeat is a file beside it, which exists while the lock is held."""
    subject: str
    """What the lock protects, for the error message."""

    @property
    def busy(self) -> bool:
        """Whether a process seems to hold the lock: a guess that takes no lock and creates no files.

        It is wrong for up to `STALE_SECONDS` after the holder was killed, and if clocks disagree. Only `hold` decides.
        """
        try:
            modified = self._heartbeat.stat().st_mtime
        except OSError:  # there is no heartbeat, nor perhaps a folder
            return False
        return abs(time.time() - modified) < STALE_SECONDS

    @contextmanager
    def hold(self, *, wait: bool = False) -> Iterator[None]:
        """Holds the lock within the context.

        Args:
            wait: whether to wait for a process that holds it.

        Raises:
            LockedError: if another process holds the lock, unless `wait`.
        """
        import filelock  # takes a tenth of a second, which commands that take no lock save

        lock = filelock.FileLock(self.path)
        try:
            lock.acquire(blocking=wait)
        except filelock.Timeout as error:
            raise LockedError(f"{self.subject} is in use by another process") from error
        released = threading.Event()
        try:
            self._heartbeat.touch()
            threading.Thread(target=self._beat, args=(released,), daemon=True).start()
            yield
        finally:
            released.set()
            self._heartbeat.unlink(missing_ok=True)  # before the release, or it could be the next holder's
            lock.release()

    @property
    def _heartbeat(self) -> Path:
        return self.path.with_name(f"{self.path.name}.heartbeat")

    def _beat(self, released: threading.Event) -> None:
        while not released.wait(HEARTBEAT_SECONDS):
            # A missed heartbeat makes others try to take the lock, which fails.
            with suppress(OSError):
                os.utime(self._heartbeat)


def wait_for_lock(work: Callable[[], T]) -> T:
    """Calls `work`, again and again while it raises LockedError, and returns its value."""
    while True:
        try:
            return work()
        except LockedError:
            time.sleep(WAIT_SECONDS)
