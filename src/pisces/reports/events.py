"""Runs as TensorBoard events."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

from pisces.errors import UserError
from pisces.experiments.progress import Progress

EVERY = 20
"""Losses are written once per this many iterations."""


class EventLog:
    """Writes losses and solved tasks to a folder; with None for a folder it writes nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._writer: Any = None
        if folder is None:
            return
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise UserError("--tensorboard needs an extra: pip install 'pisces-rl[tensorboard]'") from error
        self._writer = SummaryWriter(str(folder))

    def __enter__(self) -> EventLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.close()

    def update(self, progress: Progress) -> None:
        """Writes what is new."""
        if self._writer is None:
            return
        if progress.iteration % EVERY == 0:
            for name, value in progress.losses.items():
                self._writer.add_scalar(f"loss/{name}", value, progress.iteration)
        for name, value in (progress.evaluation or {}).items():
            if name.endswith("solved_percent"):
                self._writer.add_scalar(f"solved/{name}", value, progress.iteration)
