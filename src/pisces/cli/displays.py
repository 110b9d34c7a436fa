"""Live displays of runs, sweeps and searches in the terminal."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from pisces.runs.job import Job
from pisces.runs.progress import Progress
from pisces.runs.sweep import SweepState
from pisces.runs.tuning_config import TrialSummary, Tuning, TuningConfig

Describe = Callable[[Mapping[str, Any]], str]
"""An experiment's `describe`."""
SHOWN = 10
"""Trials in the summary."""
PAUSE = 2.0
"""Seconds between two lines about a stage where there is no terminal."""
BAR_WIDTH, MIN_WIDTH = 20, 12
"""Columns of a bar, and of a text that is cut."""


class CutColumn(ProgressColumn):
    """Text that is cut where a narrow terminal has no room for it, unlike the bar and the time left."""

    def __init__(self, name: str, share: float) -> None:
        super().__init__()
        self._name, self._share = name, share

    def render(self, task: Task) -> Text:
        """The task's text, at most a share of the terminal wide."""
        text = task.description if self._name == "description" else task.fields[self._name]
        cut = Text(text, no_wrap=True, overflow="ellipsis")
        cut.truncate(max(MIN_WIDTH, int(self._share * shutil.get_terminal_size().columns)), overflow="ellipsis")
        return cut


def time_left(seconds: float) -> str:
    """Returns a duration in words of a sensible unit: 40 s, 12 min or 3.5 h left."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s left"
    return f"{seconds / 60:.0f} min left" if seconds < 5400 else f"{seconds / 3600:.1f} h left"


class Display:
    """Something that is drawn while it is entered, if there is a terminal to draw it on."""

    def __init__(self, console: Console, drawn: Bars | Live) -> None:
        self._console, self._drawn = console, drawn

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._drawn.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._drawn.stop()


def run_name(name: str, progress: Progress | None) -> str:
    """A run's name, with the run that is done for it first."""
    return f"{name}: first {progress.requirement}" if progress is not None and progress.requirement else name


class RunDisplay(Display):
    """Live bars, one per run, with the newest losses and evaluation; plain lines where there is no terminal."""

    def __init__(self, names: list[str], describe: Describe, console: Console | None = None) -> None:
        console = console or Console()
        self._describe, self._names = describe, names
        self._shown: set[tuple[int, str, int]] = set()
        self._runs: dict[int, str] = {}
        self._bars = Bars(
            CutColumn("description", 0.3),
            BarColumn(BAR_WIDTH),
            TextColumn("{task.fields[share]}", markup=False),
            TextColumn("{task.fields[left]}", markup=False),
            CutColumn("words", 0.3),
            console=console,
        )
        super().__init__(console, self._bars)
        fresh: dict[str, Any] = {"share": "starting", "left": "", "losses": "", "evaluation": "", "words": ""}
        self._ids = [self._bars.add_task(name, total=None, **fresh) for name in names]

    def update(self, index: int, progress: Progress) -> None:
        """Shows the progress of one run, or of one that it needs first."""
        name = run_name(self._names[index], progress)
        if self._runs.setdefault(index, progress.requirement) != progress.requirement:
            self._runs[index] = progress.requirement
            self._bars.reset(self._ids[index], losses="", evaluation="")
        fields: dict[str, Any] = {"description": name}
        if progress.losses:
            fields["losses"] = "  ".join(f"{name} {value:.3f}" for name, value in progress.losses.items() if value)
        if progress.evaluation is not None:
            fields["evaluation"] = self._describe(progress.evaluation)
            at = progress.evaluation.get("iteration", progress.iteration)
            shown_now = (index, progress.requirement, at)
            if not self._console.is_terminal and shown_now not in self._shown:
                self._shown.add(shown_now)
                self._console.print(f"{name}: iteration {at}: {fields['evaluation']}", soft_wrap=True)
        task = self._bars.tasks[index]
        shown = {name: fields.get(name, task.fields[name]) for name in ("evaluation", "losses")}
        fields["words"] = "  ".join(filter(None, shown.values()))  # the evaluation first: the end is cut off
        fields["share"] = f"{100 * progress.iteration / progress.total:.0f} %"
        fields["left"] = "" if task.time_remaining is None else time_left(task.time_remaining)
        self._bars.update(self._ids[index], completed=progress.iteration, total=progress.total, **fields)


class StageDisplay(Display):
    """A bar for the newest stage; where there is no terminal, a line every few seconds."""

    def __init__(self, console: Console) -> None:
        self._bars = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(BAR_WIDTH),
            MofNCompleteColumn(),
            console=console,
            transient=True,
        )
        super().__init__(console, self._bars)
        self._bar = self._bars.add_task("starting", total=None)
        self._shown = time.monotonic()

    def update(self, stage: str, done: int, total: int) -> None:
        """Shows how much of a stage is done."""
        self._bars.update(self._bar, description=stage, completed=done, total=total)
        if not self._console.is_terminal and time.monotonic() - self._shown > PAUSE:
            self._shown = time.monotonic()
            self._console.print(f"{stage}: {done} of {total}")


