"""The inner loops of the metric solver, over a list of pairs of states.

Pair k is the states (first[k], second[k]). It has one transport per action, between row first[k] * A + action of the
chain of X and row second[k] * A + action of the chain of Y. Transport k * A + action keeps its basis in
cells[offset : offset + kx + ky - 1] (row << shift | column) and the masses of these cells in `mass`. Distances are
stored in a full [n, m] matrix, mirrored if the problem is symmetric. Hot loops use unsigned indices, because signed
ones cost a wrap-around test each, and no views, because each costs a reference count.
"""

from __future__ import annotations

import numba
import numpy as np

from pisces.metrics.exact.records import Place, Rest, Scratch
from pisces.metrics.exact.simplex.basis import COLUMN, DEMAND, MASS, POTENTIAL, ROW, SUPPLY, TREE_ROWS, start_basis
from pisces.metrics.exact.simplex.shared import start_shared
from pisces.metrics.exact.simplex.solve import solve_pair

QUICK_CELLS = 64
"""Transports with at most this many cells, and rows and columns together, are first checked with bit masks."""
SHARED_FROM = 16
"""Rows and columns from which the first basis keeps shared mass in place; fewer rarely share states."""


@numba.njit(cache=True, nogil=True)
def improve(span, problem, couplings, settings, distance, image):  # type: ignore[no-untyped-def]
    """Solves the transports of a span of pairs: image[k] = max_a cost[k, a] + discount * W(distance; pair k, a).

    Args:
        span: (start, stop) of the pairs.
        problem: a `Problem`.
        couplings: `Couplings`, which are updated.
        settings: a `Round`.
        distance: distances [n, m].
        image: the results, [P].

    Returns:
        max |image - distance| over the span.
    """
    first, second, x, y, cost, n_actions, discount, symmetric, _ = problem
    offset, _, _, _, best, limit = couplings
    slack, drift, fresh, in_place = settings
    scratch, change = _scratch(x.pointer, y.pointer, len(distance)), 0.0
    flow, x_pointer, y_pointer = scratch.flow, x.pointer, y.pointer
    for k in range(span[0], span[1]):
        i, j, top = np.int64(first[k]), np.int64(second[k]), -np.inf
        for action in range(n_actions):
            t = k * n_actions + action
            x0, y0 = x_pointer[i * n_actions + action], y_pointer[j * n_actions + action]
            kx, ky = x_pointer[i * n_actions + action + 1] - x0, y_pointer[j * n_actions + action + 1] - y0
            place, value, margin = Place(np.int64(offset[t]), x0, kx, y0, ky), 0.0, -np.inf
            if not fresh and kx * ky <= QUICK_CELLS and kx + ky <= QUICK_CELLS:
                value, margin = _price(place, problem, couplings, distance, limit[t] < drift, flow)
            if margin < -slack:
                value = _resolve(place, problem, couplings, distance, scratch, settings)
            elif limit[t] < drift:
                # A reduced cost is an alternating sum of at most kx + ky distances.
                limit[t] = (1 - 1e-6) * (max(0.0, margin) / (kx + ky) + drift)
            value = cost[t] + discount * value
            if value > top:
                top = value
                best[k] = action
        change = max(change, abs(top - distance[i, j]))
        image[k] = top
        if in_place:
            distance[i, j] = top
            if symmetric:
                distance[j, i] = top
    return change


@numba.njit(cache=True, nogil=True)
def _scratch(x_pointer, y_pointer, states):  # type: ignore[no-untyped-def]
    width_x, width_y = widest_row(x_pointer), widest_row(y_pointer)
    both = width_x + width_y
    rows, columns, partner = np.empty(width_x, np.int64), np.empty(width_y, np.int64), np.empty(width_x, np.int64)
    rest = Rest(np.empty((width_x, width_y)), rows, columns, partner, np.zeros(states, np.int64))
    return Scratch(np.empty((width_x, width_y)), np.empty((TREE_ROWS, both), np.int64), np.empty((5, both)), rest)


@numba.njit(cache=True, nogil=True, inline="always")
def _load_marginals(place, problem, flow):  # type: ignore[no-untyped-def]
    _, x0, kx, y0, ky = place
    for r in range(kx):
        flow[SUPPLY, r] = problem.x.probability[x0 + r]
    for c in range(ky):
        flow[DEMAND, c] = problem.y.probability[y0 + c]


@numba.njit(cache=True, nogil=True)
def _start(place, problem, scratch, slack):  # type: ignore[no-untyped-def]
    table, tree, flow, rest = scratch
    next_states, wide = (problem.x.next_state, problem.y.next_state), place.kx + place.ky >= SHARED_FROM
    if problem.symmetric and wide and start_shared(place, next_states, table, rest, tree, flow, slack):
        _load_marginals(place, problem, flow)
    else:
        start_basis(table, place.kx, place.ky, tree, flow)


