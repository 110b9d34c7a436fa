"""Distances between the states of two trajectories or MDPs, as files and a picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pisces.errors import UserError, unknown_name
from pisces.metrics import (
    FiniteMDP,
    behaviour_cost,
    compare_mdps,
    is_mdp_file,
    l1_distance,
    reward_difference,
    sequence_metric,
    total_variation,
)
from pisces.metrics.sequence import Last
from pisces.reports.figures import heat_map
from pisces.trajectories import Trajectory

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class MetricReport:
    """Distances and what follows from them."""

    distance: FloatArray
    """Distances, [n, m]."""
    name: str
    """The metric's name, or that of the cost it is built on."""
    error_bound: float = 0.0
    """Certified error of every distance."""

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
        np.savez_compressed(
            paths[0], distance=self.distance, nearest=self.nearest, error_bound=np.float64(self.error_bound)
        )
        rows = (f"{i},{j},{self.distance[i, j]:.9g}" for i, j in enumerate(self.nearest))
        paths[1].write_text("state_x,nearest_state_y,distance\n" + "\n".join(rows) + "\n")
        heat_map(self.distance, self.name, f"state of {name_x}", f"state of {name_y}").savefig(paths[2], dpi=130)
        return paths


def compare_files(
    x: Path, y: Path, discount: float, metric: str, cost: str, last: Last, tolerance: float | None
) -> MetricReport:
    """Measures distances between two files, both of trajectories or both of MDPs; see the functions below."""
    if is_mdp_file(x) and is_mdp_file(y):
        if cost != "auto" or last != "self-loop":
            raise UserError("expected --metric for MDP files, got --cost or --last, which are for trajectories")
        mdp_x = FiniteMDP.load(x)
        mdp_y = mdp_x if x.resolve() == y.resolve() else FiniteMDP.load(y)
        error = 1e-6 if tolerance is None else tolerance
        found = compare_mdps(mdp_x, mdp_y, discount, metric, tolerance=error, progress=True)
        return MetricReport(found.result.distance, metric, found.result.error_bound)
    if is_mdp_file(x) != is_mdp_file(y):
        raise UserError(f"expected two trajectories or two MDPs, got one of each: {str(x)!r} and {str(y)!r}")
    if metric != "psm":
        raise UserError(
            f"expected an MDP file for the metric {metric!r}, got trajectories; for rewards use --cost reward"
        )
    if tolerance is not None:
        raise UserError("expected no --tolerance for trajectories, whose distances are exact; it is for MDP files")
    return compare_trajectories(Trajectory.load(x), Trajectory.load(y), discount, cost, last)


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
        "auto": lambda: behaviour_cost(x, y),
        "total-variation": lambda: total_variation(*_policies(x, y)),
        "l1": lambda: l1_distance(*_actions(x, y)),
        "reward": lambda: reward_difference(*_rewards(x, y)),
    }
    if cost not in costs:
        raise unknown_name("cost", cost, costs)
    return MetricReport(sequence_metric(costs[cost](), discount, last), "psm" if cost == "auto" else cost)


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
