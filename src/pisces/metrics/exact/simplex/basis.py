"""Compiled parts of exact optimal transport between two small distributions.

All work on a basis: kx + ky - 1 cells (r, c) that form a spanning tree of rows and columns, stored so that every cell
touches one node that earlier cells have reached (the first cell's row counts as reached). The marginals of a pair of
states never change between rounds, so its last basis stays feasible and starts the next solve.

A problem lives in three arrays, whose rows the constants below name: cost [kx, ky] or larger, `tree` [10, kx + ky] of
integers and `flow` [5, kx + ky] of floats. Nodes are rows 0..kx - 1 and then columns. (Whole arrays rather than views
of them: every view costs two atomic reference counts.)
"""

from __future__ import annotations

import numba
import numpy as np

ROW, COLUMN, FIRST, PARENT, VIA, DEPTH, ORDER, NEXT, LAST, CHILD = range(10)
"""Of `tree`: cells' rows and columns; nodes' first cell, parent, cell to the parent, depth; order of cells; nodes' next
and last sibling and first child."""
TREE_ROWS = 10
MASS, POTENTIAL, NEED, SUPPLY, DEMAND = range(5)
"""Of `flow`: cells' masses; nodes' potentials and open mass; the marginals of rows and of columns."""

BLAND_AFTER = 20
"""Pivots per row and column after which Bland's rule replaces the steepest pivot, so that pivots cannot cycle."""


@numba.njit(cache=True, nogil=True)
def start_basis(cost, kx, ky, tree, flow):  # type: ignore[no-untyped-def]
    """Writes a feasible basis, not yet ordered: each row in turn fills the cheapest columns that are still open."""
    for c in range(ky):
        flow[NEED, c] = flow[DEMAND, c]
        tree[FIRST, c] = 1
    open_columns, r, supply = ky, 0, flow[SUPPLY, 0]
    for e in range(kx + ky - 1):
        cheapest, best = -1, np.inf
        for c in range(ky):
            if tree[FIRST, c] and (cost[r, c] < best or cheapest < 0):
                cheapest, best = c, cost[r, c]
        tree[ROW, e], tree[COLUMN, e] = r, cheapest
        left = flow[NEED, cheapest]
        if r < kx - 1 and (supply <= left or open_columns == 1):
            flow[MASS, e] = supply
            flow[NEED, cheapest] = max(0.0, left - supply)
            r += 1
            supply = flow[SUPPLY, r]
        else:
            flow[MASS, e] = left
            supply -= left
            tree[FIRST, cheapest] = 0
            open_columns -= 1


@numba.njit(cache=True, nogil=True)
def span_basis(cost, kx, ky, tree, flow):  # type: ignore[no-untyped-def]
    """Orders the cells of a small basis, with parents, depths and potentials, in one scan of a nearly ordered list."""
    one = np.uint64(1)
    root = tree[ROW, 0]
    flow[POTENTIAL, root], tree[DEPTH, root], reached = 0.0, 0, one << np.uint64(root)
    for place in range(kx + ky - 1):
        e = place
        while True:
            row, column = tree[ROW, e], kx + tree[COLUMN, e]
            has_row = (reached >> np.uint64(row)) & one
            if has_row | ((reached >> np.uint64(column)) & one):
                break
            e += 1
        if e != place:
            tree[ROW, e], tree[COLUMN, e] = tree[ROW, place], tree[COLUMN, place]
            tree[ROW, place], tree[COLUMN, place] = row, column - kx
            flow[MASS, e], flow[MASS, place] = flow[MASS, place], flow[MASS, e]
        child, above = (column, row) if has_row else (row, column)
        reached |= one << np.uint64(child)
        flow[POTENTIAL, child] = cost[row, column - kx] - flow[POTENTIAL, above]
        tree[PARENT, child], tree[VIA, child], tree[DEPTH, child] = above, place, tree[DEPTH, above] + 1


@numba.njit(cache=True, nogil=True)
def order_basis(kx, ky, tree, flow):  # type: ignore[no-untyped-def]
    """Sorts the cells breadth first from row 0 in O(kx + ky); lists of cells per node start at FIRST and are linked."""
    cells, next_in_row, next_in_column, queue = kx + ky - 1, PARENT, VIA, DEPTH
    for node in range(kx + ky):
        tree[FIRST, node] = -1
    for e in range(cells - 1, -1, -1):
        row, column = tree[ROW, e], kx + tree[COLUMN, e]
        tree[next_in_row, e], tree[next_in_column, e] = tree[FIRST, row], tree[FIRST, column]
        tree[FIRST, row] = tree[FIRST, column] = e
    found, head, tail = 0, 0, 1
    tree[queue, 0] = 0
    while head < tail:
        node = tree[queue, head]
        head += 1
        e = tree[FIRST, node]
        tree[FIRST, node] = -2
        while e >= 0:
            other = kx + tree[COLUMN, e] if node < kx else tree[ROW, e]
            if tree[FIRST, other] != -2:
                tree[ORDER, found], tree[queue, tail] = e, other
                found, tail = found + 1, tail + 1
            e = tree[next_in_row, e] if node < kx else tree[next_in_column, e]
    for e in range(cells):
        old = tree[ORDER, e]
        tree[PARENT, e], tree[VIA, e], flow[NEED, e] = tree[ROW, old], tree[COLUMN, old], flow[MASS, old]
    for e in range(cells):
        tree[ROW, e], tree[COLUMN, e], flow[MASS, e] = tree[PARENT, e], tree[VIA, e], flow[NEED, e]


