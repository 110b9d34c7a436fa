"""Distances to landmarks: absorbing states that are in neither chain.

A landmark has one coupling with any state, so its distances b follow from one chain alone. If the cost satisfies the
triangle inequality, so does the metric: |b_x(i) - b_y(j)| <= d(i, j) <= b_x(i) + b_y(j).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse

from pisces.metrics.exact.chain import Chain, FloatArray, IndexArray

if TYPE_CHECKING:
    from pisces.metrics.exact.problem import Costs

SWEEPS = 400
"""Largest number of value iterations; the distances stay valid bounds if they have not converged."""


class Landmark(NamedTuple):
    """Distances to one landmark."""

    of_x: FloatArray
    """Distance of each state of X, [n]."""
    of_y: FloatArray
    """Distance of each state of Y, [m]."""
    error: float
    """Bound on the error of a sum of one distance of each, rounding included."""

    def bounds(self, first: IndexArray, second: IndexArray) -> tuple[FloatArray, FloatArray]:
        """Returns lower and upper bounds of the distances of pairs."""
        x, y = self.of_x[first], self.of_y[second]
        return np.abs(x - y) - self.error, x + y + self.error


def landmarks(
    chain_x: Chain, chain_y: Chain, costs: Costs, discount: float, tolerance: float, cost_rounding: float
) -> list[Landmark]:
    """Returns landmarks whose distances are accurate to a small share of the tolerance, if that is soon reached."""
    found = []
    for cost_x, cost_y in costs.landmarks():
        of_x, error_x = _distances(chain_x, cost_x, discount, 1e-3 * tolerance)
        same = chain_x is chain_y and np.array_equal(cost_x, cost_y)
        of_y, error_y = (of_x, error_x) if same else _distances(chain_y, cost_y, discount, 1e-3 * tolerance)
        found.append(Landmark(of_x, of_y, error_x + error_y + 2 * cost_rounding / (1 - discount)))
    return found


def _distances(chain: Chain, cost: FloatArray, discount: float, tolerance: float) -> tuple[FloatArray, float]:
    # b(i) = max_a cost(i, a) + discount * sum_j P(j | i, a) b(j)
    rows = scipy.sparse.csr_array(
        (chain.probability, chain.next_state, chain.pointer), shape=(len(chain.pointer) - 1, chain.n_states)
    )
    values = np.full(chain.n_states, float(cost.mean()) / (1 - discount))
    for _ in range(SWEEPS):
        image = (cost + discount * (rows @ values).reshape(cost.shape)).max(axis=1)
        change = float(np.abs(image - values).max())
        values = image
        if discount * change <= tolerance * (1 - discount):
            break
    hidden = 2.0**-53 * 8 * (chain.widest + 1) * float(np.abs(values).max())
    return values, (discount * change + hidden) / (1 - discount)
