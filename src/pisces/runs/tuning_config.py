"""What is tuned: experiments that can be tuned, configs of studies, and the score of one combination of settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from pisces.errors import UserError, unknown_name
from pisces.runs.job import Job, Runnable
from pisces.runs.lock import wait_for_lock
from pisces.runs.measure import Measure
from pisces.runs.progress import Progress
from pisces.runs.search_space import Space, space_as_dict
from pisces.runs.store import SCHEMA, RunConfig, RunFolder

SAMPLERS, PRUNERS = ("tpe", "random", "grid"), ("median", "halving", "none")

Report = Callable[[int, float], None]
"""A function that gets the number of an evaluation and the score so far; it may raise an exception to stop a trial."""


class Tunable(Runnable, Protocol):
    """What tuning asks of an experiment."""

    @property
    def score(self) -> Measure:
        """The measure that is tuned, from validation data."""

    def make_config(
        self, method: str, *, preset: str, seed: int, changes: Mapping[str, Any], **options: Any
    ) -> RunConfig:
        """Returns the config of one run; `changes` are settings that differ from the preset."""

    def evaluations(self, config: Any) -> int:
        """Returns the number of evaluations during a run."""

    def validation_score(self, config: Any, folder: RunFolder, row: Mapping[str, Any]) -> float:
        """Returns the score of a run from validation data only.

        Args:
            config: the config of the run.
            folder: the folder of the run, with a checkpoint as of `row`.
            row: a row of the metrics after an evaluation, or the result of the finished run.
        """


@dataclass(frozen=True)
class TuningConfig:
    """The config of a study; equal configs share a study."""

    experiment: Tunable
    """The experiment."""
    method: str
    """The method whose settings are searched."""
    preset: str
    """The preset of the runs."""
    seeds: tuple[int, ...]
    """The seeds that every combination of settings is run with; its score is their mean."""
    space: Space
    """The settings that are searched."""
    fixed: Mapping[str, Any]
    """The settings that differ from the preset in all runs."""
    options: Mapping[str, Any]
    """The other arguments of the experiment's `make_config`, such as the grid."""
    sampler: str = "tpe"
    """The way to choose settings: "tpe", "random" or "grid"."""
    pruner: str = "median"
    """The way to stop bad trials early: "median", "halving" or "none"."""

    def __post_init__(self) -> None:
        for kind, name, choices in (("sampler", self.sampler, SAMPLERS), ("pruner", self.pruner, PRUNERS)):
            if name not in choices:
                raise unknown_name(kind, name, choices)
        if not self.space:
            raise UserError(f"no settings to search for {self.method}; give --search name=low:high")
        if not self.seeds:
            raise UserError("expected at least one seed, got none")
        twice = {dimension.name for dimension in self.space} & set(self.fixed)
        if twice:
            raise UserError(f"{min(twice)} is given both in --search and as an option; give it once")
        for choice in range(max(len(dimension.examples) for dimension in self.space)):
            values = {d.name: d.examples[min(choice, len(d.examples) - 1)] for d in self.space}
            self.run_config(values, self.seeds[0])

    def run_config(self, settings: Mapping[str, Any], seed: int) -> RunConfig:
        """Returns the config of the run of one combination of settings and one seed."""
        changes = {**self.fixed, **settings}
        return self.experiment.make_config(self.method, preset=self.preset, seed=seed, changes=changes, **self.options)

    def as_dict(self) -> dict[str, Any]:
        """Returns the config as nested JSON values."""
        return {"schema": SCHEMA, **self.identity()}

    def identity(self) -> dict[str, Any]:
        """Returns the entries that name the study: all but the schema."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        names = {"experiment": self.experiment.name, "seeds": list(self.seeds), "space": space_as_dict(self.space)}
        return {**values, **names}


@dataclass(frozen=True)
class TrialSummary:
    """The state of one trial."""

    number: int
    """The number of the trial in the study."""
    state: str
    """The state: "complete", "pruned", "failed" or "running"."""
    score: float | None
    """The score; of a pruned or running trial the last one reported."""
    settings: dict[str, Any]
    """The settings that the trial tries."""
    error: str = ""
    """The reason if the trial failed."""

    def as_json(self) -> dict[str, Any]:
        """Returns the trial as JSON values; an infinite score is None."""
        return {**vars(self), "score": self.score if self.score is not None and math.isfinite(self.score) else None}


@dataclass(frozen=True)
class Tuning:
    """The state of a study."""

    trials: tuple[TrialSummary, ...]
    """The trials so far."""
    best: TrialSummary | None
    """The complete trial with the best score."""

    def count(self, state: str) -> int:
        """Returns the number of trials in a state."""
        return sum(trial.state == state for trial in self.trials)


def score_settings(config: TuningConfig, settings: Mapping[str, Any], runs: Path, report: Report) -> float:
    """Runs one combination of settings with every seed and returns the mean of their scores.

    Args:
        config: the config of the study.
        settings: the values of the settings that are searched.
        runs: root of the run folders.
        report: called after every evaluation with its number and the mean of the finished scores and the current one.
    """
    scores: list[float] = []
    for seed in config.seeds:
        run = config.run_config(settings, seed)
        steps = config.experiment.evaluations(run)

        def report_mean(step: int, score: float, first: int = len(scores) * steps) -> None:
            report(first + step, _mean([*scores, score]))

        scores.append(_score_run(config.experiment, run, runs, steps, report_mean))
    return _mean(scores)


def _score_run(experiment: Tunable, config: RunConfig, runs: Path, steps: int, report: Report) -> float:
    folder = RunFolder.of(runs, config)
    last = 0

    def read(row: Mapping[str, Any]) -> float:
        score = experiment.validation_score(config, folder, row)
        return score if math.isfinite(score) else experiment.score.worst

    def listen(progress: Progress) -> None:
        nonlocal last
        step = round(min(progress.iteration / progress.total, 1) * steps)  # evaluations may come a little late
        if progress.evaluation is not None and step > last:
            last = step
            report(step, read(progress.evaluation))

    # First, so that the evaluations heard below are those of the run itself.
    for needed in experiment.requirements(config):
        wait_for_lock(partial(Job(experiment, needed).run, runs))
    wait_for_lock(partial(Job(experiment, config).run, runs, [listen]))
    score = read(folder.read_result())
    if last < steps:
        report(steps, score)
    return score


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
