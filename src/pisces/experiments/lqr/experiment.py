"""The experiment `lqr`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pisces.errors import UserError, unknown_name
from pisces.experiments.experiment import Evaluation, Experiment, Story, spread
from pisces.experiments.lqr.config import METHODS, SIZES, LQRConfig
from pisces.experiments.lqr.paper import LQR as PUBLISHED
from pisces.experiments.published import Published
from pisces.runs.measure import Measure
from pisces.runs.progress import Listener
from pisces.runs.search_space import Range, Space
from pisces.runs.store import RunFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pisces.agents.linear.policy import LinearPolicy
    from pisces.reports.results import StoredRun
    from pisces.reports.tables import Table

EPISODES = 10
"""Unseen environments of an evaluation by default."""


class LQR(Experiment[LQRConfig]):
    """Linear-quadratic control with distractors."""

    name = "lqr"
    cpu_only = True
    summary = "Train linear agents on linear-quadratic control with distractors."
    config_class = LQRConfig
    measures = (Measure("error", "error against the oracle", "lower", limits=(0.0, math.inf)),)
    score = Measure("validation_error", "validation error", "lower")
    axes = ("distractors",)
    defaults = {  # noqa: RUF012 (never changed)
        "train": {"method": "psm"},
        "sweep": {"methods": ",".join(METHODS), "distractors": ",".join(map(str, SIZES)), "seeds": "0-99"},
        "tune": {"method": "psm", "seeds": "1000-1004"},
    }
    story = Story(
        baseline="overparametrized",
        method="psm",
        claim="{method} ends {value} above the optimal cost in an unseen environment, {baseline} {other}",
        rule="A linear controller sees 20 useful numbers among distractors, which change in the unseen environment.",
    )
    method_names = {  # noqa: RUF012 (never changed)
        "overparametrized": "Overparametrized",
        "ipo": "IPO",
        "l1": "l1 penalty",
        "psm": "PSM aggregation",
    }
    log_scale = True
    evaluation_options = ("episodes",)

    def sweep_configs(
        self,
        methods: Sequence[str],
        seeds: Sequence[int],
        preset: str,
        axes: Mapping[str, Sequence[Any]],
        changes: Mapping[str, Any],
        **options: Any,
    ) -> list[LQRConfig]:
        """Returns one config per cell of the table, the largest first; consecutive seeds are trained together."""
        # A common difference of seed and position marks consecutive seeds.
        runs = [list(group) for _, group in itertools.groupby(enumerate(seeds), key=lambda item: item[1] - item[0])]
        starts = [(group[0][1], len(group)) for group in runs]
        configs = [
            self.make_config(
                method, preset=preset, seed=seed, changes=changes, distractors=size, n_seeds=count, **options
            )
            for size, method, (seed, count) in itertools.product(axes["distractors"], methods, starts)
        ]
        return sorted(dict.fromkeys(configs), key=lambda config: -config.distractors)

    def run(self, config: LQRConfig, folder: RunFolder, listeners: Sequence[Listener], device: str) -> None:
        """Trains the seeds that are missing."""
        from pisces.experiments.lqr.run import run

        run(config, folder, listeners, device)

    def describe(self, row: Mapping[str, Any]) -> str:
        """The error of one seed, or the number of seeds."""
        if "error" not in row:
            return f"{len(row['runs'])} seeds done"
        if row["error"] is None:
            return f"unstable in the unseen environment (infinite cost, oracle {row['oracle_cost']:.3f})"
        return f"cost {row['cost']:.4f} in the unseen environment, {row['error']:.4f} above the oracle's"

    def load(self, folder: RunFolder, config: LQRConfig) -> LinearPolicy:
        """Loads the policy of a run with a single seed."""
        from pisces.agents.linear.policy import LinearPolicy

        if config.n_seeds > 1:
            one = replace(config, n_seeds=1)
            raise UserError(f"runs of several seeds keep no checkpoint; train one: {one.command()}")
        return LinearPolicy(folder.read_checkpoint()[0], folder.path)

    def evaluate(self, folder: RunFolder, config: LQRConfig, **options: Any) -> Evaluation:
        """Evaluates a policy in unseen environments."""
        from pisces.experiments.lqr.data import unseen_errors

        environments = options["episodes"] or EPISODES
        errors, oracle = unseen_errors(config, self.load(folder, config).matrix, environments)
        finite = [error for error in errors if error is not None]
        if not finite:
            raise UserError(f"the closed loop is unstable in all of {environments} environments")
        row = (str(environments), *spread(finite, ".4f"), str(environments - len(finite)))
        header = ("unseen environments", "stable", "mean error", "smallest", "largest", "unstable")
        return Evaluation(header, (row,), {"config": config.as_dict(), "errors": errors, "oracle_cost": oracle})

    def search_space(self, method: str) -> Space:
        """The learning rate, and the weight of the method's penalty."""
        if method not in METHODS:
            raise unknown_name("method", method, METHODS)
        settings, rate = METHODS[method], Range("learning_rate", 1e-4, 1e-2, log=True)
        if settings.aggregation:
            return (Range("aggregation", 1e3, 1e9, log=True), rate)
        return (Range("sparsity", 1e-7, 1e-3, log=True), rate) if settings.sparsity else (rate,)

    def evaluations(self, config: LQRConfig) -> int:
        """One, at the end."""
        return 1

    def split(self, result: dict[str, Any]) -> list[dict[str, Any]]:
        """Returns one result per seed."""
        return [
            {**row, "runs": [row], "config": {**result["config"], "seed": row["seed"], "n_seeds": 1}}
            for row in result.get("runs", ())
        ]

    def problem(self, result: Mapping[str, Any], config: LQRConfig) -> str | None:
        """Unstable seeds have no finite error."""
        if result.get("error") is None:
            return f"seed {config.seed} is unstable in the unseen environment: no finite error to show"
        return None

    def cell(self, config: LQRConfig) -> tuple[Any, ...] | None:
        """Method and number of distractors; seeds for tuning count for no cell."""
        from pisces.experiments.lqr.tables import is_reported

        return (self.name, config.method, config.distractors) if is_reported(config) else None

    def published(self, config: LQRConfig) -> Published | None:
        """The paper's error."""
        return PUBLISHED[config.method].get(config.distractors) if self.cell(config) else None

    def order(self, config: LQRConfig) -> tuple[Any, ...]:
        """By method, then by number of distractors."""
        return (list(METHODS).index(config.method), config.distractors)

    def tables(self, runs: Sequence[StoredRun]) -> list[Table]:
        """The table in the paper's layout."""
        from pisces.experiments.lqr.tables import report_table

        return [report_table(runs)]

    def figures(self, runs: Sequence[StoredRun]) -> dict[str, tuple[str, Figure]]:
        """The bar chart of errors."""
        from pisces.experiments.lqr.figures import error_bars
        from pisces.experiments.lqr.tables import seeds_by_cell

        if not seeds_by_cell(runs):
            return {}
        caption = "Linear control: error in an unseen environment, 99 % CI; black lines are the paper's means"
        return {"lqr": (caption, error_bars(runs))}
