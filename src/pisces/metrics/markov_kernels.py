"""The inner loops of the metric solver, over a list of pairs of states.

Pair k is the states (first[k], second[k]). It has one transport per action, between row first[k] * A + action of the
chain of X and row second[k] * A + action of the chain of Y; transport k * A + action keeps its basis in
cells[offset : offset + kx + ky - 1] (row << shift | column) with the masses beside it. Distances stand in a full [n, m]
matrix, mirrored when the problem is symmetric. Indices are unsigned and views are avoided where it is hot: signed ones
cost a wrap-around test each, views a reference count.
"""

from __future__ import annotations

import numba
import numpy as np

from pisces.metrics.transport_kernels import COLUMN, DEMAND, MASS, POTENTIAL, ROW, SUPPLY, solve_pair, start_basis

QUICK_CELLS = 64
"""Transports of up to this many cells are checked with bit masks before anything else is done to them."""
TILE = 8
"""Rows that are mirrored together: the doubles of one cache line."""


@numba.njit(cache=True, nogil=True)
def improve(  # type: ignore[no-untyped-def]
    start, stop, first, second, x, y, cost, offset, cells, mass, shift, best, limit, distance, discount, slack, drift,
    flags, image,
):  # fmt: skip
    """Solves the transports of pairs start..stop: image[k] = max_a cost[k, a] + discount * W(distance; pair k, a).

    `x` and `y` are (pointers, next states, probabilities). `flags` = (number of actions, fresh: no basis is stored yet,
    in place: write each result into `distance` at once, symmetric). `drift` is how far any distance can have moved
    since the first round in all; a basis stays optimal until that exceeds `limit`. Returns max |image - distance|.
    """
    actions, fresh, in_place, symmetric = flags
    (x_pointer, x_next, x_probability), (y_pointer, y_next, y_probability) = x, y
    widest_x, widest_y = widest_row(x_pointer), widest_row(y_pointer)
    table, tree = np.empty((widest_x, widest_y)), np.empty((7, widest_x + widest_y), np.int64)
    flow, change = np.empty((5, widest_x + widest_y)), 0.0
    for k in range(start, stop):
        i, j, top = np.int64(first[k]), np.int64(second[k]), -np.inf
        for action in range(actions):
            t = k * actions + action
            x0, y0 = x_pointer[i * actions + action], y_pointer[j * actions + action]
            kx, ky = x_pointer[i * actions + action + 1] - x0, y_pointer[j * actions + action + 1] - y0
            base, value, margin = np.int64(offset[t]), 0.0, -np.inf
            if not fresh and kx * ky <= QUICK_CELLS:
                place = (base, shift, x0, kx, y0, ky)
                value, margin = _price(place, cells, mass, x_next, y_next, distance, limit[t] < drift, flow)
            if margin < -slack:
                for r in range(kx):
                    flow[SUPPLY, r] = x_probability[x0 + r]
                    for c in range(ky):
                        table[r, c] = distance[x_next[x0 + r], y_next[y0 + c]]
                for c in range(ky):
                    flow[DEMAND, c] = y_probability[y0 + c]
                value = _resolve(table, kx, ky, tree, flow, base, cells, mass, shift, slack, fresh)
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
def _resolve(table, kx, ky, tree, flow, base, cells, mass, shift, slack, fresh):  # type: ignore[no-untyped-def]
    # Loads a stored basis (or makes one), pivots it to the optimum, stores it and returns the value.
    mask, count, value = (1 << shift) - 1, kx + ky - 1, 0.0
    if fresh:
        start_basis(table, kx, ky, tree, flow)
    else:
        for e in range(count):
            cell = np.int64(cells[base + e])
            tree[ROW, e], tree[COLUMN, e], flow[MASS, e] = cell >> shift, cell & mask, mass[base + e]
    if solve_pair(table, kx, ky, tree, flow, slack) or fresh:
        for e in range(count):
            cells[base + e], mass[base + e] = (tree[ROW, e] << shift) | tree[COLUMN, e], flow[MASS, e]
    for e in range(count):
        value += flow[MASS, e] * table[tree[ROW, e], tree[COLUMN, e]]
    return value


