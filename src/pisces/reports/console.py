"""What a terminal shows while runs are under way."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars


class Progress(Protocol):
    """How far a run has come; see `pisces.experiments.jumping_run.Progress`."""

    @property
    def iteration(self) -> int:
        """Iterations done."""

    @property
    def total(self) -> int:
        """Iterations of the whole run."""

    @property
    def losses(self) -> Any:
        """The last iteration's losses."""

    @property
    def evaluation(self) -> dict[str, Any] | None:
        """The newest evaluation."""


class RunDisplay:
    """Live bars, one per run, with the newest losses and solved tasks; plain lines where there is no terminal."""

    def __init__(self, names: list[str], console: Console | None = None) -> None:
        self._console = console or Console()
        self._names = names
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[losses]}  {task.fields[solved]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=self._console,
        )
        self._ids = [self._bars.add_task(name, total=None, losses="", solved="") for name in names]

    def __enter__(self) -> RunDisplay:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def update(self, index: int, progress: Progress) -> None:
        """Shows the progress of one run."""
        fields: dict[str, Any] = {}
        if progress.losses is not None:
            fields["losses"] = f"imitation {progress.losses.imitation:.3f}  auxiliary {progress.losses.auxiliary:.3f}"
        if progress.evaluation is not None:
            fields["solved"] = solved_text(progress.evaluation)
            if not self._console.is_terminal:
                row = progress.evaluation
                self._console.print(f"{self._names[index]}: iteration {row['iteration']}: {fields['solved']}")
        self._bars.update(self._ids[index], completed=progress.iteration, total=progress.total, **fields)


def solved_text(row: dict[str, Any]) -> str:
    """Says which share of the unseen tasks an evaluation found solved."""
    parts = []
    for name, value in row.items():
        if name.endswith("test_solved_percent"):
            color = name.removesuffix("test_solved_percent").removesuffix("_")
            parts.append(f"{color + ' ' if color else ''}{value:.1f} % of unseen tasks solved")
    return ", ".join(parts)
