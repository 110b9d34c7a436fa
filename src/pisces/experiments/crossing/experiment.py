"""The experiment `crossing`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pisces.errors import unknown_name
from pisces.experiments.crossing.config import EVALUATIONS, METHODS, CrossingConfig
from pisces.experiments.experiment import Experiment, Story
from pisces.runs.measure import Measure
from pisces.runs.progress import Listener
from pisces.runs.search_space import Range, Space
from pisces.runs.store import RunFolder

if TYPE_CHECKING:
    from pisces.reports.results import StoredRun
    from pisces.reports.tables import Table


class Crossing(Experiment[CrossingConfig]):
    """PPO of Stable-Baselines3 on levels of a crossing."""

    name = "crossing"
    cpu_only = True
    summary = "Train PPO of Stable-Baselines3 on a few levels of a crossing and evaluate it on unseen ones."
    config_class = CrossingConfig
    measures = (Measure("test_levels_percent", "unseen levels solved (%)", "higher", limits=(0.0, 100.0)),)
    reported = ("train_levels_percent", "validation_levels_percent")
    score = Measure("validation_levels_percent", "validation levels solved (%)", "higher")
    defaults = {  # noqa: RUF012 (never changed)
        "train": {"method": "ppo+pse"},
        "sweep": {"methods": "ppo,ppo+pse", "seeds": "0-19"},
        "tune": {"method": "ppo+pse", "seeds": "1000-1003"},
    }

    story = Story(
        baseline="ppo",
        method="ppo+pse",
        claim="{method} solves {value} of unseen levels, {baseline} {other}",
        rule="The agent walks along a wall to its gate and through it; levels differ in where the gate is.",
    )
    method_names = {"ppo": "PPO", "ppo+pse": "PPO + PSE"}  # noqa: RUF012 (never changed)

    def run(self, config: CrossingConfig, folder: RunFolder, listeners: Sequence[Listener], device: str) -> None:
        """Trains and evaluates; an interrupted run starts again."""
        from pisces.experiments.crossing.run import run

        run(config, folder, listeners)

    def describe(self, row: Mapping[str, Any]) -> str:
        """The shares of levels solved."""
        kind = "test" if "test_levels_percent" in row else "validation"
        unseen = row[f"{kind}_levels_percent"]
        return f"{row['train_levels_percent']:.1f} % of training levels solved, {unseen:.1f} % of {kind} levels"

    def search_space(self, method: str) -> Space:
        """PPO's learning rate, and for ppo+pse the settings of the callback and its metric."""
        if method not in METHODS:
            raise unknown_name("method", method, METHODS)
        space = [Range("learning_rate", 2e-4, 5e-3, log=True)]
        if METHODS[method].similarity_rate:
            space += [Range("similarity_rate", 1e-4, 1e-2, log=True), Range("updates", 1, 12, log=True, whole=True)]
            space += [Range("temperature", 0.05, 2.0, log=True), Range("scale", 1e-2, 10.0, log=True)]
            space.append(Range("match_within", 1e-3, 0.5, log=True))
        return tuple(space)

    def evaluations(self, config: CrossingConfig) -> int:
        """The same for all runs."""
        return EVALUATIONS

    def tables(self, runs: Sequence[StoredRun]) -> list[Table]:
        """Levels solved by method."""
        from pisces.experiments.crossing.tables import crossing_table

        return [crossing_table(runs)]