@numba.njit(cache=True, nogil=True)
def set_potentials(cost, kx, ky, tree, flow):  # type: ignore[no-untyped-def]
    """Sets potential[row] + potential[column] = cost on the cells of an ordered basis, with parents and depths."""
    for node in range(kx + ky):
        tree[FIRST, node] = 0
    root = tree[ROW, 0]
    tree[FIRST, root], flow[POTENTIAL, root], tree[DEPTH, root] = 1, 0.0, 0
    for e in range(kx + ky - 1):
        row, column = tree[ROW, e], kx + tree[COLUMN, e]
        child, above = (column, row) if tree[FIRST, row] else (row, column)
        flow[POTENTIAL, child] = cost[row, column - kx] - flow[POTENTIAL, above]
        tree[FIRST, child] = 1
        tree[PARENT, child], tree[VIA, child], tree[DEPTH, child] = above, e, tree[DEPTH, above] + 1


@numba.njit(cache=True, nogil=True)
def entering_cell(cost, kx, ky, flow, slack, bland):  # type: ignore[no-untyped-def]
    """Returns the cell with the most negative reduced cost (Bland: the first below -slack), or -1, -1."""
    best, row, column = -slack, -1, -1
    for r in range(kx):
        u = flow[POTENTIAL, r]
        for c in range(ky):
            reduced = cost[r, c] - u - flow[POTENTIAL, kx + c]
            if reduced < best:
                best, row, column = reduced, r, c
                if bland:
                    return row, column
    return row, column


@numba.njit(cache=True, nogil=True)
def pivot(r, c, kx, tree, flow, bland):  # type: ignore[no-untyped-def]
    """Moves mass along the cycle of an entering cell; returns the cell that left and if on the row's side."""
    # The cycle runs from row r to column c through the tree; its cells lose and gain mass in turn, from either end.
    theta, leaving, a, b, sign_a, sign_b, from_row = np.inf, -1, r, kx + c, -1, -1, False
    while a != b:
        of_row = tree[DEPTH, a] >= tree[DEPTH, b]
        if of_row:
            e, losing, a, sign_a = tree[VIA, a], sign_a < 0, tree[PARENT, a], -sign_a
        else:
            e, losing, b, sign_b = tree[VIA, b], sign_b < 0, tree[PARENT, b], -sign_b
        if losing and (flow[MASS, e] < theta or (bland and flow[MASS, e] == theta and _before(e, leaving, tree))):
            theta, leaving, from_row = flow[MASS, e], e, of_row
    a, b, sign_a, sign_b = r, kx + c, -1, -1
    while a != b:
        if tree[DEPTH, a] >= tree[DEPTH, b]:
            flow[MASS, tree[VIA, a]] += sign_a * theta
            a, sign_a = tree[PARENT, a], -sign_a
        else:
            flow[MASS, tree[VIA, b]] += sign_b * theta
            b, sign_b = tree[PARENT, b], -sign_b
    tree[ROW, leaving], tree[COLUMN, leaving], flow[MASS, leaving] = r, c, theta
    return leaving, from_row


@numba.njit(cache=True, nogil=True)
def _before(e, other, tree):  # type: ignore[no-untyped-def]
    if tree[ROW, e] == tree[ROW, other]:
        return tree[COLUMN, e] < tree[COLUMN, other]
    return tree[ROW, e] < tree[ROW, other]


@numba.njit(cache=True, nogil=True)
def balance(kx, ky, tree, flow):  # type: ignore[no-untyped-def]
    """Recomputes the masses of an ordered basis from the marginals, leaves first, so that rounding cannot add up."""
    for r in range(kx):
        flow[NEED, r] = flow[SUPPLY, r]
    for c in range(ky):
        flow[NEED, kx + c] = flow[DEMAND, c]
    for e in range(kx + ky - 2, -1, -1):
        row, column = tree[ROW, e], kx + tree[COLUMN, e]
        child, above = (column, row) if tree[DEPTH, column] > tree[DEPTH, row] else (row, column)
        flow[MASS, e] = max(0.0, flow[NEED, child])
        flow[NEED, above] -= flow[MASS, e]


@numba.njit(cache=True, nogil=True)
def solve_two(cost, kx, ky, tree, flow):  # type: ignore[no-untyped-def]
    """Closed form of 2 x n and n x 2: side 0 of the two fills the points where it is cheapest beside side 1."""
    flat = kx == 2
    n, short, long = (ky, SUPPLY, DEMAND) if flat else (kx, DEMAND, SUPPLY)
    of_side, of_point = (ROW, COLUMN) if flat else (COLUMN, ROW)
    for j in range(n):
        gain = cost[0, j] - cost[1, j] if flat else cost[j, 0] - cost[j, 1]
        place = j
        while place > 0 and flow[NEED, tree[ORDER, place - 1]] > gain:
            tree[ORDER, place] = tree[ORDER, place - 1]
            place -= 1
        tree[ORDER, place], flow[NEED, j] = j, gain
    left, split = flow[short, 0], 0
    for k in range(n):
        j = tree[ORDER, k]
        e, whole = k + split, flow[long, j]
        taken = whole if split else min(left, whole)
        tree[of_side, e], tree[of_point, e], flow[MASS, e] = split, j, taken
        left -= taken
        if not split and (left <= 0.0 or k == n - 1):
            tree[of_side, e + 1], tree[of_point, e + 1], flow[MASS, e + 1] = 1, j, whole - taken
            split = 1
