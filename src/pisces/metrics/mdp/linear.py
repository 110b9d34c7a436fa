"""Linear systems of Markov chains: expected discounted sums."""

from __future__ import annotations

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
SOLVE_STATES = 1000
"""Up to this many states, linear systems are solved directly."""
SOLVE_OPERATIONS = 1e10
"""Larger systems are solved directly if a banded factorization takes at most this many operations."""
REFINEMENTS = 3
"""Steps of iterative refinement after a direct solution."""


def discounted_solution(rows: scipy.sparse.csr_array, amounts: FloatArray, discount: float) -> FloatArray:
    """Returns the solution v of v = amounts + discount * rows v, [S].

    Structured chains (grids, walks) are factored. The factors of large random chains are dense, but those chains mix
    fast, and so does the iteration.
    """
    size = len(amounts)
    if size > SOLVE_STATES and size * _bandwidth(rows) ** 2 > SOLVE_OPERATIONS:
        return _iterated(rows, amounts, discount)
    system = scipy.sparse.csc_array(scipy.sparse.eye_array(size) - discount * rows)
    # Rows are diagonally dominant, so no pivoting is needed, and without it small values keep their digits.
    factors = scipy.sparse.linalg.splu(
        system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )
    values = factors.solve(amounts)
    for _ in range(REFINEMENTS):
        values += factors.solve(amounts + discount * (rows @ values) - values)
    return np.asarray(values)


def _bandwidth(rows: scipy.sparse.csr_array) -> int:
    """Returns the largest |i - j| of an entry after reverse Cuthill-McKee ordering."""
    pattern = scipy.sparse.csr_array(rows + rows.T)
    order = scipy.sparse.csgraph.reverse_cuthill_mckee(pattern, symmetric_mode=True)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    entries = pattern.tocoo()
    return int(np.abs(place[entries.row].astype(np.int64) - place[entries.col]).max(initial=0))


def _iterated(rows: scipy.sparse.csr_array, amounts: FloatArray, discount: float) -> FloatArray:
    # A constant error shrinks by the discount alone, all others mix as well; so the middle of the residual, which
    # shows the constant part, is removed at once.
    values, last = np.zeros(len(amounts)), np.inf
    scale = max(float(np.abs(amounts).max()), np.finfo(float).tiny)
    while True:
        image = amounts + discount * (rows @ values)
        low, high = float((image - values).min()), float((image - values).max())
        if max(-low, high) <= 1e-15 * scale / (1 - discount) or high - low >= last:
            return np.asarray(image)
        last = high - low if high - low <= 1e-13 * scale / (1 - discount) else np.inf
        values = image + discount / (1 - discount) * (low + high) / 2
