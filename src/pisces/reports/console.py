"""What a terminal shows while runs are under way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table

from pisces.experiments.progress import Progress


class RunDisplay:
    """Live bars, one per run, with the newest losses and solved tasks; plain lines where there is no terminal."""

    def __init__(self, names: list[str], console: Console | None = None) -> None:
        self._console = console or Console()
        self._names = names
        self._told: dict[int, int] = {}
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
        if self._console.is_terminal:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._bars.stop()

    def update(self, index: int, progress: Progress) -> None:
        """Shows the progress of one run."""
        fields: dict[str, Any] = {}
        if progress.losses:
            fields["losses"] = "  ".join(f"{name} {value:.3f}" for name, value in progress.losses.items() if value)
        if progress.evaluation is not None:
            fields["solved"] = evaluation_text(progress.evaluation)
            at = progress.evaluation.get("iteration", progress.iteration)
            if not self._console.is_terminal and self._told.get(index) != at:
                self._told[index] = at
                self._console.print(f"{self._names[index]}: iteration {at}: {fields['solved']}", soft_wrap=True)
        self._bars.update(self._ids[index], completed=progress.iteration, total=progress.total, **fields)


def solved_text(row: Mapping[str, Any]) -> str:
    """Says which share of the unseen tasks an evaluation found solved."""
    parts = []
    for name, value in row.items():
        if name.endswith("test_solved_percent"):
            color = name.removesuffix("test_solved_percent").removesuffix("_")
            parts.append(f"{color + ' ' if color else ''}{value:.1f} % of unseen tasks solved")
    return ", ".join(parts)


def evaluation_text(row: Mapping[str, Any]) -> str:
    """Says in a few words what an evaluation of any experiment found."""
    if "test_return" in row:
        return f"return {row['train_return']:.0f} on training videos, {row['test_return']:.0f} on unseen ones"
    if "train_levels_percent" in row:
        kind = "test" if "test_levels_percent" in row else "validation"
        unseen = row[f"{kind}_levels_percent"]
        return f"{row['train_levels_percent']:.1f} % of training levels solved, {unseen:.1f} % of {kind} levels"
    return solved_text(row)


class LiveTable:
    """A table that is drawn again and again while it is entered, if there is a terminal to draw it on."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=2, transient=True)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def show(self, make: Callable[[], Table]) -> None:
        """Draws what `make` returns; without a terminal it isn't called."""
        if self._console.is_terminal:
            self._live.update(make())
