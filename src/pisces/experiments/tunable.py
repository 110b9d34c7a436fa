"""What can be tuned: the experiments, and the score of one combination of settings of each.

Scores come from validation data alone. Results and curves of runs also hold test numbers; nothing here looks at them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pisces.agents.drq_settings import DrQSettings
from pisces.agents.linear_settings import LinearSettings
from pisces.agents.settings import ImitationSettings
from pisces.errors import UserError, unknown_name
from pisces.experiments import distracting, grid_transfer, jumping, lqr
from pisces.experiments.default_spaces import distracting_space, grid_space, jumping_space, lqr_space
from pisces.experiments.progress import Listener, Progress
from pisces.experiments.search_space import Space, space_as_dict
from pisces.experiments.store import LockedError, RunConfig, RunFolder

Report = Callable[[int, float], None]
"""Told the score so far, by number of evaluation."""
Score = Callable[["TuningConfig", Mapping[str, Any], Path, Report], float]
SAMPLERS, PRUNERS = ("tpe", "random", "grid"), ("median", "halving", "none")
LQR_GROUP = 5
"""Seeds of the LQR study that are trained together, and after which a trial may be pruned."""
WAIT_SECONDS = 2.0


@dataclass(frozen=True)
class TuningConfig:
    """A study: what is tuned, and how. Equal configs share a study."""

    experiment: str
    """"jumping", "lqr", "distracting" or "grid"."""
    method: str
    """The method whose settings are searched."""
    preset: str
    """The preset of the runs."""
    seeds: tuple[int, ...]
    """Every combination of settings is run with all of them, and scored by the mean."""
    space: Space
    """What is searched."""
    fixed: Mapping[str, Any]
    """Settings that differ from the preset's in all runs."""
    options: Mapping[str, Any]
    """What the experiment's configs take besides, such as the grid."""
    sampler: str = "tpe"
    """"tpe", "random" or "grid"."""
    pruner: str = "median"
    """"median", "halving" or "none"."""

    def __post_init__(self) -> None:
        for kind, name, choices in (("sampler", self.sampler, SAMPLERS), ("pruner", self.pruner, PRUNERS)):
            if name not in choices:
                raise unknown_name(kind, name, choices)
        if not self.space:
            raise UserError(f"expected a space to search for {self.method}, got none; give --search name=low:high")
        twice = {dimension.name for dimension in self.space} & set(self.fixed)
        if twice:
            raise UserError(f"expected settings in either --search or --set, got {min(twice)} in both")
        for choice in range(max(len(dimension.examples) for dimension in self.space)):
            values = {d.name: d.examples[min(choice, len(d.examples) - 1)] for d in self.space}
            tunable(self.experiment).configure(self, values, self.seeds[0])

    def as_dict(self) -> dict[str, Any]:
        """Returns the config as nested JSON values."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**values, "seeds": list(self.seeds), "space": space_as_dict(self.space)}

    def identity(self) -> dict[str, Any]:
        """Returns what names the study: everything."""
        return self.as_dict()


@dataclass(frozen=True)
class Tunable:
    """How one experiment is tuned."""

    score_name: str
    """What the score is, in words."""
    direction: str
    """"maximize" or "minimize"."""
    settings: Mapping[str, Any]
    """All settings with their defaults."""
    space: Callable[[str], Space]
    """The usual space of a method."""
    configure: Callable[[TuningConfig, Mapping[str, Any], int], RunConfig]
    """The run of one combination and seed."""
    score: Score
    """Runs all seeds of one combination."""


def tunable(name: str) -> Tunable:
    """Finds how an experiment is tuned."""
    if name not in TUNABLES:
        raise unknown_name("experiment", name, TUNABLES)
    return TUNABLES[name]


def score_jumping(config: TuningConfig, changes: Mapping[str, Any], runs: Path, report: Report) -> float:
    """Mean percentage of the validation tasks that are solved at the end of a run."""
    from pisces.experiments.jumping_run import run

    scores: list[float] = []
    for seed in config.seeds:
        chosen = _jumping(config, changes, seed)

        def read(row: Mapping[str, Any], colors: bool = chosen.colors) -> float:
            return jumping.validation_solved(row, colors)

        listen = _listener(scores, chosen.settings.evaluations, read, report)
        folder = _patiently(lambda config=chosen, listen=listen: run(config, runs, listeners=[listen]))  # type: ignore[misc]
        scores.append(read(folder.read_json("result.json")))
    return _mean(scores)


def score_lqr(config: TuningConfig, changes: Mapping[str, Any], runs: Path, report: Report) -> float:
    """Mean error in the validation environment, which has distractors of its own."""
    from pisces.experiments.lqr_run import run

    errors: list[float] = []
    for start in range(0, len(config.seeds), LQR_GROUP):
        seeds = config.seeds[start : start + LQR_GROUP]
        folder = _patiently(lambda seeds=seeds: run(_lqr(config, changes, *seeds), runs, 1))  # type: ignore[misc]
        found = [row["validation_error"] for row in folder.read_json("result.json")["runs"]]
        errors += [math.inf if error is None else float(error) for error in found]
        report(start // LQR_GROUP, _mean(errors))
    return _mean(errors)


def score_distracting(config: TuningConfig, changes: Mapping[str, Any], runs: Path, report: Report) -> float:
    """Mean return in front of validation videos, which are neither training nor test videos."""
    from pisces.experiments.distracting_data import validation_return
    from pisces.experiments.distracting_run import run

    scores: list[float] = []
    for seed in config.seeds:
        chosen = _distracting(config, changes, seed)
        folder = RunFolder.open(runs, distracting.EXPERIMENT, chosen.method, chosen)

        # A run saves its checkpoint before it tells of an evaluation; the evaluation itself stays unread.
        def read(_: Any, chosen: Any = chosen, folder: RunFolder = folder) -> float:
            return validation_return(chosen, folder)

        if chosen.needs_pretraining:
            _patiently(lambda chosen=chosen: run(chosen, runs, stage="pretrain"))  # type: ignore[misc]
        if chosen.method == "drq+pse":
            _patiently(lambda chosen=chosen: run(chosen, runs, stage="pairs"))  # type: ignore[misc]
        listen = _listener(scores, chosen.protocol.evaluations, read, report)
        _patiently(lambda chosen=chosen, listen=listen: run(chosen, runs, listeners=[listen], stage="train"))  # type: ignore[misc]
        scores.append(read(None))
    return _mean(scores)


def score_grid(config: TuningConfig, changes: Mapping[str, Any], runs: Path, report: Report) -> float:
    """Mean percentage of the validation levels that are solved at the end of a run."""
    from pisces.experiments.grid_transfer_run import run

    def read(row: Mapping[str, Any]) -> float:
        return float(row["validation_levels_percent"])

    scores: list[float] = []
    for seed in config.seeds:
        chosen = _grid(config, changes, seed)
        listen = _listener(scores, grid_transfer.EVALUATIONS, read, report)
        folder = _patiently(lambda chosen=chosen, listen=listen: run(chosen, runs, [listen]))  # type: ignore[misc]
        scores.append(read(folder.read_json("result.json")))
    return _mean(scores)


def _listener(
    before: list[float], evaluations: int, read: Callable[[Mapping[str, Any]], float], report: Report
) -> Listener:
    """Reports the mean of the finished seeds' scores and the present one's."""

    def listen(progress: Progress) -> None:
        if progress.evaluation is not None:
            place = math.ceil(min(progress.iteration / progress.total, 1) * evaluations)
            report(len(before) * evaluations + place, _mean([*before, read(progress.evaluation)]))

    return listen


def _patiently(run: Callable[[], RunFolder]) -> RunFolder:
    """Runs, or waits for the process that is busy with the same run."""
    while True:
        try:
            return run()
        except LockedError:
            time.sleep(WAIT_SECONDS)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _jumping(config: TuningConfig, changes: Mapping[str, Any], seed: int) -> jumping.JumpingConfig:
    merged = {**config.fixed, **changes}
    return jumping.make_config(config.method, seed=seed, preset=config.preset, changes=merged, **config.options)


def _lqr(config: TuningConfig, changes: Mapping[str, Any], *seeds: int) -> lqr.LQRConfig:
    merged = {**config.fixed, **changes}
    return lqr.make_config(config.method, seeds=seeds, preset=config.preset, changes=merged, **config.options)


def _distracting(config: TuningConfig, changes: Mapping[str, Any], seed: int) -> distracting.DistractingConfig:
    # Episodes on test videos would be a waste, and at least one is the rule.
    unread = {"evaluation_episodes": 1, "final_episodes": 1}
    merged = {**unread, **config.fixed, **changes}
    return distracting.make_config(
        config.method, seed=seed, preset=config.preset, threads=1, changes=merged, **config.options
    )


def _grid(config: TuningConfig, changes: Mapping[str, Any], seed: int) -> grid_transfer.GridConfig:
    return grid_transfer.make_config(config.method, seed, config.preset, {**config.fixed, **changes})


TUNABLES: Mapping[str, Tunable] = {
    "jumping": Tunable(
        "validation tasks solved, %",
        "maximize",
        asdict(ImitationSettings()),
        jumping_space,
        _jumping,
        score_jumping,
    ),
    "lqr": Tunable("validation error", "minimize", asdict(LinearSettings()), lqr_space, _lqr, score_lqr),
    "distracting": Tunable(
        "return on validation videos",
        "maximize",
        {**asdict(DrQSettings()), **asdict(distracting.Protocol())},
        distracting_space,
        _distracting,
        score_distracting,
    ),
    "grid": Tunable(
        "validation levels solved, %",
        "maximize",
        asdict(grid_transfer.GridSettings()),
        grid_space,
        _grid,
        score_grid,
    ),
}
