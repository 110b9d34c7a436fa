"""A progress bar for long solves: how many orders of magnitude the certified error still has to fall."""

from __future__ import annotations

import math
from types import TracebackType
from typing import Self


class ProgressBar:
    """Shows rounds and the certified error; use as a context manager that gives the function to call."""

    def __init__(self, tolerance: float) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._tolerance = tolerance
        self._first: float | None = None
        self.bar = Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), transient=True)
        """The bar that is drawn."""
        self._task = self.bar.add_task("first round", total=1.0)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def __call__(self, rounds: int, error: float) -> None:
        """Moves the bar."""
        self._first = self._first or max(error, 2 * self._tolerance)
        whole = math.log(self._first / self._tolerance)
        done = 1 - math.log(max(error, self._tolerance) / self._tolerance) / whole
        self.bar.update(self._task, completed=max(0.0, done), description=f"round {rounds}, error {error:.1e}")
