"""Optimal transport between two small discrete distributions, exactly.

W(C; p, q) = min over couplings M >= 0 with row sums p and column sums q of sum_rc M[r, c] C[r, c].

The metric solver calls the functions of `simplex` directly; this module solves one problem at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from pisces.errors import UserError
from pisces.metrics.exact.simplex.basis import COLUMN, DEMAND, MASS, ROW, SUPPLY, TREE_ROWS, start_basis
from pisces.metrics.exact.simplex.solve import solve_pair
from pisces.validation import as_reals

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MARGINAL_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Transport:
    """An optimal coupling and its value."""

    value: float
    """The Wasserstein distance: sum of coupling * cost."""

    coupling: FloatArray
    """The mass sent from each point to each point, [n, m]."""


def optimal_transport(cost: ArrayLike, masses_x: ArrayLike, masses_y: ArrayLike) -> Transport:
    """Solves one transport problem exactly (transportation simplex; closed forms for 1 x n and 2 x n).

    Args:
        cost: cost of every pair of points, [n, m]; any finite numbers.
        masses_x: non-negative masses [n]; zeros are allowed.
        masses_y: non-negative masses [m] with the same sum.

    Returns:
        The optimal value and one optimal coupling.
    """
    costs, p, q = as_reals("cost", cost), as_reals("masses_x", masses_x), as_reals("masses_y", masses_y)
    _check_problem(costs, p, q)
    rows, columns = np.flatnonzero(p > 0), np.flatnonzero(q > 0)
    coupling = np.zeros(costs.shape)
    if rows.size == 0:
        return Transport(0.0, coupling)
    # Scaled to exactly equal sums, so that a last digit of difference can't unbalance the problem.
    scaled = q[columns] * (p.sum() / q.sum())
    cell_rows, cell_columns, mass = _solve_once(np.ascontiguousarray(costs[np.ix_(rows, columns)]), p[rows], scaled)
    coupling[rows[cell_rows], columns[cell_columns]] = mass
    return Transport(float((coupling * costs).sum()), coupling)


def _check_problem(costs: FloatArray, p: FloatArray, q: FloatArray) -> None:
    if costs.ndim != 2 or p.shape != costs.shape[:1] or q.shape != costs.shape[1:]:
        raise UserError(f"expected cost [n, m] and masses [n] and [m], got {costs.shape}, {p.shape} and {q.shape}")
    if not (np.isfinite(costs).all() and np.isfinite(p).all() and np.isfinite(q).all()):
        raise UserError("expected finite costs and masses, got NaN or infinity")
    if (p < 0).any() or (q < 0).any():
        raise UserError(f"expected masses >= 0, got {min(p.min(initial=0), q.min(initial=0))}")
    if abs(p.sum() - q.sum()) > MARGINAL_TOLERANCE * max(p.sum(), q.sum()):
        raise UserError(f"expected masses with equal sums, got {p.sum()} and {q.sum()}")


@numba.njit(cache=True, nogil=True)
def _solve_once(cost: FloatArray, p: FloatArray, q: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    kx, ky = cost.shape
    tree, flow = np.empty((TREE_ROWS, kx + ky), np.int64), np.empty((5, kx + ky))
    flow[SUPPLY, :kx], flow[DEMAND, :ky] = p, q
    start_basis(cost, kx, ky, tree, flow)
    solve_pair(cost, kx, ky, tree, flow, 1e-14 * np.abs(cost).max())
    cells = kx + ky - 1
    return tree[ROW, :cells], tree[COLUMN, :cells], flow[MASS, :cells]
