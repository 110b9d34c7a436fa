"""The cheapest exact way to make a basis optimal."""

from __future__ import annotations

import numba

from pisces.metrics.exact.simplex.basis import BLAND_AFTER, balance, entering_cell, pivot, solve_two, span_basis
from pisces.metrics.exact.simplex.wide import solve_wide

SORT_LIMIT = 64
"""Longest side for which a 2 x n transport is solved by sorting rather than by pivots."""
SCAN_LIMIT = 64
"""Rows and columns up to which a basis is ordered by scanning with bit masks rather than by breadth-first search."""


@numba.njit(cache=True, nogil=True)
def solve_pair(cost, kx, ky, tree, flow, slack):  # type: ignore[no-untyped-def]
    """Makes a feasible basis optimal for `cost` by the cheapest exact way; returns whether the basis changed."""
    if kx == 1 or ky == 1:
        return False
    if (kx == 2 and ky <= SORT_LIMIT) or (ky == 2 and kx <= SORT_LIMIT):
        solve_two(cost, kx, ky, tree, flow)
        return True
    return solve_basis(cost, kx, ky, tree, flow, slack) > 0


@numba.njit(cache=True, nogil=True)
def solve_basis(cost, kx, ky, tree, flow, slack):  # type: ignore[no-untyped-def]
    """Pivots a basis until no reduced cost is below -slack; returns the number of pivots."""
    if kx + ky > SCAN_LIMIT:
        return solve_wide(cost, kx, ky, tree, flow, slack)
    pivots = 0
    while True:
        span_basis(cost, kx, ky, tree, flow)
        bland = pivots > BLAND_AFTER * (kx + ky)
        r, c = entering_cell(cost, kx, ky, flow, slack, bland)
        if r < 0:
            break
        pivot(r, c, kx, tree, flow, bland)
        pivots += 1
    if pivots:
        balance(kx, ky, tree, flow)
    return pivots
