"""The transportation simplex for wide problems."""

from __future__ import annotations

import numba

from pisces.metrics.exact.simplex.basis import (
    BLAND_AFTER,
    CHILD,
    DEPTH,
    LAST,
    NEXT,
    PARENT,
    POTENTIAL,
    ROW,
    VIA,
    balance,
    entering_cell,
    order_basis,
    pivot,
    set_potentials,
)

BLOCK_CELLS = 512
"""Number of cells that are priced per pivot of a wide transport."""


@numba.njit(cache=True, nogil=True)
def solve_wide(cost, kx, ky, tree, flow, slack):  # type: ignore[no-untyped-def]
    """Pivots a wide basis: prices a few rows per pivot, and changes only the part of the tree that a pivot moves."""
    order_basis(kx, ky, tree, flow)
    set_potentials(cost, kx, ky, tree, flow)
    _hang(kx, ky, tree)
    pivots, start = 0, 0
    while True:
        bland = pivots > BLAND_AFTER * (kx + ky)
        if bland:
            r, c = entering_cell(cost, kx, ky, flow, slack, bland)
        else:
            r, c, start = _entering_block(cost, kx, ky, flow, slack, start)
        if r < 0:
            break
        leaving, from_row = pivot(r, c, kx, tree, flow, bland)
        _rehang(cost, r, c, kx, leaving, from_row, tree, flow)
        pivots += 1
    if pivots:
        order_basis(kx, ky, tree, flow)
        set_potentials(cost, kx, ky, tree, flow)
        balance(kx, ky, tree, flow)
    return pivots


@numba.njit(cache=True, nogil=True)
def _entering_block(cost, kx, ky, flow, slack, start):  # type: ignore[no-untyped-def]
    # The most negative cell of the next rows in turn that hold BLOCK_CELLS, or of more rows if they hold none.
    best, row, column, scanned, r = -slack, -1, -1, 0, start
    for _ in range(kx):
        u = flow[POTENTIAL, r] + best
        for c in range(ky):
            if cost[r, c] - flow[POTENTIAL, kx + c] < u:
                best, row, column = cost[r, c] - flow[POTENTIAL, r] - flow[POTENTIAL, kx + c], r, c
                u = flow[POTENTIAL, r] + best
        scanned += ky
        r = r + 1 if r + 1 < kx else 0
        if row >= 0 and scanned >= BLOCK_CELLS:
            break
    return row, column, r


@numba.njit(cache=True, nogil=True)
def _hang(kx, ky, tree):  # type: ignore[no-untyped-def]
    # Lists the children of every node of an ordered basis with parents.
    root = tree[ROW, 0]
    for node in range(kx + ky):
        tree[CHILD, node] = -1
    tree[PARENT, root] = -1
    for node in range(kx + ky):
        if node != root:
            _attach(node, tree[PARENT, node], tree)


@numba.njit(cache=True, nogil=True, inline="always")
def _attach(node, parent, tree):  # type: ignore[no-untyped-def]
    first = tree[CHILD, parent]
    tree[NEXT, node], tree[LAST, node], tree[CHILD, parent] = first, -1, node
    if first >= 0:
        tree[LAST, first] = node


@numba.njit(cache=True, nogil=True, inline="always")
def _detach(node, parent, tree):  # type: ignore[no-untyped-def]
    before, after = tree[LAST, node], tree[NEXT, node]
    if before >= 0:
        tree[NEXT, before] = after
    else:
        tree[CHILD, parent] = after
    if after >= 0:
        tree[LAST, after] = before


@numba.njit(cache=True, nogil=True)
def _rehang(cost, r, c, kx, leaving, from_row, tree, flow):  # type: ignore[no-untyped-def]
    # The part of the tree below the cell that left hangs on the cell that entered, which took its place in the list.
    top, parent = (r, kx + c) if from_row else (kx + c, r)
    node, via = top, leaving
    while True:
        above, cell = tree[PARENT, node], tree[VIA, node]
        _detach(node, above, tree)
        tree[PARENT, node], tree[VIA, node] = parent, via
        _attach(node, parent, tree)
        if cell == leaving:
            break
        node, parent, via = above, node, cell
    node = top
    while True:
        parent = tree[PARENT, node]
        tree[DEPTH, node] = tree[DEPTH, parent] + 1
        price = cost[node, parent - kx] if node < kx else cost[parent, node - kx]
        flow[POTENTIAL, node] = price - flow[POTENTIAL, parent]
        if tree[CHILD, node] >= 0:
            node = tree[CHILD, node]
            continue
        while node != top and tree[NEXT, node] < 0:
            node = tree[PARENT, node]
        if node == top:
            return
        node = tree[NEXT, node]
