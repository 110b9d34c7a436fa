"""Adam's second moment under the aggregation loss: ``python studies/lqr_moments.py`` measures it for docs/lqr.md.

For the first layer's weights on the state and on the distractors, early in training: the root of Adam's second moment,
how far the weights have moved, and later the norm of the policy's columns.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from lqr_ablation import DISTRACTORS
from pisces.agents.linear.training import TwoLayerPolicies
from pisces.cli.lists import parse_seeds
from pisces.experiments.lqr.config import LQRConfig
from pisces.experiments.lqr.data import initial_policies, policy_matrix, training_batch
from pisces.files import write_atomically
from pisces.runs.machine import machine_info

COEFFICIENTS = (0.0, 1e3, 1e5, 1e7)
EARLY, LATE = 20, 100
"""Steps at which the moments and the policy are looked at."""
FILE = "moments.json"


def measure(seeds: Sequence[int], coefficient: float, distractors: int) -> dict[str, Any]:
    """Means over seeds at one coefficient; each number stands for the state and for the distractors, in this order."""
    config = LQRConfig.make(
        "psm", "paper", seed=seeds[0], distractors=distractors, changes={"aggregation": coefficient}
    )
    batch = training_batch(config, seeds)
    policies = initial_policies(config, seeds, batch)
    assert isinstance(policies, TwoLayerPolicies)
    states = batch.features.shape[-1] - distractors
    parts = (slice(None, states), slice(states, None))

    def sizes(weights: Any) -> list[float]:
        """Root mean square over weights [S, n, h], mean over seeds."""
        return [float(weights[:, part].square().mean(dim=(1, 2)).sqrt().mean()) for part in parts]

    start = policies.first.detach().clone()
    found: dict[str, Any] = {"coefficient": coefficient}
    for step in range(1, LATE + 1):
        policies.train_step(batch)
        if step == EARLY:
            second = policies.optimizers[0].state[policies.first]["exp_avg_sq"]
            # Adam divides by the root of the mean, which its second moment is once divided by this.
            unbiased = second / (1 - policies.optimizers[0].param_groups[0]["betas"][1] ** step)
            found |= {"roots": sizes(unbiased.sqrt()), "moved": sizes(policies.first.detach() - start)}
    matrices = [policy_matrix(layers) for layers in zip(*policies.layers(), strict=True)]
    norms = [[np.linalg.norm(matrix[:, part]) for part in parts] for matrix in matrices]
    return found | {"norms": np.mean(norms, axis=0).tolist()}


def main(seeds: str = "1000-1004", out: Path = Path("results")) -> None:
    """Measure Adam's second moment under the aggregation loss, in seconds.

    Args:
        seeds: Seeds of the mean.
        out: Root of the results.
    """
    numbers = parse_seeds(seeds)
    rows = [measure(numbers, coefficient, DISTRACTORS) for coefficient in COEFFICIENTS]
    path = out / "lqr" / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"distractors": DISTRACTORS, "seeds": list(numbers), "rows": rows, "machine": machine_info()}
    write_atomically(path, json.dumps(content, indent=1, sort_keys=True) + "\n")
    print(path)


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
