"""A progress bar for long solves: how many orders of magnitude the certified error still has to fall."""

from __future__ import annotations

import math
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress


class ProgressBar:
    """Shows rounds and the certified error; use as a context manager that gives the function to call."""

    def __init__(self, tolerance: float) -> None:
        self._tolerance = tolerance
        self._first: float | None = None
        self._bar: RichProgress | None = None

    def __enter__(self) -> ProgressBar:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._bar = Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), transient=True)
        self._task = self._bar.add_task("first round", total=1.0)
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, rounds: int, error: float) -> None:
        """Moves the bar."""
        self._first = self._first or max(error, 2 * self._tolerance)
        whole = math.log(self._first / self._tolerance)
        done = 1 - math.log(max(error, self._tolerance) / self._tolerance) / whole
        if self._bar is not None:
            text = f"round {rounds}, error {error:.1e}"
            self._bar.update(self._task, completed=min(1.0, max(0.0, done)), description=text)
