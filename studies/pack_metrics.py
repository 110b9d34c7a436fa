"""Writes the metrics between jumping tasks, which the report page looks up; run without arguments (half a minute)."""

from __future__ import annotations

from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.envs.jumping import JumpingTask
from pisces.envs.jumping.grids import GRID_HEIGHTS, GRID_POSITIONS
from pisces.experiments.jumping.data import task_metrics
from pisces.experiments.jumping.mdp import episode_bisimulation
from pisces.experiments.jumping.report import page

DECIMALS = 6
"""Distances are rounded to this many decimals, so that equal ones are stored once."""


def metric_arrays(name: str) -> dict[str, NDArray[Any]]:
    """Returns the distances of all pairs of tasks: different values, and places among them [pairs, 56, 56]."""
    tasks = [JumpingTask(position, GRID_HEIGHTS[0]) for position in GRID_POSITIONS]
    pairs = list(combinations_with_replacement(tasks, 2))
    arrays: dict[str, NDArray[Any]] = {}
    for discount in page.metric_discounts(name):
        if name == "bisimulation":
            distances = np.stack([episode_bisimulation(x, y, discount) for x, y in pairs])
        else:
            distances = task_metrics(pairs, name, discount)
        values, index = np.unique(distances.round(DECIMALS), return_inverse=True)
        arrays[f"{name}_values_{discount}"] = values
        arrays[f"{name}_index_{discount}"] = index.reshape(distances.shape).astype(np.uint16)
    return arrays


if __name__ == "__main__":
    found = {key: array for name in page.METRICS for key, array in metric_arrays(name).items()}
    np.savez_compressed(Path(page.__file__).parent / "page_assets" / page.METRICS_FILE, **found)
