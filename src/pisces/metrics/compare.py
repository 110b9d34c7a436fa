"""One call from two MDPs, or their files, to distances and nearest neighbours: what `pisces metric` does with MDPs."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from numpy.typing import ArrayLike

from pisces.errors import unknown_name
from pisces.metrics.markov import (
    MetricResult,
    bisimulation_metric,
    pi_bisimulation_metric,
    policy_similarity_metric,
)
from pisces.metrics.mdp import FILE_KEYS, FiniteMDP
from pisces.metrics.mico import mico_distance
from pisces.metrics.transfer import Neighbours, nearest_neighbours

ON_POLICY: dict[str, Callable[..., MetricResult]] = {
    "psm": policy_similarity_metric,
    "pi-bisimulation": pi_bisimulation_metric,
    "mico": mico_distance,
}
MDP_METRICS = (*ON_POLICY, "bisimulation")
"""Names of the metrics between MDPs."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two MDPs compared."""

    metric: str
    """Name of the metric."""
    result: MetricResult
    """Distances and their certified error."""
    neighbours: Neighbours
    """The nearest states in both directions."""


def compare_mdps(
    mdp_x: FiniteMDP,
    mdp_y: FiniteMDP,
    discount: float,
    metric: str = "psm",
    *,
    policy_x: ArrayLike | None = None,
    policy_y: ArrayLike | None = None,
    tolerance: float = 1e-6,
    neighbours: int = 1,
    progress: bool = False,
) -> Comparison:
    """Computes a metric by name and the nearest neighbours under it.

    Args:
        mdp_x: the first MDP.
        mdp_y: the second MDP; the same object as `mdp_x` for distances within it.
        discount: in [0, 1).
        metric: "psm", "pi-bisimulation", "mico" or "bisimulation".
        policy_x: policy [n, A] of the first MDP; None for the optimal one. Bisimulation uses none.
        policy_y: policy [m, A] of the second MDP.
        tolerance: certified error at which to stop.
        neighbours: how many nearest states to list.
        progress: whether to show a progress bar (MICo shows none).

    Returns:
        Distances, certified error and nearest neighbours.
    """
    if metric not in MDP_METRICS:
        raise unknown_name("metric", metric, MDP_METRICS)
    options = {"tolerance": tolerance} | ({} if metric == "mico" else {"progress": progress})
    if metric == "bisimulation":
        result = bisimulation_metric(mdp_x, mdp_y, discount, **options)  # type: ignore[arg-type]
    else:
        result = ON_POLICY[metric](mdp_x, policy_x, mdp_y, policy_y, discount, **options)
    return Comparison(metric, result, nearest_neighbours(result.distance, neighbours))


def is_mdp_file(path: str | PathLike[str]) -> bool:
    """Whether an npz file holds the arrays of an MDP (as opposed to, say, a trajectory)."""
    if not Path(path).is_file() or not zipfile.is_zipfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            names = {Path(name).stem for name in archive.namelist()}
    except (zipfile.BadZipFile, RuntimeError):
        return False  # the loader says what is wrong with it
    return {"transitions", "rewards"} <= names or set(FILE_KEYS) <= names
