"""Why aggregation removes distractors: `python -m pisces.experiments.lqr_ablation` runs the cells of docs/lqr.md.

All cells have 500 distractors and seeds that the table does not use; the coefficients of the methods' settings were
chosen on their validation environments.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import tyro

from pisces.experiments.lists import parse_seeds
from pisces.experiments.lqr import LQRConfig, make_config
from pisces.experiments.lqr_run import guarded, run_cells_with_display

DISTRACTORS = 500
COEFFICIENTS = (1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8)
SPARSITIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
ENVIRONMENTS = (3, 4, 8)
STABLE_STEPS = {"gradient-descent": 0.15, "momentum": 0.3}
"""Largest stable step size of gradient descent, times the coefficient: larger ones diverge along W_x - W_y."""
LARGEST = {"gradient-descent": 1e3, "momentum": 1e4}
"""Coefficients beyond these would take more than 100,000 steps."""
SLOWEST = 1e2
"""Coefficients below this don't limit the step size."""


def descent(optimizer: str, coefficient: float) -> dict[str, Any]:
    """Settings of gradient descent at a coefficient: steps are as large as is stable, and patience grows alike."""
    stiffness = max(coefficient, SLOWEST)
    patience = int(stiffness * (10 if optimizer == "gradient-descent" else 2))
    return {
        "optimizer": optimizer,
        "aggregation": coefficient,
        "learning_rate": STABLE_STEPS[optimizer] / stiffness,
        "patience": patience,
        "max_steps": 20 * patience + 5000,
        "precision": "float64",
    }


def ablation_configs(seeds: tuple[int, ...]) -> list[LQRConfig]:
    """All cells: coefficients by optimizers, numbers of environments, sparsities, and IPO without early stopping."""

    def config(method: str, environments: int = 2, **changes: Any) -> LQRConfig:
        made = make_config(method, DISTRACTORS, seeds, environments=environments, changes=changes)
        return replace(made, study=made.study or "ablation")  # else the preset's own cell would join the table

    configs = [config("psm", aggregation=value) for value in (0.0, *COEFFICIENTS)]
    configs += [config("l1", sparsity=value) for value in SPARSITIES]
    configs += [config("ipo", patience=5000), config("psm", precision="float64")]
    for count in ENVIRONMENTS:
        configs += [config("psm", count), config("psm", count, aggregation=0.0)]
        configs += [config("psm", count, **descent("momentum", SLOWEST))]
    for optimizer, largest in LARGEST.items():
        values = (0.0, *(value for value in COEFFICIENTS if value <= largest))
        configs += [config("psm", **descent(optimizer, value)) for value in values]
    return configs


def ablation(seeds: str = "1000-1004", workers: int = 2, out: Path = Path("results")) -> None:
    """Run the ablation of the LQR study.

    Args:
        seeds: seeds of every cell.
        workers: processes, each with one thread.
        out: root of the run folders.
    """
    run_cells_with_display(ablation_configs(tuple(parse_seeds(seeds))), out, workers)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs `ablation` from the command line; returns its exit code."""
    return guarded(lambda: tyro.cli(ablation, prog="python -m pisces.experiments.lqr_ablation", args=arguments))


if __name__ == "__main__":
    sys.exit(main())
