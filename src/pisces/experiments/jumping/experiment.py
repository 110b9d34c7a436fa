"""The experiment `jumping`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pisces.agents.imitation.settings import ImitationSettings
from pisces.errors import UserError, unknown_name
from pisces.experiments.experiment import Evaluation, Experiment, PageSection, Story
from pisces.experiments.jumping.config import METHODS, JumpingConfig, validation_solved
from pisces.experiments.jumping.paper import JUMPING, JUMPING_COLORS
from pisces.experiments.published import Published
from pisces.runs.measure import Measure
from pisces.runs.progress import Listener
from pisces.runs.search_space import Range, Space
from pisces.runs.store import RunFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pisces.experiments.jumping.policy import JumpingPolicy
    from pisces.reports.results import StoredRun
    from pisces.reports.tables import Table

PERCENT = (0.0, 100.0)


class Jumping(Experiment[JumpingConfig]):
    """Imitation on the jumping task."""

    name = "jumping"
    summary = "Train an agent on the jumping task."
    config_class = JumpingConfig
    measures = (
        Measure("test_solved_percent", "unseen tasks solved (%)", "higher", limits=PERCENT),
        Measure("red_test_solved_percent", "unseen red tasks solved (%)", "higher", limits=PERCENT),
    )
    score = Measure("validation_solved_percent", "validation tasks solved (%)", "higher")
    axes = ("grid", "epsilon", "training_tasks")
    defaults = {  # noqa: RUF012 (never changed)
        "train": {"method": "randconv+pse"},
        "sweep": {"methods": "randconv,randconv+pse"},
        "tune": {"method": "randconv+pse", "seeds": "1000-1001", "trials": 50},
    }
    story = Story(
        baseline="randconv",
        method="randconv+pse",
        claim="{method} solves {value} of unseen tasks, {baseline} {other}",
        rule="The agent runs right and must jump once, at the one step that clears the obstacle. "
        "It saw at most 18 of the 286 tasks.",
    )
    method_names = {  # noqa: RUF012 (never changed)
        "dropout+l2": "Dropout and l2",
        "pse": "PSE",
        "randconv": "RandConv",
        "randconv+pse": "RandConv + PSE",
        "bisimulation-transfer": "Bisimulation transfer",
        "randconv+pi-bisimulation": "RandConv + π*-bisimulation",
        "randconv+psm-l2": "RandConv + PSM, l2 loss",
        "randconv+pi-bisimulation-cme": "RandConv + π*-bisim., CME",
        "randconv+psm-cme": "RandConv + PSM, CME",
        "randconv+shift": "RandConv + shifts (ours)",
        "pse-tuned": "PSE, tuned (ours)",
        "pse-tuned-5": "PSE, best of 5 (ours)",
        "randconv+true": "RandConv + true similarity",
    }
    evaluation_options = ("tasks", "draws")

    def run(self, config: JumpingConfig, folder: RunFolder, listeners: Sequence[Listener], device: str) -> None:
        """Trains, or resumes training."""
        from pisces.experiments.jumping.run import run

        run(config, folder, listeners, device)

    def describe(self, row: Mapping[str, Any]) -> str:
        """The shares of unseen tasks solved, by color."""
        parts = []
        for name, value in row.items():
            if name.endswith("test_solved_percent"):
                color = name.removesuffix("test_solved_percent").replace("_", " ")
                parts.append(f"{color}{value:.1f} % of unseen tasks solved")
        return ", ".join(parts)

    def load(self, folder: RunFolder, config: JumpingConfig) -> JumpingPolicy:
        """Loads the policy of a run."""
        from pisces.experiments.jumping.policy import load_policy

        return load_policy(folder, config)

    def evaluate(self, folder: RunFolder, config: JumpingConfig, **options: Any) -> Evaluation:
        """Evaluates a policy on all tasks, on some, or with many random kernels."""
        from pisces.experiments.jumping.evaluation import evaluate

        return evaluate(self.load(folder, config), config, options["tasks"], options["draws"])

    def search_space(self, method: str) -> Space:
        """The learning rate, and the settings of the method's losses."""
        if method not in METHODS:
            raise unknown_name("method", method, METHODS)
        settings = METHODS[method]
        if not isinstance(settings, ImitationSettings):
            raise UserError(f"{method} learns nothing, so there is nothing to tune")
        space: list[Range] = [Range("learning_rate", 2e-4, 2e-2, log=True)]
        if settings.l2_coefficient:
            space.append(Range("l2_coefficient", 1e-6, 1e-2, log=True))
        if settings.dropout:
            space.append(Range("dropout", 0.0, 0.6))
        if settings.auxiliary == "contrastive":
            space += [Range("temperature", 0.05, 2.0, log=True), Range("scale", 1e-3, 1.0, log=True)]
            space.append(Range("coefficient", 0.1, 30.0, log=True))
        elif settings.auxiliary != "none" and settings.auxiliary != "l2":
            space.append(Range("coefficient", 1e-3, 10.0, log=True))
        if settings.auxiliary == "l2":
            space.append(Range("coefficient", 1e-7, 1.0, log=True))
        return tuple(space)

    def evaluations(self, config: JumpingConfig) -> int:
        """As the settings say."""
        return config.settings.evaluations if isinstance(config.settings, ImitationSettings) else 1

    def validation_score(self, config: JumpingConfig, folder: RunFolder, row: Mapping[str, Any]) -> float:
        """The share of validation tasks solved; with colors, the mean of both colors."""
        return validation_solved(row, config.colors)

    def problem(self, result: Mapping[str, Any], config: JumpingConfig) -> str | None:
        """Checks the tasks and actions of a stored result."""
        from pisces.experiments.jumping.results import problem

        return problem(result, config)

    def cell(self, config: JumpingConfig) -> tuple[Any, ...] | None:
        """Method, grid, colors and epsilon."""
        from pisces.experiments.jumping.report.tables import cell_of

        return cell_of(config)

    def published(self, config: JumpingConfig) -> Published | None:
        """The paper's percentage; with colors that of red tasks on the wide grid."""
        if self.cell(config) is None or config.epsilon or (config.colors and config.grid != "wide"):
            return None
        if config.colors:
            return JUMPING_COLORS.get(config.method, {}).get("red")
        return JUMPING.get(config.method, {}).get(config.grid)

    def order(self, config: JumpingConfig) -> tuple[Any, ...]:
        """White obstacles first, then the paper's order of methods."""
        methods = [*JUMPING, *(method for method in METHODS if method not in JUMPING)]
        return (config.colors, methods.index(config.method), config.where)

    def tables(self, runs: Sequence[StoredRun]) -> list[Table]:
        """Tables 1 and 2, the task with colors and suboptimal policies."""
        from pisces.experiments.jumping.report.tables import jumping_tables

        return jumping_tables(runs)

    def figures(self, runs: Sequence[StoredRun]) -> dict[str, tuple[str, Figure]]:
        """Grids of solved tasks, learning curves, and pictures of the task."""
        from pisces.experiments.jumping.report.sections import report_figures

        return report_figures(runs)

    def page_run(self, run: StoredRun) -> dict[str, Any]:
        """Percentages by part of the grid, solved tasks, and actions."""
        from pisces.experiments.jumping.report.page import packed_run

        return packed_run(run)

    def page_section(self, runs: Sequence[StoredRun], projection: str) -> PageSection:
        """The views of episodes, metrics, embeddings and diagnoses."""
        from pisces.experiments.jumping.report.sections import page_section

        return page_section(runs, projection)
