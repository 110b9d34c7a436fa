"""Costs of pairs of states: as tables of all pairs, or of listed pairs only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pisces.errors import UserError
from pisces.metrics.costs import Cost, l1_distance, reward_difference, total_variation
from pisces.metrics.exact.chain import FloatArray, IndexArray
from pisces.metrics.exact.problem import check_cost, cost_table, is_symmetric

PSEUDOMETRICS = (total_variation, l1_distance, reward_difference)
"""Costs that are known to be symmetric and to satisfy the triangle inequality."""
ANCHORED_DIMENSIONS = 6
"""Number of dimensions of features whose largest values give anchors."""
BLOCK = 16
"""Number of pairs per call of a user's cost function; it computes the square of it and the diagonal is kept."""
ROW_ENTRIES = 1 << 20
"""Number of costs that are computed at once to find their range."""


@dataclass(frozen=True)
class FeatureCosts:
    """Costs given by a function of the features of two states."""

    cost: Cost
    """Returns the cost of every pair of rows of two arrays; of a pair, it may depend on its two rows alone."""
    features: Sequence[tuple[FloatArray, FloatArray]]
    """For every action, the features of the states of X, [n, ...], and of Y, [m, ...]."""

    def tables(self) -> list[FloatArray]:
        """The cost of every pair of states, [n, m] for every action."""
        return [cost_table(self.cost, x, y) for x, y in self.features]

    def of_pairs(self, first: IndexArray, second: IndexArray) -> FloatArray:
        """The cost of every listed pair and action, [k, A]."""
        return np.stack([_paired(self.cost, x[first], y[second]) for x, y in self.features], axis=1)

    def bounds(self) -> tuple[float, float]:
        """A lower and an upper bound of all costs."""
        found = [_bounds(self.cost, x, y) for x, y in self.features]
        return min(low for low, _ in found), max(high for _, high in found)

    def symmetric(self) -> bool:
        """Whether cost(i, j) = cost(j, i) >= 0 and cost(i, i) = 0 are known to hold within one chain."""
        return self.cost in PSEUDOMETRICS and all(x is y or np.array_equal(x, y) for x, y in self.features)

    def landmarks(self) -> list[tuple[FloatArray, FloatArray]]:
        """The costs between every state, [n, A] and [m, A], and some features; none if they may break the triangle."""
        if self.cost not in PSEUDOMETRICS:
            return []
        anchors = zip(*(_anchors(x) for x, _ in self.features), strict=True)
        return [
            (
                np.hstack([self.cost(x, anchor) for (x, _), anchor in zip(self.features, chosen, strict=True)]),
                np.hstack([self.cost(y, anchor) for (_, y), anchor in zip(self.features, chosen, strict=True)]),
            )
            for chosen in anchors
        ]


@dataclass(frozen=True)
class MatrixCosts:
    """Costs given as a matrix [n, m]."""

    matrix: FloatArray
    """The cost of every pair of states."""

    def tables(self) -> list[FloatArray]:
        """The matrix, for the only action."""
        return [self.matrix]

    def of_pairs(self, first: IndexArray, second: IndexArray) -> FloatArray:
        """The cost of every listed pair, [k, 1]."""
        return self.matrix[first, second][:, None]

    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest cost."""
        return float(self.matrix.min()), float(self.matrix.max())

    def symmetric(self) -> bool:
        """Whether cost(i, j) = cost(j, i) >= 0 and cost(i, i) = 0."""
        return is_symmetric([self.matrix])

    def landmarks(self) -> list[tuple[FloatArray, FloatArray]]:
        """None: the triangle inequality of a matrix is not known."""
        return []


def _anchors(features: FloatArray) -> list[FloatArray]:
    # Features [1, ...] that many states are close to, and extreme ones.
    if features.dtype.kind in "iu":  # labels
        found, counts = np.unique(features, return_counts=True)
        return [found[[one]] for one in np.argsort(-counts, kind="stable")[:ANCHORED_DIMENSIONS]]
    if features.ndim == 1:
        return [np.array([value]) for value in (np.median(features), features.max(), features.min())]
    extremes = features[:, :ANCHORED_DIMENSIONS].argmax(axis=0)
    return [features.mean(axis=0, keepdims=True), *(features[[state]] for state in extremes)]


def _paired(cost: Cost, x: FloatArray, y: FloatArray) -> FloatArray:
    if cost is total_variation:
        return 0.5 * _l1_rows(x, y) if x.ndim == 2 else np.asarray(x != y, dtype=np.float64)
    if cost is reward_difference or cost is l1_distance:
        return _l1_rows(x, y)
    values = np.empty(len(x))
    for start in range(0, len(x), BLOCK):
        a, b = x[start : start + BLOCK], y[start : start + BLOCK]
        values[start : start + BLOCK] = check_cost(cost(a, b), (len(a), len(b))).diagonal()
    if len(x) and check_cost(cost(x[:1], y[:1]), (1, 1))[0, 0] != values[0]:
        raise UserError(
            "the cost of a pair depends on other pairs; with pairs=..., it may depend on its two rows alone"
        )
    return values


def _l1_rows(x: FloatArray, y: FloatArray) -> FloatArray:
    # Summed in the order of `_pairwise_l1`, so that a pair costs the same in a table and in a list.
    if x.ndim == 1:
        return np.abs(x - y)
    total = np.zeros(len(x))
    for column_x, column_y in zip(x.T, y.T, strict=True):
        total += np.abs(column_x - column_y)
    return total


def _bounds(cost: Cost, x: FloatArray, y: FloatArray) -> tuple[float, float]:
    if cost is total_variation:
        return 0.0, 1.0 + 1e-12
    if cost is reward_difference or cost is l1_distance:
        spans = np.maximum(np.abs(x.max(axis=0) - y.min(axis=0)), np.abs(y.max(axis=0) - x.min(axis=0)))
        return 0.0, float(np.sum(spans)) * (1 + 1e-12)
    low, high, rows = np.inf, -np.inf, max(1, ROW_ENTRIES // len(y))
    for start in range(0, len(x), rows):
        block = cost_table(cost, x[start : start + rows], y)
        low, high = min(low, float(block.min())), max(high, float(block.max()))
    return low, high
