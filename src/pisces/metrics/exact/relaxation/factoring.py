"""Direct solution of the linear system of fixed couplings, for chains on which sweeps converge slowly."""

from __future__ import annotations

import warnings

import numba
import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from pisces.metrics.exact.chain import FloatArray, IndexArray
from pisces.metrics.exact.records import Couplings, Problem
from pisces.metrics.exact.relaxation.elimination import DONE, WIDE, Elimination, backward, eliminate, forward

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
    weights, cost = _system(problem, couplings)
    try:
        factors = Factors(weights)
    except RuntimeError:  # a zero pivot
        return False
    first = residual = cost - values + weights @ values
    for _ in range(REFINEMENTS):
        better = values + factors.solve(residual)
        remaining = cost - better + weights @ better
        if not np.abs(remaining).max() < 0.5 * np.abs(residual).max():
            break
        values[:], residual = better, remaining
        if np.abs(residual).max() <= NEAR * np.abs(first).max():
            return True
    return False


class Factors:
    """Factors of the identity minus sparse weights: cheap unknowns by `eliminate`, the rest by an incomplete LU."""

    def __init__(self, weights: scipy.sparse.csr_array) -> None:
        self._system = eliminate(weights.indptr.astype(np.int64), weights.indices.astype(np.int64), weights.data)
        self._rest = np.flatnonzero(self._system.state != DONE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scipy warns of a singular factor, which the residual tells as well
            rest = _remaining(self._system, self._rest, weights)
            self._lower = scipy.sparse.linalg.spilu(rest, drop_tol=DROP, fill_factor=FILL) if rest.nnz else None

    def solve(self, right: FloatArray) -> FloatArray:
        """The solution for one right-hand side."""
        values = right.copy()
        forward(self._system, values)
        if self._lower is not None:
            values[self._rest] = self._lower.solve(values[self._rest])
        backward(self._system, values)
        return values


def _remaining(system: Elimination, rest: IndexArray, weights: scipy.sparse.csr_array) -> scipy.sparse.csc_array:
    # The system of the unknowns that were not eliminated.
    place = np.empty(len(system.state), np.int64)
    place[rest] = np.arange(len(rest))
    stored = rest[system.state[rest] != WIDE]
    lengths = system.n_columns[stored]
    used = np.arange(system.column.shape[1]) < lengths[:, None]
    rows, columns = np.repeat(place[stored], lengths), place[system.column[stored][used]]
    matrix = scipy.sparse.coo_array((-system.weight[stored][used], (rows, columns)), shape=(len(rest),) * 2)
    wide = rest[system.state[rest] == WIDE]
    own = scipy.sparse.csr_array(weights[wide]).tocoo()
    outside = wide[own.row] != own.col
    entries = (-own.data[outside], (place[wide][own.row[outside]], place[own.col[outside]]))
    matrix = matrix + scipy.sparse.coo_array(entries, shape=matrix.shape)
    return scipy.sparse.csc_array(matrix + scipy.sparse.diags_array(system.diagonal[rest]))


def _system(problem: Problem, couplings: Couplings) -> tuple[scipy.sparse.csr_array, FloatArray]:
    # The discounted weights of the next pairs of every pair, and the costs.
    count, actions = len(problem.first), problem.n_actions
    shape = tuple((len(rows.pointer) - 1) // actions for rows in (problem.x, problem.y))
    index = np.full(shape, -1, np.int32)
    index[problem.first, problem.second] = np.arange(count)
    pointer, target, mass = (
        np.zeros(count + 1, np.int64),
        *(np.empty(len(couplings.mass), t) for t in (np.int32, float)),
    )
    used = _coupling_cells(problem, couplings, index, pointer, target, mass)
    weights = scipy.sparse.csr_array((problem.discount * mass[:used], target[:used], pointer), shape=(count, count))
    cost = problem.cost.reshape(count, actions)[np.arange(count), couplings.best]
    return weights, cost


@numba.njit(cache=True, nogil=True)
def _coupling_cells(problem, couplings, index, pointer, target, mass):  # type: ignore[no-untyped-def]
    """Lists the next pairs of the chosen coupling of every pair and their masses, as sparse rows.

    Args:
        problem: a `Problem`.
        couplings: `Couplings`.
        index: the index of every pair (i, j), [n, m].
        pointer: row k occupies entries pointer[k] to pointer[k + 1] of `target` and `mass`, [P + 1].
        target: the indices of the next pairs.
        mass: their masses.

    Returns:
        The number of entries.
    """
    actions, shift, used = problem.n_actions, couplings.shift, 0
    x, y = problem.x, problem.y
    for k in range(len(problem.first)):
        action = np.int64(couplings.best[k])
        a, b = np.int64(problem.first[k]) * actions + action, np.int64(problem.second[k]) * actions + action
        base = np.int64(couplings.offset[k * actions + action])
        for e in range(base, base + x.pointer[a + 1] - x.pointer[a] + y.pointer[b + 1] - y.pointer[b] - 1):
            cell = np.int64(couplings.cells[e])
            i = x.next_state[x.pointer[a] + (cell >> shift)]
            j = y.next_state[y.pointer[b] + (cell & ((1 << shift) - 1))]
            if problem.symmetric:
                i, j = min(i, j), max(i, j)
            if couplings.mass[e] > 0.0 and not (problem.symmetric and i == j):
                target[used], mass[used] = index[i, j], couplings.mass[e]
                used += 1
        pointer[k + 1] = used
    return used
