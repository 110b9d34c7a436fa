"""Threads for compiled code that releases the interpreter lock, in chunks short enough for Ctrl-C to interrupt."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

from pisces.errors import UserError

CHUNK = 1 << 17
"""Number of pairs per call into compiled code; Python can be interrupted between calls."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers:
    """Runs a function on each item of a list, in threads if there are several items."""

    def __init__(self, threads: int | None, chunk: int) -> None:
        if threads is not None and threads < 1:
            raise UserError(f"expected at least 1 thread, got {threads}")
        self._threads = threads or min(8, usable_cores())
        self._chunk = chunk
        self._stopped = threading.Event()
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def chunks(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Splits a range into chunks; ends early once the workers are stopped."""
        for low in range(start, stop, self._chunk):
            if self._stopped.is_set():
                return
            yield low, min(low + self._chunk, stop)

    def run(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Returns the results in the order of the items."""
        if self._threads == 1 or len(items) < 2:
            return [work(item) for item in items]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads)
        return list(self._pool.map(work, items))


def usable_cores() -> int:
    """The number of cores that this process may use; of all cores where the system does not say, as on macOS."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
