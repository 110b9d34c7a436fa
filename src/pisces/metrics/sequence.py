"""Metrics between the states of two trajectories of deterministic environments."""

from __future__ import annotations

from typing import Literal

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from pisces.errors import UserError, unknown_name
from pisces.validation import as_reals, check_discount, check_finite

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
    costs = np.ascontiguousarray(as_reals("cost", cost))
    if costs.ndim < 2 or 0 in costs.shape[-2:]:
        raise UserError(f"expected a cost matrix [n, m] with n, m >= 1, got shape {costs.shape}")
    check_finite("costs", costs)
    factor = _last_factor(discount, last)
    distance = np.empty_like(costs)
    _reverse_pass(
        costs.reshape(-1, *costs.shape[-2:]), float(discount), factor, distance.reshape(-1, *costs.shape[-2:])
    )
    return distance


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
