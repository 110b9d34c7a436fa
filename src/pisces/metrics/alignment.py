"""Agreement between the nearest neighbors in an embedding and by a metric."""

from __future__ import annotations

import numbers

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pisces.errors import UserError
from pisces.validation import as_reals, check_finite

FloatArray = NDArray[np.float64]
TOLERANCE = 1e-6
"""Distances that differ by less count as equally near."""


def cosine_distance(embeddings_x: ArrayLike, embeddings_y: ArrayLike) -> FloatArray:
    """One minus the cosine of every pair of embeddings, [n, k] and [m, k] -> [n, m]; a zero vector is at distance 1."""
    x, y = (as_reals("embeddings", rows) for rows in (embeddings_x, embeddings_y))
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        raise UserError(f"expected embeddings [n, k] and [m, k], got {x.shape} and {y.shape}")
    for rows in (x, y):
        check_finite("embeddings", rows)
    unit_x, unit_y = (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12) for rows in (x, y))
    return np.asarray(1 - unit_x @ unit_y.T)


def neighbor_regrets(distance: ArrayLike, metric: ArrayLike) -> FloatArray:
    """Excess metric distance of each state's neighbor in the embedding over its nearest state.

    regret(i) = metric[i, argmin_j distance[i, j]] - min_j metric[i, j], and in the same way for y.

    Args:
        distance: distances in the embedding, [n, m].
        metric: behavioral distances, [n, m].

    Returns:
        The regrets, non-negative, [n + m].
    """
    learned, true = as_reals("distances", distance), as_reals("metric", metric)
    if learned.ndim != 2 or learned.shape != true.shape or 0 in learned.shape:
        raise UserError(f"expected two matrices of one shape [n, m], got {learned.shape} and {true.shape}")
    check_finite("distances", learned)
    check_finite("metric", true)
    rows = true[np.arange(len(true)), learned.argmin(axis=1)] - true.min(axis=1)
    columns = true[learned.argmin(axis=0), np.arange(true.shape[1])] - true.min(axis=0)
    return np.concatenate([rows, columns])


def alignment_score(distance: ArrayLike, metric: ArrayLike, *, tolerance: float = TOLERANCE) -> float:
    """Share of states whose neighbor in the embedding is also a nearest one by the metric, in [0, 1].

    A state counts if its regret (see `neighbor_regrets`) is at most the tolerance; states of both trajectories count.

    Example:
        >>> alignment_score([[0.1, 0.9], [0.8, 0.2]], [[0, 1], [1, 0]])
        1.0

    Args:
        distance: distances in the embedding, [n, m].
        metric: behavioral distances, [n, m].
        tolerance: largest regret of an aligned state.
    """
    if not (isinstance(tolerance, numbers.Real) and tolerance >= 0):
        raise UserError(f"tolerance must be >= 0, got {tolerance!r}")
    return float((neighbor_regrets(distance, metric) <= tolerance).mean())
