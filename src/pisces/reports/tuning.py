"""What a terminal shows of a search for settings."""

from __future__ import annotations

import shlex
import time

from rich.console import Console
from rich.table import Table

from pisces.experiments.tunable import TuningConfig, tunable
from pisces.experiments.tuning import TrialSummary, Tuning
from pisces.reports.console import LiveTable

SHOWN = 10
"""Trials in the summary."""


class TuningDisplay(LiveTable):
    """A live headline and the trials under way; where there is no terminal, one line per trial that has ended."""

    def __init__(self, config: TuningConfig, trials: int, console: Console) -> None:
        super().__init__(console)
        self._config, self._trials = config, trials
        self._started = time.monotonic()
        self._told: set[int] | None = None

    def update(self, state: Tuning) -> None:
        """Shows the state of the study."""
        self.show(lambda: self._table(state))
        ended = [trial for trial in state.trials if trial.state != "running"]
        told = {trial.number for trial in ended} if self._told is None else self._told
        if self._told is None and ended:
            self._console.print(f"going on with a study of {len(ended)} trials")
        for trial in ended:
            if trial.number not in told:
                said = f"trial {trial.number} {trial.state}: {_score(trial)}; {settings_text(trial)} {trial.error}"
                self._console.print(said.rstrip(), soft_wrap=True, markup=False)
        self._told = {trial.number for trial in ended}

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
    sign = -1 if tunable(config.experiment).direction == "maximize" else 1
    order = {"complete": 0, "pruned": 1, "running": 2, "failed": 3}
    ranked = sorted(state.trials, key=lambda t: (order[t.state], sign * (t.score if t.score is not None else 0)))
    table = Table("trial", "state", tunable(config.experiment).score_name, "settings", title="best trials")
    for trial in ranked[:SHOWN]:
        table.add_row(str(trial.number), trial.state, _score(trial), settings_text(trial) or trial.error)
    return table


def best_command(config: TuningConfig, best: TrialSummary) -> str:
    """The command that trains one agent with the best settings."""
    words = ["pisces", "train", config.experiment, "--method", config.method, "--preset", config.preset]
    for name, value in config.options.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words += [option] if value else []
        elif value != "":
            words += [option, str(value)]
    chosen = [f"{name}={value}" for name, value in {**config.fixed, **best.settings}.items()]
    return shlex.join([*words, "--set", *chosen])


def settings_text(trial: TrialSummary) -> str:
    """The settings as words for the command line."""
    return " ".join(f"{name}={value}" for name, value in trial.settings.items())


def _score(trial: TrialSummary) -> str:
    return "no score" if trial.score is None else f"{trial.score:.4g}"