class LiveTable(Display):
    """A table or picture that is drawn again and again while it is entered, if there is a terminal to draw it on."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, refresh_per_second=2, transient=True)
        super().__init__(console, self._live)

    def show(self, make: Callable[[], RenderableType]) -> None:
        """Draws what `make` returns; without a terminal it isn't called."""
        if self._console.is_terminal:
            self._live.update(make())


class SweepDisplay(LiveTable):
    """A live table of a sweep; where there is no terminal, one line per finished run."""

    def __init__(self, jobs: Sequence[Job], describe: Describe, console: Console) -> None:
        super().__init__(console)
        self._jobs, self._describe = jobs, describe
        self._started = time.monotonic()
        self._shown = 0

    def update(self, state: SweepState) -> None:
        """Shows the state of the sweep."""
        self.show(lambda: self._table(state))
        for index in state.ran[self._shown :]:
            self._console.print(f"{len(state.done)}/{state.total} {self._name(index)} finished", soft_wrap=True)
        self._shown = len(state.ran)

    def _table(self, state: SweepState) -> Table:
        table = Table("run", "progress", "newest evaluation", title=self._headline(state), title_justify="left")
        for index, progress in state.running.items():
            share = "starting" if progress is None else f"{100 * progress.iteration / progress.total:.0f} %"
            newest = "" if progress is None or progress.evaluation is None else self._describe(progress.evaluation)
            table.add_row(run_name(self._name(index), progress), share, newest)
        for index, path in state.failed.items():
            table.add_row(self._name(index), "failed", str(path))
        return table

    def _headline(self, state: SweepState) -> str:
        hours = (time.monotonic() - self._started) / 3600
        # Runs under way count by their share, so that the rate is known before the first one ends.
        shares = sum(p.iteration / p.total for p in state.running.values() if p is not None)
        rate = (len(state.ran) + shares) / max(hours, 1e-9)
        left = state.total - len(state.done) - len(state.failed) - shares
        known = shares + len(state.ran) > 0
        remaining = time_left(3600 * left / rate) if known and rate > 0 else "time left unknown"
        return (
            f"{len(state.done)} of {state.total} done, {len(state.running)} running, {len(state.failed)} failed, "
            f"{rate:.1f} runs per hour, {remaining}"
        )

    def _name(self, index: int) -> str:
        config: Any = self._jobs[index].config
        return f"{config.label}, seed {config.seed}"


def sweep_summary(jobs: Sequence[Job], state: SweepState) -> str:
    """Returns a sweep's outcome in one line, with the files of failures."""
    text = f"{len(state.done)} of {len(jobs)} runs done, {len(state.ran)} of them now"
    if state.failed:
        text += f"; {len(state.failed)} failed: " + ", ".join(map(str, state.failed.values()))
    return text


class TuningDisplay(LiveTable):
    """A live headline and the trials under way; where there is no terminal, one line per trial that has ended."""

    def __init__(self, config: TuningConfig, trials: int, console: Console) -> None:
        super().__init__(console)
        self._config, self._trials = config, trials
        self._started = time.monotonic()
        self._shown: set[int] | None = None

    def update(self, state: Tuning) -> None:
        """Shows the state of the study."""
        self.show(lambda: self._table(state))
        ended = [trial for trial in state.trials if trial.state != "running"]
        known = {trial.number for trial in ended} if self._shown is None else self._shown
        if self._shown is None and ended:
            self._console.print(f"resuming a study of {len(ended)} trials")
        for trial in ended:
            if trial.number not in known:
                said = f"trial {trial.number} {trial.state}: {_score(trial)}; {settings_text(trial)} {trial.error}"
                self._console.print(said.rstrip(), soft_wrap=True)
        self._shown = {trial.number for trial in ended}

    def _table(self, state: Tuning) -> Table:
        minutes = (time.monotonic() - self._started) / 60
        ended = len(state.trials) - state.count("running")
        best = "" if state.best is None else f", best {_score(state.best)}"
        title = f"{ended} of {self._trials} trials, {state.count('pruned')} pruned, {state.count('failed')} failed"
        table = Table("trial", "score so far", "settings", title=f"{title}{best}, {minutes:.1f} min")
        for trial in state.trials:
            if trial.state == "running":
                table.add_row(str(trial.number), _score(trial), settings_text(trial))
        return table


def tuning_table(config: TuningConfig, state: Tuning) -> Table:
    """The best trials, and those that failed."""
    sign = -1 if config.experiment.score.better == "higher" else 1
    order = {"complete": 0, "pruned": 1, "running": 2, "failed": 3}
    ranked = sorted(state.trials, key=lambda t: (order[t.state], sign * (t.score if t.score is not None else 0)))
    table = Table("trial", "state", config.experiment.score.label, "settings", title="best trials")
    for trial in ranked[:SHOWN]:
        table.add_row(str(trial.number), trial.state, _score(trial), settings_text(trial) or trial.error)
    return table


def settings_text(trial: TrialSummary) -> str:
    """The settings as words for the command line."""
    return " ".join(f"{name}={value}" for name, value in trial.settings.items())


def _score(trial: TrialSummary) -> str:
    return "no score" if trial.score is None else f"{trial.score:.4g}"
