"""Compiled parts of exact optimal transport between two small distributions.

All work on a basis: kx + ky - 1 cells (r, c) that form a spanning tree of rows and columns, stored so that every cell
touches one node that earlier cells have reached (the first cell's row counts as reached). The marginals of a pair of
states never change from sweep to sweep, so its last basis stays feasible and is where the next solve starts.

Arguments: cost [kx, ky] (may be larger), marginals p and q, the basis as rows, columns and masses, and scratch memory:
`tree`, five integer arrays, and `flows`, two float arrays, of kx + ky entries each.
"""

from __future__ import annotations

import numba
import numpy as np

BLAND_AFTER = 20
"""Pivots per row and column after which the smallest-index rule replaces the steepest one, so that none can cycle."""
SORT_LIMIT = 64
"""Longest side for which a 2 x n transport is solved by sorting rather than by pivots."""


@numba.njit(cache=True, nogil=True)
def solve_pair(cost, p, q, kx, ky, rows, columns, mass, tree, flows, slack):  # type: ignore[no-untyped-def]
    """Makes a basis optimal for `cost` by the cheapest exact way; returns whether it was written to."""
    if kx == 1 or ky == 1:
        return False
    if kx == 2 and ky <= SORT_LIMIT:
        solve_two_rows(cost, p, q, ky, False, rows, columns, mass, tree, flows)
        return True
    if ky == 2 and kx <= SORT_LIMIT:
        solve_two_rows(cost, q, p, kx, True, rows, columns, mass, tree, flows)
        return True
    return solve_basis(cost, p, q, kx, ky, rows, columns, mass, tree, flows, slack) > 0


@numba.njit(cache=True, nogil=True)
def start_basis(cost, p, q, kx, ky, rows, columns, mass, tree, flows):  # type: ignore[no-untyped-def]
    """Writes a feasible basis: each row in turn fills the cheapest columns that are still open."""
    left = flows[0]
    is_open = tree[0]
    for c in range(ky):
        left[c] = q[c]
        is_open[c] = 1
    open_columns, r, supply = ky, 0, p[0]
    for e in range(kx + ky - 1):
        cheapest, best = -1, np.inf
        for c in range(ky):
            if is_open[c] and (cost[r, c] < best or cheapest < 0):
                cheapest, best = c, cost[r, c]
        rows[e], columns[e] = r, cheapest
        last_row = r == kx - 1
        if not last_row and (supply <= left[cheapest] or open_columns == 1):
            mass[e] = supply
            left[cheapest] = max(0.0, left[cheapest] - supply)
            r += 1
            supply = p[r]
        else:
            mass[e] = left[cheapest]
            supply -= left[cheapest]
            is_open[cheapest] = 0
            open_columns -= 1
    order_basis(kx, ky, rows, columns, mass, tree, flows)
    balance_basis(p, q, kx, ky, rows, columns, mass, tree, flows)


@numba.njit(cache=True, nogil=True)
def order_basis(kx, ky, rows, columns, mass, tree, flows):  # type: ignore[no-untyped-def]
    """Sorts the cells of a basis breadth first from row 0; O(kx + ky)."""
    cells, nodes = kx + ky - 1, kx + ky
    first, next_in_row, next_in_column, queue = tree[0], tree[1], tree[2], tree[3]
    for node in range(nodes):
        first[node] = -1
    for e in range(cells - 1, -1, -1):
        next_in_row[e] = first[rows[e]]
        first[rows[e]] = e
        next_in_column[e] = first[kx + columns[e]]
        first[kx + columns[e]] = e
    order, found, head = tree[4], 0, 0
    queue[0], tail = 0, 1
    while head < tail:
        node = queue[head]
        head += 1
        e = first[node]
        first[node] = -2
        while e >= 0:
            other = kx + columns[e] if node < kx else rows[e]
            if first[other] != -2:
                order[found] = e
                found += 1
                queue[tail] = other
                tail += 1
            e = next_in_row[e] if node < kx else next_in_column[e]
    for e in range(cells):
        next_in_row[e], next_in_column[e], flows[0][e] = rows[order[e]], columns[order[e]], mass[order[e]]
    for e in range(cells):
        rows[e], columns[e], mass[e] = next_in_row[e], next_in_column[e], flows[0][e]


@numba.njit(cache=True, nogil=True)
def balance_basis(p, q, kx, ky, rows, columns, mass, tree, flows):  # type: ignore[no-untyped-def]
    """Recomputes the masses of an ordered basis from the marginals, leaves first, so that errors can't add up."""
    need, reached = flows[1], tree[0]
    for r in range(kx):
        need[r], reached[r] = p[r], 0
    for c in range(ky):
        need[kx + c], reached[kx + c] = q[c], 0
    reached[rows[0]] = 1
    child = tree[1]
    for e in range(kx + ky - 1):
        child[e] = kx + columns[e] if reached[rows[e]] else rows[e]
        reached[child[e]] = 1
    for e in range(kx + ky - 2, -1, -1):
        moved = max(0.0, need[child[e]])
        mass[e] = moved
        parent = rows[e] if child[e] >= kx else kx + columns[e]
        need[parent] -= moved


