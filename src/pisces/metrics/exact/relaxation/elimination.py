"""Gaussian elimination of the unknowns of a sparse linear system that cost little fill-in.

The system is diagonal[k] * x[k] - sum_q weight[k, q] * x[q] = right[k] with weights >= 0 and rows that are diagonally
dominant, so any order of elimination is stable. Unknowns with few rows and columns go first. Rows have a fixed number
of slots: an unknown whose elimination might need more of them stays, and so does everything that is too wide from the
start. What remains is a smaller system of the same kind.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from pisces.metrics.exact.chain import FloatArray, IntArray

SLOTS = 24
"""Largest number of entries of a row or column that elimination works on."""
PRODUCTS = (1, 2, 3, 4, 6, 9, 12, 16, 20, 25, 30, 36, 49, 64)
"""Each pass over the unknowns eliminates those with at most this number of rows times columns."""


class Elimination(NamedTuple):
    """The rows and columns of a system, as they were when each unknown was eliminated, or as they are left."""

    column: NDArray[np.int32]
    """The unknowns of each row besides its own, [P, SLOTS]."""
    weight: FloatArray
    """Their weights."""
    n_columns: IntArray
    """The number of them, [P]."""
    source: NDArray[np.int32]
    """The rows in which each unknown appears besides its own, [P, SLOTS]."""
    factor: FloatArray
    """For eliminated unknowns, the multiple of its own row that was added to each of these rows."""
    n_sources: IntArray
    """The number of them, [P]."""
    diagonal: FloatArray
    """The weight of each unknown in its own row, [P]."""
    state: NDArray[np.int8]
    """OPEN, FIXED (never eliminated), WIDE (fixed, and its row is not stored) or DONE."""
    order: IntArray
    """The unknowns in the order of elimination; -1 after the last one, [P]."""


OPEN, FIXED, WIDE, DONE = range(4)


def eliminate(pointer: IntArray, column: IntArray, weight: FloatArray) -> Elimination:
    """Eliminates unknowns of x - weights @ x = right, with the weights as sparse rows; see `Elimination`."""
    count = len(pointer) - 1
    slots, counts = (count, SLOTS), (np.zeros(count, np.int64), np.zeros(count, np.int64))
    indices = (np.empty(slots, np.int32), np.empty(slots, np.int32))
    state, order = np.zeros(count, np.int8), np.full(count, -1)
    system = Elimination(
        indices[0], np.empty(slots), counts[0], indices[1], np.empty(slots), counts[1], np.ones(count), state, order
    )
    _load(pointer, column, weight, system)
    _run(system, np.array(PRODUCTS))
    return system


@numba.njit(cache=True, nogil=True)
def _load(pointer, column, weight, system):  # type: ignore[no-untyped-def]
    # Entries of one row and column are added up.
    for k in range(len(pointer) - 1):
        if pointer[k + 1] - pointer[k] > SLOTS:
            system.state[k] = WIDE
            for e in range(pointer[k], pointer[k + 1]):
                if column[e] != k:
                    system.state[column[e]] = max(FIXED, system.state[column[e]])
                else:
                    system.diagonal[k] -= weight[e]
    for k in range(len(pointer) - 1):
        if system.state[k] != WIDE:
            for e in range(pointer[k], pointer[k + 1]):
                if system.n_sources[column[e]] == SLOTS:
                    system.state[column[e]] = max(FIXED, system.state[column[e]])
                _add(system, k, column[e], weight[e])


@numba.njit(cache=True, nogil=True, inline="always")
def _add(system, row, column, weight):  # type: ignore[no-untyped-def]
    # Adds to the weight of a column in a row.
    if row == column:
        system.diagonal[row] -= weight
        return
    for s in range(system.n_columns[row]):
        if system.column[row, s] == column:
            system.weight[row, s] += weight
            return
    s = system.n_columns[row]
    system.column[row, s], system.weight[row, s] = column, weight
    system.n_columns[row] += 1
    if system.state[column] == OPEN:
        system.source[column, system.n_sources[column]] = row
        system.n_sources[column] += 1


@numba.njit(cache=True, nogil=True)
def _run(system, products):  # type: ignore[no-untyped-def]
    found = 0
    for product in products:
        for k in range(len(system.state)):
            if system.state[k] == OPEN and system.n_columns[k] * system.n_sources[k] <= product and _fits(system, k):
                _eliminate(system, k)
                system.order[found] = k
                found += 1


@numba.njit(cache=True, nogil=True)
def _fits(system, k):  # type: ignore[no-untyped-def]
    # Whether no row or column can outgrow its slots.
    for s in range(system.n_sources[k]):
        if system.n_columns[system.source[k, s]] - 1 + system.n_columns[k] > SLOTS:
            return False
    for s in range(system.n_columns[k]):
        column = system.column[k, s]
        if system.state[column] == OPEN and system.n_sources[column] - 1 + system.n_sources[k] > SLOTS:
            return False
    return True


@numba.njit(cache=True, nogil=True)
def _eliminate(system, k):  # type: ignore[no-untyped-def]
    system.state[k] = DONE
    for s in range(system.n_columns[k]):
        column = system.column[k, s]
        if system.state[column] == OPEN:
            system.n_sources[column] -= 1
            last = system.n_sources[column]
            system.source[column, _find(system.source, column, last, k)] = system.source[column, last]
    for s in range(system.n_sources[k]):
        row = system.source[k, s]
        system.n_columns[row] -= 1
        last = system.n_columns[row]
        place = _find(system.column, row, last, k)
        factor = system.weight[row, place] / system.diagonal[k]
        system.column[row, place], system.weight[row, place] = system.column[row, last], system.weight[row, last]
        system.factor[k, s] = factor
        for c in range(system.n_columns[k]):
            _add(system, row, system.column[k, c], factor * system.weight[k, c])


@numba.njit(cache=True, nogil=True, inline="always")
def _find(table, row, last, wanted):  # type: ignore[no-untyped-def]
    # The place of an entry that is among the first last + 1 of a row.
    for s in range(last):
        if table[row, s] == wanted:
            return s
    return last


@numba.njit(cache=True, nogil=True)
def forward(system, right):  # type: ignore[no-untyped-def]
    """Adds the rows of eliminated unknowns to the other rows of a right-hand side [P], in place."""
    for k in system.order:
        if k < 0:
            break
        for s in range(system.n_sources[k]):
            right[system.source[k, s]] += system.factor[k, s] * right[k]


@numba.njit(cache=True, nogil=True)
def backward(system, values):  # type: ignore[no-untyped-def]
    """Replaces the right-hand sides of eliminated unknowns by their values, given those of the others, in place."""
    for place in range(len(system.order) - 1, -1, -1):
        k = system.order[place]
        if k >= 0:
            total = values[k]
            for s in range(system.n_columns[k]):
                total += system.weight[k, s] * values[system.column[k, s]]
            values[k] = total / system.diagonal[k]
