"""Does the gain come from PSEs or from more training? DrQ with as many environment steps as DrQ + PSEs use altogether:
``python studies/distracting_longer.py --workers 1 --out results``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import tyro

from pisces.cli.sweep import SweepOptions, run_sweep
from pisces.experiments.distracting.config import EPISODE_STEPS, DistractingConfig
from pisces.experiments.distracting.experiment import Distracting
from pisces.experiments.distracting.gains import DIFFERENCES
from pisces.experiments.distracting.tables import NO_RUNS, RETURNS
from pisces.reports.results import StoredRun
from pisces.reports.tables import Cell, Table

TASK, SEEDS = "cartpole-swingup", range(5)
PLAIN, SIMILAR = (DistractingConfig.make(method, "cpu", task=TASK) for method in ("drq", "drq+pse"))


def total_steps(config: DistractingConfig) -> int:
    """Environment steps of a run, of its pretraining run and of the pairs of episodes."""
    pairs = 2 * config.protocol.pairs * EPISODE_STEPS if config.has_pairs else 0
    return config.protocol.steps * (2 if config.needs_pretraining else 1) + pairs


LONGER = DistractingConfig.make(
    "drq",
    "cpu",
    task=TASK,
    changes={
        "steps": total_steps(SIMILAR),
        "evaluations": PLAIN.protocol.evaluations * total_steps(SIMILAR) // PLAIN.protocol.steps,
    },
)


def longer_configs() -> list[DistractingConfig]:
    """DrQ with all those steps, seed by seed."""
    return [replace(LONGER, seed=seed) for seed in SEEDS]


def longer_table(runs: Sequence[StoredRun]) -> str:
    """DrQ, DrQ with more steps, and DrQ + PSEs, on the seeds that all three have."""
    sides = [
        {run.config.seed: run for run in runs if run.config == replace(config, seed=run.config.seed)}
        for config in (PLAIN, LONGER, SIMILAR)
    ]
    seeds = sorted(set.intersection(*map(set, sides)))
    if not seeds:
        return NO_RUNS
    names = ("DrQ", "DrQ, trained for longer", "DrQ + PSEs")
    rows = []
    for name, config, side in zip(names, (PLAIN, LONGER, SIMILAR), sides, strict=True):
        values = {
            measure: [float(side[seed][measure]) for seed in seeds] for measure in ("train_return", "test_return")
        }
        gains = [float(side[seed]["test_return"]) - float(sides[1][seed]["test_return"]) for seed in seeds]
        cells = [_cell(values[measure], RETURNS) for measure in values]
        rows.append((name, f"{total_steps(config):,}", *cells, "" if side is sides[1] else _cell(gains, DIFFERENCES)))
    header = (
        "method",
        "environment steps",
        "training videos",
        "unseen videos",
        "difference to DrQ, trained for longer",
    )
    return Table("distracting_longer", "", "", header, tuple(rows)).body()


def _cell(values: Sequence[float], limits: tuple[float, float]) -> Cell:
    return Cell(tuple(values), None, "error", limits=limits, digits=0, compared=False)


def main(
    common: Annotated[SweepOptions, tyro.conf.arg(name="")] = SweepOptions(out=Path("results")),  # noqa: B008 (frozen)
) -> None:
    """Train DrQ for as many steps as DrQ + PSEs use with their pretraining run and pairs.

    Args:
        common: Where and how the runs are done.
    """
    run_sweep(Distracting(), longer_configs(), common)


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
