"""The metric of epsilon-suboptimal policies, for docs/reproduction_details.md: ``python studies/jumping_epsilon.py``.

Two definitions between the optimal episodes of the wide grid's tasks: along the optimal episodes, and with the
policies' own transitions on the whole MDPs, as Prop. C.3 (arXiv:2101.05265) has it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from numpy.typing import NDArray

from pisces.agents.imitation.settings import ImitationSettings
from pisces.envs.jumping import JumpingTask, split_tasks
from pisces.experiments.jumping.data import task_metrics
from pisces.experiments.jumping.mdp import jumping_mdp, suboptimal_policy
from pisces.metrics import approximation_bound
from pisces.reports.tables import markdown
from pisces.runs.store import write_atomically

EPSILONS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
METRICS: Mapping[str, str] = {"psm": "along optimal episodes", "psm-mdp": "own transitions"}
FILE = "epsilon_metric.json"
ZERO = 1e-9
"""Distances below are zero up to the solver's error."""

FloatArray = NDArray[np.float64]


def task_pairs() -> list[tuple[JumpingTask, JumpingTask]]:
    """Pairs of training tasks of the wide grid with different obstacle positions; the floor does not matter."""
    positions = sorted({task.obstacle_position for task in split_tasks("wide").train})
    return [(JumpingTask(x, 10), JumpingTask(y, 10)) for x, y in combinations(positions, 2)]


def nearest(distance: FloatArray) -> NDArray[np.int64]:
    """The positives of Eq. 4 in both directions, in the loss's precision: the first of equals; [P, 112]."""
    single = distance.astype(np.float32)
    return np.concatenate([single.argmin(axis=2), single.argmin(axis=1)], axis=1)


@cache
def proposition_bound(x: JumpingTask, y: JumpingTask, discount: float, epsilon: float) -> FloatArray:
    """The right side of Prop. C.3 between the states of two optimal episodes, [56, 56]."""
    tasks = [jumping_mdp(task.obstacle_position) for task in (x, y)]
    policies = [[suboptimal_policy(task.mdp, discount, e) for task in tasks] for e in (0.0, epsilon)]
    bound = approximation_bound([task.mdp for task in tasks], *policies, discount=discount)
    return bound[np.ix_(tasks[0].episode, tasks[1].episode)]


def measure(epsilon: float, metric: str, settings: ImitationSettings = ImitationSettings()) -> dict[str, Any]:  # noqa: B008 (frozen)
    """Compares a metric of epsilon-suboptimal policies with the PSM of optimal ones, over all pairs of tasks."""
    pairs = task_pairs()
    exact = task_metrics(pairs, "psm", settings.discount)
    found = task_metrics(pairs, metric, settings.discount, epsilon)
    differ = exact > ZERO
    weights = -np.expm1(-found[differ] / settings.scale)
    bound = np.stack([proposition_bound(x, y, settings.discount, epsilon) for x, y in pairs])
    error = np.abs(found - exact)
    return {
        "epsilon": epsilon,
        "metric": metric,
        "same_nearest_percent": 100 * float((nearest(found) == nearest(exact)).mean()),
        "largest_distance_of_equals": float(found[~differ].max()),
        "smallest_distance_of_others": float(found[differ].min()),
        "mean_distance_of_others": float(found[differ].mean()),
        "mean_weight": float(weights.mean()),
        "weights_below_half_percent": 100 * float((weights < 0.5).mean()),
        "largest_error": float(error.max()),
        "largest_bound": float(bound.max()),
        "bound_holds": bool((error <= bound + ZERO).all()),
    }


def epsilon_metric_table(root: Path) -> str:
    """Both metrics by epsilon, as the script measured them."""
    path = root / "jumping" / FILE
    if not path.is_file():
        return "Not measured yet.\n"
    content = json.loads(path.read_text())
    rows = [_cells(row) for row in content["rows"]]
    header = ["ε", "metric", "positives as with ε = 0 (%)", "smallest distance", "mean distance", "mean weight"]
    header += ["weights below 1/2 (%)", "largest error", "largest bound (Prop. C.3)"]
    numbers = f"discount {content['discount']:g}, β = {content['scale']:g}"
    note = f"{content['pairs']} pairs of the wide grid's tasks, {numbers}."
    note += " Distances and weights are those of pairs of states whose distance is above zero with ε = 0."
    return f"{note}\n\n{markdown(header, rows)}"


def _cells(row: Mapping[str, Any]) -> list[str]:
    return [
        f"{row['epsilon']:g}",
        METRICS[row["metric"]],
        f"{row['same_nearest_percent']:.1f}",
        _number(row["smallest_distance_of_others"]),
        _number(row["mean_distance_of_others"]),
        f"{row['mean_weight']:.3f}",
        f"{row['weights_below_half_percent']:.1f}",
        f"{row['largest_error']:.2f}",
        f"{row['largest_bound']:.1f}",
    ]


def _number(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}" if value else "0"


def main(out: Path = Path("results")) -> None:
    """Compare the two metrics of suboptimal policies, in seconds.

    Args:
        out: Root of the results.
    """
    settings = ImitationSettings()
    rows = [measure(epsilon, metric, settings) for epsilon in EPSILONS for metric in METRICS]
    path = out / "jumping" / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"pairs": len(task_pairs()), "discount": settings.discount, "scale": settings.scale, "rows": rows}
    write_atomically(path, json.dumps(content, indent=1, sort_keys=True) + "\n")
    print(path)


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
