"""Gauss-Seidel sweeps over the linear system of fixed couplings, and the matrix of distances that they work on.

Distances are stored in a full [n, m] matrix, mirrored if the problem is symmetric. See `kernels` for the layout of
pairs and couplings, and for why indices are unsigned.
"""

from __future__ import annotations

import numba
import numpy as np

from pisces.metrics.exact.kernels import widest_row

TILE = 8
"""Number of rows that are mirrored together: the doubles of one cache line."""


@numba.njit(cache=True, nogil=True)
def relax(span, problem, couplings, distance):  # type: ignore[no-untyped-def]
    """Runs one Gauss-Seidel sweep over a span (start, stop) of pairs with fixed couplings.

    distance[k] = (cost[k] + discount * sum over other pairs of coupling * distance) / (1 - discount * mass on itself)
    """
    first, second, x, y, cost, actions, discount, symmetric, tiled = problem
    offset, cells, mass, shift, best, _ = couplings
    (x_pointer, x_next, _), (y_pointer, y_next, _) = x, y
    width, low, n_actions, one = np.uint64(distance.shape[1]), np.uint64(shift), np.uint64(actions), np.uint64(1)
    mask, flat, start = (one << low) - one, distance.reshape(-1), np.uint64(span[0])
    loops_x, loops_y = _self_loops(x_pointer, x_next, actions), _self_loops(y_pointer, y_next, actions)
    row_start, near = np.empty(widest_row(x_pointer), np.uint64), np.zeros(distance.shape[1], np.bool_)
    row, state, tile = np.int64(-1), np.int64(-1), np.int64(-1)
    for k in range(start, np.uint64(span[1])):
        i, j, action = np.uint64(first[k]), np.uint64(second[k]), np.uint64(best[k])
        x_row, y_row, t = i * n_actions + action, j * n_actions + action, k * n_actions + action
        if np.int64(x_row) != row:
            row = np.int64(x_row)
            for r in range(x_pointer[row], x_pointer[row + 1]):
                row_start[r - x_pointer[row]] = np.uint64(x_next[r]) * width
            if tiled and np.int64(i) // TILE != tile:
                if k > start:
                    _mirror(distance, tile * TILE, (tile + 1) * TILE)
                tile = np.int64(i) // TILE
            if symmetric and np.int64(i) != state:
                _mark_next(x_pointer, x_next, actions, state, near, False)
                state = np.int64(i)
                _mark_next(x_pointer, x_next, actions, state, near, True)
        y0, base = np.uint64(y_pointer[y_row]), np.uint64(offset[t])
        end = base + np.uint64(x_pointer[row + 1] - x_pointer[row] - 1) + np.uint64(y_pointer[y_row + one]) - y0
        own, mirror = i * width + j, (j * width + i if symmetric else i * width + j)
        total, stay = 0.0, 0.0
        if near[j] or (loops_x[x_row] and loops_y[y_row]):  # the pair may lead to itself
            for e in range(base, end):
                cell = np.uint64(cells[e])
                place = row_start[cell >> low] + np.uint64(y_next[y0 + (cell & mask)])
                if place in (own, mirror):
                    stay += mass[e]
                else:
                    total += mass[e] * flat[place]
            flat[own] = (cost[t] + discount * total) / (1.0 - discount * stay)
        else:
            for e in range(base, end):
                cell = np.uint64(cells[e])
                total += mass[e] * flat[row_start[cell >> low] + np.uint64(y_next[y0 + (cell & mask)])]
            flat[own] = cost[t] + discount * total
        if not tiled:
            flat[mirror] = flat[own]
    if tiled and row >= 0:
        _mirror(distance, tile * TILE, (tile + 1) * TILE)


@numba.njit(cache=True, nogil=True)
def _self_loops(pointer, next_state, actions):  # type: ignore[no-untyped-def]
    # Whether each row may stay in its state.
    found = np.zeros(len(pointer) - 1, np.bool_)
    for row in range(len(found)):
        for e in range(pointer[row], pointer[row + 1]):
            found[row] |= next_state[e] == row // actions
    return found


@numba.njit(cache=True, nogil=True)
def _mark_next(pointer, next_state, actions, state, marks, mark):  # type: ignore[no-untyped-def]
    # Marks the next states of a state under all actions; of none for state -1.
    if state >= 0:
        for e in range(pointer[state * actions], pointer[(state + 1) * actions]):
            marks[next_state[e]] = mark


@numba.njit(cache=True, nogil=True)
def _mirror(distance, start, stop):  # type: ignore[no-untyped-def]
    # Copies rows start..stop of the upper triangle into the lower one.
    for j in range(start + 1, len(distance)):
        for i in range(start, min(stop, j)):
            distance[j, i] = distance[i, j]


@numba.njit(cache=True, nogil=True)
def scatter(problem, values, distance):  # type: ignore[no-untyped-def]
    """Writes the values of all pairs into the matrix."""
    first, second = problem.first, problem.second
    for k in range(len(values)):
        distance[first[k], second[k]] = values[k]
        if problem.symmetric and not problem.tiled:
            distance[second[k], first[k]] = values[k]
    if problem.tiled:
        for start in range(0, len(distance), TILE):
            _mirror(distance, start, start + TILE)


@numba.njit(cache=True, nogil=True)
def gather(span, problem, distance, values):  # type: ignore[no-untyped-def]
    """Reads the values of a span (start, stop) of pairs from the matrix."""
    first, second = problem.first, problem.second
    for k in range(span[0], span[1]):
        values[k] = distance[first[k], second[k]]