@numba.njit(cache=True, nogil=True, inline="always")
def _resolve(place, problem, couplings, distance, scratch, settings):  # type: ignore[no-untyped-def]
    # Loads a stored basis (or makes one), pivots it to the optimum, stores it and returns the value.
    base, x0, kx, y0, ky = place
    table, tree, flow, _ = scratch
    x_next, y_next = problem.x.next_state, problem.y.next_state
    cells, mass, shift = couplings.cells, couplings.mass, couplings.shift
    for r in range(kx):
        for c in range(ky):
            table[r, c] = distance[x_next[x0 + r], y_next[y0 + c]]
    _load_marginals(place, problem, flow)
    mask, count, value = (1 << shift) - 1, kx + ky - 1, 0.0
    if settings.fresh:
        _start(place, problem, scratch, settings.slack)
    else:
        for e in range(count):
            cell = np.int64(cells[base + e])
            tree[ROW, e], tree[COLUMN, e], flow[MASS, e] = cell >> shift, cell & mask, mass[base + e]
    if solve_pair(table, kx, ky, tree, flow, settings.slack) or settings.fresh:
        for e in range(count):
            cells[base + e], mass[base + e] = (tree[ROW, e] << shift) | tree[COLUMN, e], flow[MASS, e]
    for e in range(count):
        value += flow[MASS, e] * table[tree[ROW, e], tree[COLUMN, e]]
    return value


@numba.njit(cache=True, nogil=True, inline="always")
def _price(place, problem, couplings, distance, price, flow):  # type: ignore[no-untyped-def]
    # Returns the value of the stored coupling and, if `price`, the smallest reduced cost outside its basis.
    base, x0, kx, y0, ky = place
    x_next, y_next = problem.x.next_state, problem.y.next_state
    cells, mass, shift = couplings.cells, couplings.mass, couplings.shift
    one, low, width = np.uint64(1), np.uint64(shift), np.uint64(ky)
    mask, rows = (one << low) - one, np.uint64(kx)
    begin_x, begin_y, begin = np.uint64(x0), np.uint64(y0), np.uint64(base)
    reached, basic, total = np.uint64(0), np.uint64(0), 0.0
    for e in range(np.uint64(kx + ky - 1)):
        cell = np.uint64(cells[begin + e])
        r, c = cell >> low, cell & mask
        d = distance[np.uint64(x_next[begin_x + r]), np.uint64(y_next[begin_y + c])]
        total += mass[begin + e] * d
        if price:
            if not reached:
                reached, flow[POTENTIAL, r] = one << r, 0.0
            basic |= one << (r * width + c)
            if (reached >> r) & one:
                flow[POTENTIAL, rows + c] = d - flow[POTENTIAL, r]
                reached |= one << (rows + c)
            else:
                flow[POTENTIAL, r] = d - flow[POTENTIAL, rows + c]
                reached |= one << r
    margin = np.inf
    if price:
        for u in range(rows):
            row = np.uint64(x_next[begin_x + u])
            for v in range(width):
                reduced = distance[row, np.uint64(y_next[begin_y + v])] - flow[POTENTIAL, u] - flow[POTENTIAL, rows + v]
                margin = min(margin, np.inf if (basic >> (u * width + v)) & one else reduced)
    return total, margin


@numba.njit(cache=True, nogil=True)
def furthest(values, others):  # type: ignore[no-untyped-def]
    """Largest absolute difference of two vectors."""
    largest = 0.0
    for k in range(len(values)):
        largest = max(largest, abs(values[k] - others[k]))
    return largest


@numba.njit(cache=True, nogil=True)
def largest(values):  # type: ignore[no-untyped-def]
    """Largest absolute value of a vector; 0 if it is empty."""
    bound = 0.0
    for k in range(len(values)):
        bound = max(bound, abs(values[k]))
    return bound


@numba.njit(cache=True, nogil=True)
def count_cells(problem, offset):  # type: ignore[no-untyped-def]
    """Fills the offsets of all transports; returns the total number of basis cells."""
    actions, x_pointer, y_pointer, total = problem.n_actions, problem.x.pointer, problem.y.pointer, 0
    for k in range(len(problem.first)):
        for action in range(actions):
            offset[k * actions + action] = total
            a, b = np.int64(problem.first[k]) * actions + action, np.int64(problem.second[k]) * actions + action
            total += x_pointer[a + 1] - x_pointer[a] + y_pointer[b + 1] - y_pointer[b] - 1
    return total


@numba.njit(cache=True, nogil=True)
def widest_row(pointer):  # type: ignore[no-untyped-def]
    """The largest number of next states in a row."""
    widest = 0
    for row in range(len(pointer) - 1):
        widest = max(widest, pointer[row + 1] - pointer[row])
    return widest
