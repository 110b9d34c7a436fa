"""Direct solution of the linear system of fixed couplings, for chains on which sweeps converge slowly."""

from __future__ import annotations

import warnings

import numba
import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from pisces.metrics.exact import kernels
from pisces.metrics.exact.chain import FloatArray
from pisces.metrics.exact.records import Couplings, Problem

FILL = 20.0
"""Largest number of entries of the factors per entry of the system; beyond it the smallest ones are dropped."""
DROP = 1e-10
"""Entries of the factors below this share of their column are dropped."""
REFINEMENTS = 4
"""Largest number of corrections by the factors."""
NEAR = 1e-6
"""Share of the first residual that may remain."""


def solve_couplings(problem: Problem, couplings: Couplings, values: FloatArray) -> bool:
    """Moves distances to the solution of d = cost + discount * couplings @ d; returns whether they came near it.

    Args:
        problem: a `Problem`.
        couplings: `Couplings`.
        values: the distances to improve, [P]; they are only changed for the better.
    """
    system, cost = _system(problem, couplings)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scipy warns of a singular factor, which the residual tells as well
            factors = scipy.sparse.linalg.spilu(system, drop_tol=DROP, fill_factor=FILL)
    except RuntimeError:  # a zero pivot
        return False
    first = residual = cost - system @ values
    for _ in range(REFINEMENTS):
        better = values + factors.solve(residual)
        remaining = cost - system @ better
        if not np.abs(remaining).max() < 0.5 * np.abs(residual).max():
            break
        values[:], residual = better, remaining
    return bool(np.abs(residual).max() <= NEAR * np.abs(first).max())


def _system(problem: Problem, couplings: Couplings) -> tuple[scipy.sparse.csc_array, FloatArray]:
    count, actions = len(problem.first), problem.n_actions
    columns = (len(problem.y.pointer) - 1) // actions
    widest = kernels.widest_row(problem.x.pointer) + kernels.widest_row(problem.y.pointer)
    target, mass = np.empty((count, widest), np.int64), np.empty((count, widest))
    _coupling_cells(problem, couplings, target, mass)
    used = target >= 0
    rows = np.repeat(np.arange(count), used.sum(axis=1))
    keys = problem.first.astype(np.int64) * columns + problem.second
    entries = (mass[used], (rows, np.searchsorted(keys, target[used])))
    matrix = scipy.sparse.csc_array(entries, shape=(count, count))
    cost = problem.cost.reshape(count, actions)[np.arange(count), couplings.best]
    return scipy.sparse.eye_array(count, format="csc") - problem.discount * matrix, cost


@numba.njit(cache=True, nogil=True)
def _coupling_cells(problem, couplings, target, mass):  # type: ignore[no-untyped-def]
    """Lists the next pairs of the chosen coupling of every pair, as i * m + j or -1, and their masses, [P, widest].

    Args:
        problem: a `Problem`.
        couplings: `Couplings`.
        target: the next pairs; unused entries are -1.
        mass: their masses.
    """
    actions, shift = problem.n_actions, couplings.shift
    x, y, m = problem.x, problem.y, (len(problem.y.pointer) - 1) // problem.n_actions
    for k in range(len(problem.first)):
        action = np.int64(couplings.best[k])
        a, b = np.int64(problem.first[k]) * actions + action, np.int64(problem.second[k]) * actions + action
        base, used = np.int64(couplings.offset[k * actions + action]), 0
        for e in range(base, base + x.pointer[a + 1] - x.pointer[a] + y.pointer[b + 1] - y.pointer[b] - 1):
            cell = np.int64(couplings.cells[e])
            i = x.next_state[x.pointer[a] + (cell >> shift)]
            j = y.next_state[y.pointer[b] + (cell & ((1 << shift) - 1))]
            if problem.symmetric:
                i, j = min(i, j), max(i, j)
            if couplings.mass[e] > 0.0 and not (problem.symmetric and i == j):
                target[k, used], mass[k, used] = i * m + j, couplings.mass[e]
                used += 1
        target[k, used:] = -1
