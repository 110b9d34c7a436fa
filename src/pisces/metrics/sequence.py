"""Metrics between the states of two trajectories of deterministic environments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from pisces.errors import UserError, unknown_name
from pisces.validation import check_discount, check_finite

FloatArray = NDArray[np.float64]
Last = Literal["self-loop", "stop"]


def sequence_metric(cost: ArrayLike, discount: float, last: Last = "self-loop") -> FloatArray:
    """Metric between all states of two trajectories, by one pass from their ends to their starts.

    d[i, j] = cost[i, j] + discount * d[min(i + 1, n - 1), min(j + 1, m - 1)]      (Eq. 3 for deterministic
    dynamics, arXiv:2101.05265): the shorter trajectory waits in its last state. The last pair leads to itself with
    `last="self-loop"`, so d[n-1, m-1] = cost[n-1, m-1] / (1 - discount), and to nothing with `last="stop"`, which is
    the paper's pseudo-code.

    Args:
        cost: the cost of every pair of states, [n, m], or of many pairs of trajectories at once, [..., n, m].
        discount: in [0, 1).
        last: what follows the last pair.

    Returns:
        The distance of every pair, float64, in the shape of `cost`.
    """
    costs = np.ascontiguousarray(cost, dtype=np.float64)
    if costs.ndim < 2 or 0 in costs.shape[-2:]:
        raise UserError(f"expected a cost matrix [n, m] with n, m >= 1, got shape {costs.shape}")
    check_finite("costs", costs)
    factor = _last_factor(discount, last)
    distance = np.empty_like(costs)
    _reverse_pass(
        costs.reshape(-1, *costs.shape[-2:]), float(discount), factor, distance.reshape(-1, *costs.shape[-2:])
    )
    return distance


def sequence_metrics(costs: Sequence[ArrayLike], discount: float, last: Last = "self-loop") -> list[FloatArray]:
    """Metrics of many pairs of trajectories of any lengths; pairs of equal shape are solved together.

    Args:
        costs: one cost matrix [n_k, m_k] per pair.
        discount: in [0, 1).
        last: what follows the last pair; see `sequence_metric`.

    Returns:
        One distance matrix [n_k, m_k] per pair, in the order of `costs`.
    """
    _last_factor(discount, last)
    matrices = [np.asarray(cost, dtype=np.float64) for cost in costs]
    wrong = [matrix.shape for matrix in matrices if matrix.ndim != 2]
    if wrong:
        raise UserError(f"expected one cost matrix [n, m] per pair, got one of shape {wrong[0]}")
    groups: dict[tuple[int, ...], list[int]] = {}
    for index, matrix in enumerate(matrices):
        groups.setdefault(matrix.shape, []).append(index)
    distances: dict[int, FloatArray] = {}
    for indices in groups.values():
        solved = sequence_metric(np.stack([matrices[index] for index in indices]), discount, last)
        distances |= dict(zip(indices, solved, strict=True))
    return [distances[index] for index in range(len(matrices))]


def _last_factor(discount: float, last: str) -> float:
    check_discount(discount)
    if last not in ("self-loop", "stop"):
        raise unknown_name("last", last, ("self-loop", "stop"))
    return 1 / (1 - float(discount)) if last == "self-loop" else 1.0


@numba.njit(cache=True, nogil=True)
def _reverse_pass(cost: FloatArray, discount: float, last_factor: float, distance: FloatArray) -> None:
    pairs, n, m = cost.shape
    for p in range(pairs):
        distance[p, n - 1, m - 1] = cost[p, n - 1, m - 1] * last_factor
        for j in range(m - 2, -1, -1):
            distance[p, n - 1, j] = cost[p, n - 1, j] + discount * distance[p, n - 1, j + 1]
        for i in range(n - 2, -1, -1):
            for j in range(m - 1):
                distance[p, i, j] = cost[p, i, j] + discount * distance[p, i + 1, j + 1]
            distance[p, i, m - 1] = cost[p, i, m - 1] + discount * distance[p, i + 1, m - 1]
