"""First bases of transports within one chain, where the mass that two rows share stays in place."""

from __future__ import annotations

import numba

from pisces.metrics.exact.simplex.basis import COLUMN, DEMAND, MASS, ROW, SUPPLY, start_basis
from pisces.metrics.exact.simplex.solve import solve_pair


@numba.njit(cache=True, nogil=True)
def start_shared(place, next_states, table, rest, tree, flow, slack):  # type: ignore[no-untyped-def]
    """Writes a basis in which states keep the mass that both rows give them, and the rest moves optimally.

    Where distances satisfy the triangle inequality this basis is optimal, and takes a transport of about half the rows
    and columns to find.

    Args:
        place: a `Place`.
        next_states: the next states of all rows of X and of Y, which are states of one chain.
        table: the distances between the next states, [kx, ky] or larger.
        rest: a `Rest`, memory for the smaller transport.
        tree: the basis; see `basis`.
        flow: its masses, with the marginals; these are replaced by those of the smaller transport.
        slack: reduced costs above minus this count as zero.

    Returns:
        Whether a basis was written; not if the rows share no state, or all their mass.
    """
    shared = _pair_up(place, next_states, rest)
    n_rows, n_columns = _list_rest(place, rest, flow)
    if not shared or not n_rows or not n_columns:
        return False
    cells = n_rows + n_columns - 1
    _keep_shared(cells, place.kx, rest, tree, flow)
    for r in range(n_rows):
        flow[SUPPLY, r] = flow[SUPPLY, rest.rows[r]]
        for c in range(n_columns):
            rest.table[r, c] = table[rest.rows[r], rest.columns[c]]
    for c in range(n_columns):
        flow[DEMAND, c] = flow[DEMAND, rest.columns[c]]
    start_basis(rest.table, n_rows, n_columns, tree, flow)
    solve_pair(rest.table, n_rows, n_columns, tree, flow, slack)
    for e in range(cells):
        tree[ROW, e], tree[COLUMN, e] = rest.rows[tree[ROW, e]], rest.columns[tree[COLUMN, e]]
    return True


@numba.njit(cache=True, nogil=True)
def _pair_up(place, next_states, rest):  # type: ignore[no-untyped-def]
    # Finds the column of each row's state; returns the number of states that have both.
    (_, x0, kx, y0, ky), (x_next, y_next), shared = place, next_states, 0
    for c in range(ky):
        rest.column_of[y_next[y0 + c]] = c
    for r in range(kx):
        c = rest.column_of[x_next[x0 + r]]
        rest.partner[r] = c if c < ky and y_next[y0 + c] == x_next[x0 + r] else -1
        shared += rest.partner[r] >= 0
    return shared


@numba.njit(cache=True, nogil=True)
def _list_rest(place, rest, flow):  # type: ignore[no-untyped-def]
    # Of a shared state, the side with more mass stays open, which keeps the basis a tree: one cell per shared state.
    n_rows, n_columns = 0, 0
    for c in range(place.ky):
        rest.columns[c] = 1
    for r in range(place.kx):
        c = rest.partner[r]
        if c < 0 or flow[SUPPLY, r] >= flow[DEMAND, c]:
            rest.rows[n_rows] = r
            n_rows += 1
            if c >= 0:
                rest.columns[c] = 0
    for c in range(place.ky):
        if rest.columns[c]:
            rest.columns[n_columns] = c
            n_columns += 1
    return n_rows, n_columns


@numba.njit(cache=True, nogil=True)
def _keep_shared(start, kx, rest, tree, flow):  # type: ignore[no-untyped-def]
    # Writes the cells of shared states from cell `start` on, and takes their mass from the marginals.
    e = start
    for r in range(kx):
        c = rest.partner[r]
        if c >= 0:
            kept = min(flow[SUPPLY, r], flow[DEMAND, c])
            tree[ROW, e], tree[COLUMN, e], flow[MASS, e] = r, c, kept
            flow[SUPPLY, r] -= kept
            flow[DEMAND, c] -= kept
            e += 1
