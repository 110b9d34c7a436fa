"""The experiment `minigrid`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pisces.agents.cloning.settings import CloningSettings
from pisces.errors import unknown_name
from pisces.experiments.experiment import Evaluation, Experiment, PageSection, Story
from pisces.experiments.minigrid.config import EVALUATIONS, METHODS, MiniGridConfig
from pisces.runs.measure import Measure
from pisces.runs.progress import Listener
from pisces.runs.search_space import Range, Space
from pisces.runs.store import RunFolder

if TYPE_CHECKING:
    from pisces.experiments.minigrid.policy import MiniGridPolicy
    from pisces.reports.results import StoredRun
    from pisces.reports.tables import Table

PERCENT = (0.0, 100.0)


class MiniGrid(Experiment[MiniGridConfig]):
    """Cloning and PPO on levels of MiniGrid."""

    name = "minigrid"
    cpu_only = True
    summary = "Train on a few levels of MiniGrid, evaluate on other layouts, other appearances, or both."
    config_class = MiniGridConfig
    measures = (Measure("test_solved_percent", "unseen tasks solved (%)", "higher", limits=PERCENT),)
    reported = ("train_solved_percent", "validation_solved_percent")
    score = Measure("validation_solved_percent", "validation tasks solved (%)", "higher")
    axes = ("family", "shift")
    defaults = {  # noqa: RUF012 (never changed)
        "train": {"method": "bc+pse"},
        "sweep": {"methods": "bc,bc+randconv,bc+pse", "families": "crossing", "shifts": "layout,appearance,both"},
        "tune": {"method": "bc+pse", "seeds": "1000-1003"},
    }

    story = Story(
        baseline="bc",
        method="bc+pse",
        claim="{method} solves {value} of unseen tasks, {baseline} {other}",
        rule="The agent walks through rooms to the goal, in layouts or colors that it has not seen.",
    )
    method_names = {  # noqa: RUF012 (never changed)
        "bc": "Cloning",
        "bc+randconv": "Cloning + RandConv",
        "bc+colors": "Cloning + colors",
        "bc+pse": "Cloning + PSE",
        "bc+pse-states": "Cloning + PSE, all states",
        "bc+randconv+pse": "Cloning + RandConv + PSE",
        "bc+colors+pse-states": "Cloning + colors + PSE, all states",
    }

    def run(self, config: MiniGridConfig, folder: RunFolder, listeners: Sequence[Listener], device: str) -> None:
        """Trains and evaluates; an interrupted run starts again, because runs are short."""
        if isinstance(config.settings, CloningSettings):
            from pisces.experiments.minigrid.run import run
        else:
            from pisces.experiments.minigrid.ppo import run
        run(config, folder, listeners)

    def describe(self, row: Mapping[str, Any]) -> str:
        """The shares of tasks solved."""
        kind = "test" if "test_solved_percent" in row else "validation"
        unseen = row[f"{kind}_solved_percent"]
        return f"{row['train_solved_percent']:.1f} % of training tasks solved, {unseen:.1f} % of {kind} tasks"

    def load(self, folder: RunFolder, config: MiniGridConfig) -> MiniGridPolicy:
        """Loads the cloned policy of a run."""
        from pisces.experiments.minigrid.policy import load_policy

        return load_policy(folder, config)

    def evaluate(self, folder: RunFolder, config: MiniGridConfig, **options: Any) -> Evaluation:
        """Evaluates a cloned policy on training, validation and test tasks."""
        from pisces.experiments.minigrid.evaluation import evaluate

        return evaluate(self.load(folder, config), config)

    def search_space(self, method: str) -> Space:
        """The learning rate, and the settings of the method's loss."""
        if method not in METHODS:
            raise unknown_name("method", method, METHODS)
        settings, space = METHODS[method], [Range("learning_rate", 3e-4, 1e-2, log=True)]
        if isinstance(settings, CloningSettings):
            if settings.auxiliary != "none":
                space.append(Range("auxiliary_rate", 1e-4, 1e-2, log=True))
            contrastive = settings.auxiliary == "contrastive"
        else:
            contrastive = settings.similarity != "none"
            space += [Range("similarity_rate", 1e-4, 3e-3, log=True)] if contrastive else []
        if contrastive:
            space += [Range("temperature", 0.05, 2.0, log=True), Range("scale", 1e-2, 10.0, log=True)]
            space.append(Range("match_within", 1e-3, 1.0, log=True))
        return tuple(space)

    def evaluations(self, config: MiniGridConfig) -> int:
        """The same for all runs."""
        return EVALUATIONS

    def problem(self, result: Mapping[str, Any], config: MiniGridConfig) -> str | None:
        """Checks the agreement with the metric and the episodes of a stored result."""
        from pisces.experiments.minigrid.results import problem

        return super().problem(result, config) or problem(result, config.family)

    def tables(self, runs: Sequence[StoredRun]) -> list[Table]:
        """Tasks solved, gains over the agent without a loss, and what may predict them."""
        from pisces.experiments.minigrid.tables import agreement_table, gains_table, matches_table, solved_table

        return [solved_table(runs), gains_table(runs), matches_table(runs), agreement_table(runs)]

    def page_section(self, runs: Sequence[StoredRun], projection: str) -> PageSection:
        """Levels with the agents' paths."""
        from pisces.experiments.minigrid.page import page_section

        return page_section(runs)
