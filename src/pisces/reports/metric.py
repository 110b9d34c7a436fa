"""Distances between the states of two trajectories, as files and a picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pisces.errors import UserError, unknown_name
from pisces.metrics import l1_distance, reward_difference, sequence_metric, total_variation
from pisces.metrics.sequence import Last
from pisces.reports.figures import heat_map
from pisces.trajectories import Trajectory

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class MetricReport:
    """Distances and what follows from them."""

    distance: FloatArray
    """Distances, [n, m]."""
    cost: str
    """The cost they are built on."""

    @property
    def nearest(self) -> NDArray[np.int64]:
        """For each state of x, the nearest state of y (the first one if there are several), [n]."""
        return np.asarray(self.distance.argmin(axis=1), dtype=np.int64)

    def write(self, out: Path, name_x: str, name_y: str) -> list[Path]:
        """Writes the distances (npz), the nearest neighbours (csv) and the heat map (png)."""
        if out.exists() and not out.is_dir():
            raise UserError(f"expected an output folder, got {str(out)!r}, which is a file")
        out.mkdir(parents=True, exist_ok=True)
        paths = [out / "distance.npz", out / "nearest.csv", out / "heat_map.png"]
        np.savez_compressed(paths[0], distance=self.distance, nearest=self.nearest)
        rows = (f"{i},{j},{self.distance[i, j]:.9g}" for i, j in enumerate(self.nearest))
        paths[1].write_text("state_x,nearest_state_y,distance\n" + "\n".join(rows) + "\n")
        title = f"{self.cost.replace('-', ' ')} metric"
        heat_map(self.distance, title, f"state of {name_x}", f"state of {name_y}").savefig(paths[2], dpi=130)
        return paths


def compare_trajectories(
    x: Trajectory, y: Trajectory, discount: float, cost: str = "auto", last: Last = "self-loop"
) -> MetricReport:
    """Measures the distances between the states of two trajectories.

    Args:
        x: one trajectory.
        y: another.
        discount: of the metric.
        cost: "total-variation" (discrete policies), "l1" (continuous actions), "reward" (pi-bisimulation), or "auto",
            which takes the policy similarity metric's cost for the kind of actions.
        last: what follows the last pair of states; see `sequence_metric`.
    """
    costs: dict[str, Callable[[], FloatArray]] = {
        "total-variation": lambda: total_variation(*_policies(x, y)),
        "l1": lambda: l1_distance(*_actions(x, y)),
        "reward": lambda: reward_difference(*_rewards(x, y)),
    }
    if cost == "auto":
        cost = "l1" if x.policies is None and np.issubdtype(_actions(x, y)[0].dtype, np.floating) else "total-variation"
    if cost not in costs:
        raise unknown_name("cost", cost, [*costs, "auto"])
    return MetricReport(sequence_metric(costs[cost](), discount, last), cost)


def _policies(x: Trajectory, y: Trajectory) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    if x.policies is not None and y.policies is not None:
        return x.policies, y.policies
    return _actions(x, y)


def _actions(x: Trajectory, y: Trajectory) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    if x.actions is None or y.actions is None:
        raise UserError("expected actions in both trajectories, or policies in both, got a mixture")
    return x.actions, y.actions


def _rewards(x: Trajectory, y: Trajectory) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    if x.rewards is None or y.rewards is None:
        raise UserError("expected rewards in both trajectories, got none in one of them")
    return x.rewards, y.rewards
