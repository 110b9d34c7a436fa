"""Table 3 with the preset `cpu`: ``python studies/distracting_study.py --workers 2 --out results``.

Runs come in the order of their weight: five seeds of two tasks, one seed of every task, DrQ trained
for longer, then the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from distracting_ablation import ablation_configs
from distracting_longer import longer_configs
from distracting_paper_size import paper_size_config
from pisces.cli.sweep import SweepOptions, run_sweep
from pisces.envs.distracting.tasks import PAPER_TASKS
from pisces.experiments.distracting.config import DistractingConfig
from pisces.experiments.distracting.experiment import Distracting

FIRST = ("cartpole-swingup", "ball_in_cup-catch")
SEEDS = {"cheetah-run": 3, "walker-walk": 3}
"""Tasks with fewer than five seeds: their episodes take longest."""
BASELINES = ("sac", "drq+randconv", "drq+randconv+pse", "drqv2", "drqv2+pse")


def study_configs() -> list[DistractingConfig]:
    """All runs, each after the one that it needs, every run once."""
    rest = [task for task in PAPER_TASKS if task not in FIRST]
    parts = [
        *(_runs([task], range(5)) for task in FIRST),
        _runs(rest, range(1)),
        longer_configs(),
        *(_runs([task], range(SEEDS.get(task, 5))) for task in rest),
        _runs(FIRST, range(3), init="pretrained"),
        *(_runs(FIRST[:1], range(2), [method]) for method in BASELINES),
        ablation_configs(),
        [paper_size_config()],
    ]
    return list(dict.fromkeys(config for part in parts for config in part))


def _runs(
    tasks: Sequence[str], seeds: Sequence[int], methods: Sequence[str] = ("drq", "drq+pse"), init: str = "random"
) -> list[DistractingConfig]:
    axes = {"task": list(tasks), "init": [init]}
    return Distracting().sweep_configs(methods, list(seeds), "cpu", axes, {})


def main(
    common: Annotated[SweepOptions, tyro.conf.arg(name="")] = SweepOptions(out=Path("results")),  # noqa: B008 (frozen)
) -> None:
    """Train everything behind the tables of Distracting Control.

    Args:
        common: Where and how the runs are done.
    """
    run_sweep(Distracting(), study_configs(), common)


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
