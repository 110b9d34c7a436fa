"""Pairs of states to solve, in order: all, one triangle, or the requested ones and those that they reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from pisces.metrics.exact.chain import Chain, IntArray


@dataclass(frozen=True)
class Pairs:
    """A list of pairs of states (of the reduced chains), sorted by first and then second state."""

    first: NDArray[np.unsignedinteger[Any]]
    """States of X."""

    second: NDArray[np.unsignedinteger[Any]]
    """States of Y."""

    symmetric: bool
    """Whether (i, j) also represents (j, i), and pairs (i, i) are omitted because their distance is 0."""

    complete: bool
    """Whether every pair is listed."""

    def __len__(self) -> int:
        return len(self.first)


def all_pairs(states_x: int, states_y: int, symmetric: bool) -> Pairs:
    """Lists every pair, or those with first < second if the problem is symmetric."""
    count = states_x * (states_x - 1) // 2 if symmetric else states_x * states_y
    kind = _index_type(states_x, states_y)
    first, second = np.empty(count, kind), np.empty(count, kind)
    _fill(states_x, states_y, symmetric, first, second)
    return Pairs(first, second, symmetric, complete=True)


def reached_pairs(chain_x: Chain, chain_y: Chain, requested: IntArray, symmetric: bool) -> Pairs:
    """Lists the requested pairs [n, 2] and every pair that any coupling can reach from them."""
    mask = _closure(chain_x.rows, chain_y.rows, chain_x.n_actions, requested, symmetric)
    first, second = np.nonzero(mask)
    kind = _index_type(chain_x.n_states, chain_y.n_states)
    return Pairs(first.astype(kind), second.astype(kind), symmetric, complete=False)


def _index_type(states_x: int, states_y: int) -> type[np.unsignedinteger[Any]]:
    return np.uint16 if max(states_x, states_y) <= 1 << 16 else np.uint32


@numba.njit(cache=True, nogil=True)
def _fill(states_x, states_y, symmetric, first, second):  # type: ignore[no-untyped-def]
    k = 0
    for i in range(states_x):
        for j in range(i + 1 if symmetric else 0, states_y):
            first[k], second[k] = i, j
            k += 1


@numba.njit(cache=True, nogil=True)
def _closure(x, y, actions, requested, symmetric):  # type: ignore[no-untyped-def]
    (x_pointer, x_next, _), (y_pointer, y_next, _) = x, y
    states_x, states_y = (len(x_pointer) - 1) // actions, (len(y_pointer) - 1) // actions
    mask = np.zeros((states_x, states_y), np.bool_)
    stack, height = np.empty(states_x * states_y, np.int64), 0
    for k in range(len(requested)):
        height = _push(requested[k, 0], requested[k, 1], symmetric, mask, stack, height)
    while height:
        height -= 1
        i, j = stack[height] // states_y, stack[height] % states_y
        for action in range(actions):
            a, b = i * actions + action, j * actions + action
            for u in range(x_pointer[a], x_pointer[a + 1]):
                for v in range(y_pointer[b], y_pointer[b + 1]):
                    height = _push(x_next[u], y_next[v], symmetric, mask, stack, height)
    return mask


@numba.njit(cache=True, nogil=True)
def _push(i, j, symmetric, mask, stack, height):  # type: ignore[no-untyped-def]
    if symmetric:
        if i == j:
            return height
        i, j = min(i, j), max(i, j)
    if not mask[i, j]:
        mask[i, j] = True
        stack[height] = i * mask.shape[1] + j
        height += 1
    return height
