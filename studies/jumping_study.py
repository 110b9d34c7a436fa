"""The runs behind the tables and figures of the jumping task: ``python studies/jumping_study.py --out results``.

Rerun the command to resume; finished runs are not run again.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from pisces.cli.lists import parse_names, parse_seeds
from pisces.cli.sweep import SweepOptions, run_sweep
from pisces.errors import unknown_name
from pisces.experiments.jumping.config import METHODS, JumpingConfig
from pisces.experiments.jumping.experiment import Jumping

GRIDS = ("wide", "narrow", "random")
FEWER_TASKS = (6, 9, 12)
SHIFT_TASKS, SHIFTS, SHIFT_COEFFICIENTS = (2, 4, 6), (2, 5), (1.0, 5.0, 20.0)
"""Training tasks, largest shifts and weights of PSEs of studies/jumping_shift_pse.py."""
_TABLE_1 = ("learning_rate", "l2_coefficient", "temperature", "coefficient")


@dataclass(frozen=True)
class Batch:
    """All combinations of some methods, grids and seeds with the same overrides: one sweep."""

    methods: tuple[str, ...]
    """The methods."""
    grids: tuple[str, ...] = ("wide",)
    """The grids."""
    seeds: str = "0-4"
    """The seeds."""
    colors: bool = False
    """Whether obstacles are red and green."""
    epsilons: tuple[float, ...] = (0.0,)
    """Suboptimalities of the metric's policies."""
    training_tasks: tuple[int, ...] = (18,)
    """Numbers of training tasks."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Settings that differ from the methods'."""

    def configs(self) -> list[JumpingConfig]:
        """Returns the runs."""
        axes = {"grid": self.grids, "epsilon": self.epsilons, "training_tasks": self.training_tasks}
        return Jumping().sweep_configs(
            self.methods, parse_seeds(self.seeds), "paper", axes, self.changes, colors=self.colors
        )

    def command(self, out: str | Path = "results", workers: int = 2) -> str:
        """Returns the command that does the same."""
        words = ["pisces", "sweep", "jumping", "--methods", ",".join(self.methods), "--grids", ",".join(self.grids)]
        words += ["--seeds", self.seeds]
        words += ["--colors"] if self.colors else []
        words += ["--epsilons", ",".join(map(str, self.epsilons))] if self.epsilons != (0.0,) else []
        tasks = ",".join(map(str, self.training_tasks))
        words += ["--training-tasks", tasks] if self.training_tasks != (18,) else []
        for name, value in self.changes.items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        return shlex.join([*words, "--workers", str(workers), "--out", str(out)])


def _table_1_settings(method: str) -> dict[str, Any]:
    return {name: getattr(METHODS[method], name) for name in _TABLE_1}


def shift_batch(tasks: int, shift: int, coefficient: float, seeds: str) -> Batch:
    """Short shifts with few training tasks, and PSEs of some weight; as many iterations as with 18 tasks."""
    changes: dict[str, Any] = {"shift": shift, "epochs": 1000 if tasks > 4 else 2000}
    if coefficient:
        changes |= {"auxiliary": "contrastive", "temperature": 0.5, "coefficient": coefficient}
    return Batch(("randconv+shift",), seeds=seeds, training_tasks=(tasks,), changes=changes)


COLORS_WITH_TABLE_1 = Batch(("pse",), seeds="0-2", colors=True, changes=_table_1_settings("pse"))
"""PSEs on the task with colors, with the hyperparameters of Table 1 (App. F says how much that costs)."""

