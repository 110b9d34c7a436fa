"""Why aggregation removes distractors: ``python studies/lqr_ablation.py --out results`` runs the cells of docs/lqr.md.

All cells have 500 distractors and seeds that the table of results leaves out; the methods' coefficients were chosen on
their validation environments.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import tyro

from pisces.cli.sweep import SweepOptions, run_sweep
from pisces.experiments.lqr.config import FIRST_TUNING_SEED, LQRConfig
from pisces.experiments.lqr.experiment import LQR

DISTRACTORS = 500
COEFFICIENTS = (1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8)
SPARSITIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
ENVIRONMENTS = (3, 4, 8)
STABLE_STEPS = {"gradient-descent": 0.15, "momentum": 0.3}
"""Largest stable learning rate of gradient descent, times the coefficient: larger ones diverge along W_x - W_y."""
LARGEST = {"gradient-descent": 1e3, "momentum": 1e4}
"""Coefficients beyond these would take more than 100,000 steps."""
SLOWEST = 1e2
"""Coefficients below this don't limit the learning rate."""


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


def ablation_configs(seed: int = FIRST_TUNING_SEED, n_seeds: int = 5) -> list[LQRConfig]:
    """Returns all cells: coefficients by optimizer, numbers of environments, sparsities, IPO with more patience."""

    def config(method: str, environments: int = 2, **changes: Any) -> LQRConfig:
        return LQRConfig.make(
            method,
            "paper",
            seed=seed,
            n_seeds=n_seeds,
            distractors=DISTRACTORS,
            environments=environments,
            changes=changes,
        )

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


def main(
    common: Annotated[SweepOptions, tyro.conf.arg(name="")] = SweepOptions(out=Path("results")),  # noqa: B008 (frozen)
) -> None:
    """Run the ablation of linear control.

    Args:
        common: Where and how the runs are done.
    """
    run_sweep(LQR(), ablation_configs(), common)


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
