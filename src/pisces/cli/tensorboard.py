"""Runs as TensorBoard events."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

from pisces.errors import import_extra
from pisces.runs.progress import Progress

EVERY = 20
"""Losses are written once per this many iterations."""


class EventLog:
    """Writes losses and evaluations to a folder; None writes nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._writer: Any = None
        if folder is not None:
            import_extra("tensorboard", "tensorboard")

    def __enter__(self) -> EventLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.close()

    def update(self, progress: Progress) -> None:
        """Writes what is new; the first call creates the file. Required runs have folders of their own."""
        if self._folder is None or progress.requirement:
            return
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self._folder))
        if progress.iteration % EVERY == 0:
            for name, value in progress.losses.items():
                self._writer.add_scalar(f"loss/{name}", value, progress.iteration)
        for name, value in (progress.evaluation or {}).items():
            if isinstance(value, int | float):
                self._writer.add_scalar(f"evaluation/{name}", value, progress.iteration)