STUDY: Mapping[str, tuple[Batch, ...]] = {
    "main": (Batch(("randconv", "randconv+pse"), seeds="0-19"),),
    "recipe": (
        Batch(("randconv+shift", "pse-tuned", "pse-tuned-5"), GRIDS),
        Batch(("randconv+shift",), ("wide", "narrow"), changes={"shift_border": 0}),
        Batch(("randconv+shift",), changes={"shift": 0}),
        Batch(("randconv+shift",), changes={"augmentation": "none"}),
        Batch(("randconv+shift",), changes={"schedule": "exponential"}),
        Batch(("randconv+shift",), changes={"auxiliary": "contrastive", "temperature": 0.5}),
        Batch(("pse-tuned",), changes={"auxiliary": "none"}),
    ),
    "table1": (
        Batch(("randconv", "randconv+pse"), ("narrow", "random"), seeds="0-19"),
        Batch(("dropout+l2", "pse"), GRIDS, seeds="0-9"),
        Batch(("randconv+pi-bisimulation",), GRIDS),
        # Without training, only the random grid depends on the seed.
        Batch(("bisimulation-transfer",), ("wide", "narrow"), seeds="0"),
        Batch(("bisimulation-transfer",), ("random",), seeds="0-9"),
        # What the ideal metric gives, beside PSM.
        Batch(("randconv+true",)),
    ),
    "table2": (
        Batch(("randconv+psm-cme", "randconv+psm-l2", "randconv+pi-bisimulation-cme")),
        # With an end that pays nothing; one seed of the CME, whose positives and weights are the same.
        Batch(("randconv+pi-bisimulation",), changes={"metric": "pi-bisimulation-end"}),
        Batch(("randconv+pi-bisimulation-cme",), seeds="0", changes={"metric": "pi-bisimulation-end"}),
    ),
    "colors": (
        Batch(("dropout+l2", "pse", "randconv", "randconv+pse"), seeds="0-2", colors=True),
        COLORS_WITH_TABLE_1,
        # As the published code sees colored frames, row by row; then its kernels alone.
        Batch(("randconv", "randconv+pse"), seeds="0-2", colors=True, changes={"network": "rows", "kernels": "rows"}),
        Batch(("dropout+l2", "pse"), seeds="0-2", colors=True, changes={"network": "rows"}),
        Batch(("randconv",), seeds="0-2", colors=True, changes={"kernels": "rows"}),
        Batch(("pse-tuned",), seeds="0-2", colors=True),
        Batch(("randconv+shift",), seeds="0-2", colors=True, changes={"augmentation": "none"}),
    ),
    "epsilon": (
        Batch(("randconv+pse",), seeds="0-2", epsilons=(0.0, 0.5)),
        # One seed, to show that a whole training run is the same.
        Batch(("randconv+pse",), seeds="0", epsilons=(0.4,)),
        # With the policies' own transitions the weights of the loss differ; at 0.5 the metric is zero either way.
        Batch(("randconv+pse",), seeds="0-2", epsilons=(0.1, 0.2, 0.3, 0.4), changes={"metric": "psm-mdp"}),
    ),
    "passthrough": (
        Batch(("randconv",), seeds="0-19", changes={"passthrough_per": "run"}),
        # Ten seeds, because seeds 0-4 are above average with pass-through sampling at every call.
        Batch(("randconv",), seeds="0-9", changes={"passthrough_probability": 0.0}),
        Batch(("randconv+pse",), seeds="0-19", changes={"passthrough_per": "run"}),
    ),
    "tasks": (Batch(("randconv", "randconv+pse"), training_tasks=FEWER_TASKS),),
    # The seeds that choose; jumping_shift_pse.py then trains those to report.
    "shift-pse": tuple(
        shift_batch(tasks, shift, coefficient, "1000-1001")
        for tasks in SHIFT_TASKS
        for shift in SHIFTS
        for coefficient in SHIFT_COEFFICIENTS
    ),
    "loss": (
        Batch(("randconv+pse",), changes={"weighted": False}),
        Batch(("randconv+pse",), changes={"symmetric": False}),
        # Two directions are added up, so one of them alone is also half the weight; this tells the two apart.
        Batch(("randconv+pse",), changes={"coefficient": 2.5}),
        # One seed: training is the same bit for bit, as docs/reproduction_details.md explains.
        Batch(("randconv+pse",), seeds="0", changes={"discount": 0.99}),
    ),
}
"""The parts of the study, in the order in which they are run."""


def study_configs(parts: Sequence[str]) -> list[JumpingConfig]:
    """Returns the runs of some parts, each once."""
    configs: list[JumpingConfig] = []
    for part in parts:
        if part not in STUDY:
            raise unknown_name("part of the study", part, STUDY)
        configs += [config for batch in STUDY[part] for config in batch.configs()]
    return list(dict.fromkeys(configs))


def main(
    parts: str = ",".join(STUDY),
    common: Annotated[SweepOptions, tyro.conf.arg(name="")] = SweepOptions(out=Path("results")),  # noqa: B008 (frozen)
) -> None:
    """Train everything behind the tables and figures of the jumping task.

    Args:
        parts: Parts of the study, separated by commas.
        common: Where and how the runs are done.
    """
    run_sweep(Jumping(), study_configs(parse_names(parts)), common)


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