@numba.njit(cache=True, nogil=True)
def solve_basis(cost, p, q, kx, ky, rows, columns, mass, tree, flows, slack):  # type: ignore[no-untyped-def]
    """Pivots an ordered basis until no reduced cost is below -slack; returns the number of pivots."""
    pivots = 0
    while True:
        potentials(cost, kx, ky, rows, columns, tree, flows)
        r, c = _entering(cost, kx, ky, flows[0], slack, pivots > BLAND_AFTER * (kx + ky))
        if r < 0:
            break
        _pivot(r, c, kx, rows, columns, mass, tree, pivots > BLAND_AFTER * (kx + ky))
        order_basis(kx, ky, rows, columns, mass, tree, flows)
        pivots += 1
    if pivots:
        balance_basis(p, q, kx, ky, rows, columns, mass, tree, flows)
    return pivots


@numba.njit(cache=True, nogil=True)
def potentials(cost, kx, ky, rows, columns, tree, flows):  # type: ignore[no-untyped-def]
    """Row potentials u and column potentials v (in flows[0]) with u[r] + v[c] = cost[r, c] on the basis.

    Also leaves in `tree`: 0 reached, 1 parent node, 2 cell that leads to the parent, 3 depth.
    """
    value, reached, parent, via, depth = flows[0], tree[0], tree[1], tree[2], tree[3]
    for node in range(kx + ky):
        reached[node] = 0
    reached[rows[0]], value[rows[0]], depth[rows[0]] = 1, 0.0, 0
    for e in range(kx + ky - 1):
        row, column = rows[e], kx + columns[e]
        if reached[row]:
            child, above = column, row
        else:
            child, above = row, column
        value[child] = cost[row, column - kx] - value[above]
        reached[child], parent[child], via[child], depth[child] = 1, above, e, depth[above] + 1


@numba.njit(cache=True, nogil=True)
def _entering(cost, kx, ky, value, slack, bland):  # type: ignore[no-untyped-def]
    best, row, column = -slack, -1, -1
    for r in range(kx):
        u = value[r]
        for c in range(ky):
            reduced = cost[r, c] - u - value[kx + c]
            if reduced < best:
                best, row, column = reduced, r, c
                if bland:
                    return row, column
    return row, column


@numba.njit(cache=True, nogil=True)
def _pivot(r, c, kx, rows, columns, mass, tree, bland):  # type: ignore[no-untyped-def]
    # The cycle runs from row r to column c through the tree; its cells lose and gain mass in turn, from either end.
    parent, via, depth = tree[1], tree[2], tree[3]
    theta, leaving, a, b, sign_a, sign_b = np.inf, -1, r, kx + c, -1, -1
    while a != b:
        if depth[a] >= depth[b]:
            e, losing, a, sign_a = via[a], sign_a < 0, parent[a], -sign_a
        else:
            e, losing, b, sign_b = via[b], sign_b < 0, parent[b], -sign_b
        if losing and (mass[e] < theta or (bland and mass[e] == theta and _before(e, leaving, rows, columns))):
            theta, leaving = mass[e], e
    a, b, sign_a, sign_b = r, kx + c, -1, -1
    while a != b:
        if depth[a] >= depth[b]:
            mass[via[a]] += sign_a * theta
            a, sign_a = parent[a], -sign_a
        else:
            mass[via[b]] += sign_b * theta
            b, sign_b = parent[b], -sign_b
    rows[leaving], columns[leaving], mass[leaving] = r, c, theta


@numba.njit(cache=True, nogil=True)
def _before(e, other, rows, columns):  # type: ignore[no-untyped-def]
    return rows[e] < rows[other] or (rows[e] == rows[other] and columns[e] < columns[other])


@numba.njit(cache=True, nogil=True)
def solve_two_rows(cost, p, q, n, transposed, rows, columns, mass, tree, flows):  # type: ignore[no-untyped-def]
    """Closed form of 2 x n (or n x 2 if `transposed`): row 0 fills the columns where it is cheapest beside row 1."""
    order, gain = tree[0], flows[0]
    for j in range(n):
        gain[j] = cost[j, 0] - cost[j, 1] if transposed else cost[0, j] - cost[1, j]
        place = j
        while place > 0 and gain[order[place - 1]] > gain[j]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = j
    left, split = p[0], False
    for k in range(n):
        j, e = order[k], k + (1 if split else 0)
        taken = 0.0 if split else min(left, q[j])
        left -= taken
        rows[e], columns[e], mass[e] = 1 if split else 0, j, q[j] - taken if split else taken
        if not split and (left <= 0.0 or k == n - 1):
            rows[e + 1], columns[e + 1], mass[e + 1] = 1, j, q[j] - taken
            split = True
    if transposed:
        for e in range(n + 1):
            rows[e], columns[e] = columns[e], rows[e]