@numba.njit(cache=True, nogil=True, inline="always")
def _price(place, cells, mass, x_next, y_next, distance, price, flow):  # type: ignore[no-untyped-def]
    # Returns the value of the stored coupling and the smallest reduced cost outside its basis (infinity: not asked).
    base, shift, x0, kx, y0, ky = place
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
def relax(  # type: ignore[no-untyped-def]
    start, stop, first, second, x, y, cost, offset, cells, mass, shift, best, limit, distance, discount, flags
):
    """One Gauss-Seidel sweep over pairs start..stop with their couplings kept.

    distance[k] = (cost[k] + discount * sum over other pairs of coupling * distance) / (1 - discount * mass on itself)
    `flags` = (number of actions, symmetric, tiled: mirror a few rows at a time, which saves most of the cache misses).
    """
    actions, symmetric, tiled = flags
    (x_pointer, x_next, _), (y_pointer, y_next, _) = x, y
    width, low = np.uint64(distance.shape[1]), np.uint64(shift)
    mask = (np.uint64(1) << low) - np.uint64(1)
    flat = distance.reshape(-1)
    row_start, row, tile = np.empty(widest_row(x_pointer), np.uint64), np.int64(-1), np.int64(-1)
    for k in range(start, stop):
        i, j, action = np.int64(first[k]), np.int64(second[k]), np.int64(best[k])
        x_row, y_row, t = i * actions + action, j * actions + action, k * actions + action
        kx, y0 = x_pointer[x_row + 1] - x_pointer[x_row], np.uint64(y_pointer[y_row])
        if tiled and i // TILE != tile:
            if k > start:
                _mirror(distance, tile * TILE, (tile + 1) * TILE)
            tile = i // TILE
        if x_row != row:
            row = x_row
            for r in range(kx):
                row_start[r] = np.uint64(x_next[x_pointer[x_row] + r]) * width
        base = np.uint64(offset[t])
        end = base + np.uint64(kx + y_pointer[y_row + 1] - y_pointer[y_row] - 1)
        own, mirror = np.uint64(i) * width + np.uint64(j), np.uint64(j) * width + np.uint64(i)
        if not symmetric:
            mirror = own
        total, stay = 0.0, 0.0
        for e in range(base, end):
            cell = np.uint64(cells[e])
            place = row_start[cell >> low] + np.uint64(y_next[y0 + (cell & mask)])
            if place in (own, mirror):
                stay += mass[e]
            else:
                total += mass[e] * flat[place]
        value = (cost[t] + discount * total) / (1.0 - discount * stay)
        flat[own] = value
        if not tiled:
            flat[mirror] = value
    if tiled and stop > start:
        _mirror(distance, tile * TILE, (tile + 1) * TILE)


@numba.njit(cache=True, nogil=True)
def _mirror(distance, start, stop):  # type: ignore[no-untyped-def]
    # Copies rows start..stop of the upper triangle into the lower one.
    for j in range(start + 1, len(distance)):
        for i in range(start, min(stop, j)):
            distance[j, i] = distance[i, j]


@numba.njit(cache=True, nogil=True)
def scatter(first, second, values, symmetric, tiled, distance):  # type: ignore[no-untyped-def]
    """Writes the values of all pairs into the matrix."""
    for k in range(len(values)):
        distance[first[k], second[k]] = values[k]
        if symmetric and not tiled:
            distance[second[k], first[k]] = values[k]
    if tiled:
        for start in range(0, len(distance), TILE):
            _mirror(distance, start, start + TILE)


@numba.njit(cache=True, nogil=True)
def gather(start, stop, first, second, distance, values):  # type: ignore[no-untyped-def]
    """Reads the values of pairs start..stop from the matrix."""
    for k in range(start, stop):
        values[k] = distance[first[k], second[k]]


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
def count_transports(first, second, x_pointer, y_pointer, actions, offset):  # type: ignore[no-untyped-def]
    """Fills the offsets of all transports; returns the number of basis cells in total."""
    total = 0
    for k in range(len(first)):
        for action in range(actions):
            offset[k * actions + action] = total
            a, b = np.int64(first[k]) * actions + action, np.int64(second[k]) * actions + action
            total += x_pointer[a + 1] - x_pointer[a] + y_pointer[b + 1] - y_pointer[b] - 1
    return total


@numba.njit(cache=True, nogil=True)
def widest_row(pointer):  # type: ignore[no-untyped-def]
    """The largest number of next states in a row."""
    widest = 0
    for row in range(len(pointer) - 1):
        widest = max(widest, pointer[row + 1] - pointer[row])
    return widest
