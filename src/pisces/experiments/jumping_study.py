"""The jumping task's whole study: which runs stand behind each table and figure, and the command of each part."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pisces.errors import unknown_name
from pisces.experiments.engine import Job
from pisces.experiments.jumping import EXPERIMENT, METHODS
from pisces.experiments.lists import parse_seeds
from pisces.experiments.sweeps import jumping_jobs

GRIDS = ("wide", "narrow", "random")
SUBOPTIMAL = "randconv+pse"
"""The method that is trained with metrics of suboptimal policies."""
SAME_AS_OPTIMAL = (0.1, 0.2, 0.3, 0.4)
"""Suboptimalities whose training is that of optimal policies bit for bit, as docs/reproduction.md explains."""
FEWER_TASKS = (6, 9, 12)
_TABLE_1 = ("learning_rate", "l2_coefficient", "temperature", "coefficient")


@dataclass(frozen=True)
class Batch:
    """All combinations of some methods, grids and seeds, with the same changes: one sweep."""

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
    """Settings that differ from the methods' own."""

    def jobs(self) -> list[Job]:
        """The runs."""
        seeds = parse_seeds(self.seeds)
        parts = (self.colors, self.epsilons, self.training_tasks, self.changes)
        return jumping_jobs(self.methods, self.grids, seeds, "paper", *parts)

    def command(self, out: str | Path = "results", workers: int = 2) -> str:
        """The command that does the same."""
        words = ["pisces", "sweep", EXPERIMENT, "--methods", ",".join(self.methods), "--grids", ",".join(self.grids)]
        words += ["--seeds", self.seeds]
        words += ["--colors"] if self.colors else []
        words += ["--epsilons", *map(str, self.epsilons)] if self.epsilons != (0.0,) else []
        words += ["--training-tasks", *map(str, self.training_tasks)] if self.training_tasks != (18,) else []
        words += ["--set", *(f"{name}={value}" for name, value in self.changes.items())] if self.changes else []
        return shlex.join([*words, "--workers", str(workers), "--out", str(out)])


def _table_1_settings(method: str) -> dict[str, Any]:
    return {name: getattr(METHODS[method], name) for name in _TABLE_1}


COLORS_WITH_TABLE_1 = Batch(("pse",), seeds="0-2", colors=True, changes=_table_1_settings("pse"))
"""PSEs on the task with colours, with the hyperparameters of Table 1 (App. F says how much that costs)."""

STUDY: Mapping[str, tuple[Batch, ...]] = {
    "main": (Batch(("randconv", "randconv+pse"), seeds="0-19"),),
    "recipe": (
        Batch(("pisces", "pisces-plain", "pisces-plain-5"), GRIDS),
        Batch(("pisces",), ("wide", "narrow"), changes={"shift_border": 0}),
        Batch(("pisces",), changes={"shift": 0}),
        Batch(("pisces",), changes={"augmentation": "none"}),
        Batch(("pisces",), changes={"schedule": "exponential"}),
        Batch(("pisces",), changes={"auxiliary": "contrastive", "temperature": 0.5}),
        Batch(("pisces-plain",), changes={"auxiliary": "none"}),
    ),
    "table1": (
        Batch(("randconv", "randconv+pse"), ("narrow", "random")),
        Batch(("dropout+l2", "pse", "randconv+bisimulation"), GRIDS),
        # What the ideal metric gives, beside PSM.
        Batch(("randconv+true",)),
    ),
    "table2": (Batch(("randconv+psm-cme", "randconv+psm-l2", "randconv+bisimulation-cme")),),
    "colors": (
        Batch(("dropout+l2", "pse", "randconv", "randconv+pse"), seeds="0-2", colors=True),
        COLORS_WITH_TABLE_1,
        # As the published code sees coloured frames, row by row; then its kernels alone.
        Batch(("randconv", "randconv+pse"), seeds="0-2", colors=True, changes={"network": "rows", "kernels": "rows"}),
        Batch(("dropout+l2", "pse"), seeds="0-2", colors=True, changes={"network": "rows"}),
        Batch(("randconv",), seeds="0-2", colors=True, changes={"kernels": "rows"}),
        Batch(("pisces-plain",), seeds="0-2", colors=True),
        Batch(("pisces",), seeds="0-2", colors=True, changes={"augmentation": "none"}),
    ),
    "epsilon": (
        Batch((SUBOPTIMAL,), seeds="0-2", epsilons=(0.0, 0.5)),
        # One seed, to see that a whole training is the same.
        Batch((SUBOPTIMAL,), seeds="0", epsilons=SAME_AS_OPTIMAL[-1:]),
    ),
    "coin": (
        Batch(("randconv",), changes={"coin": "run"}),
        # More than five, because the first five are all above the mean of the coin at every call.
        Batch(("randconv",), seeds="0-9", changes={"pass_probability": 0.0}),
        Batch(("randconv+pse",), changes={"coin": "run"}),
    ),
    "tasks": (Batch(("randconv", "randconv+pse"), training_tasks=FEWER_TASKS),),
    "loss": (
        Batch(("randconv+pse",), changes={"weighted": False}),
        Batch(("randconv+pse",), changes={"symmetric": False}),
        # Two directions are added up, so one of them alone is also half the weight; this tells the two apart.
        Batch(("randconv+pse",), changes={"coefficient": 2.5}),
        # One seed: training is the same bit for bit, as docs/reproduction.md explains.
        Batch(("randconv+pse",), seeds="0", changes={"discount": 0.99}),
    ),
}
"""The parts of the study, in the order in which they are run."""


def study_jobs(parts: Sequence[str]) -> list[Job]:
    """The runs of some parts, each once."""
    jobs: dict[str, Job] = {}
    for part in parts:
        if part not in STUDY:
            raise unknown_name("part of the study", part, STUDY)
        for batch in STUDY[part]:
            jobs |= {str(job.config): job for job in batch.jobs()}
    return list(jobs.values())
