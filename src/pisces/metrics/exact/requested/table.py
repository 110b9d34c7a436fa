"""Pairs of states in a hash table, in the order in which they are found."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from pisces.metrics.exact.chain import Chain, IntArray

EMPTY = -1
"""The key of a free place; also the index of a pair of equal states whose distance is zero."""
FIRST_SIZE = 1 << 10
"""Number of places of a new table."""


class PairTable(NamedTuple):
    """Pairs of states and where they are stored."""

    first: NDArray[np.int32]
    """The state of X of each pair; entries beyond the number of pairs are free."""
    second: NDArray[np.int32]
    """The state of Y of each pair."""
    keys: IntArray
    """The pair at each place of the hash table, as first * n_second + second, or EMPTY; a power of two of places."""
    places: NDArray[np.int32]
    """The index of the pair at each place."""
    n_second: int
    """The number of states of Y."""
    symmetric: bool
    """Whether (i, j) also represents (j, i), and pairs (i, i) are not stored because their distance is 0."""


def new_table(n_second: int, symmetric: bool) -> PairTable:
    """Returns an empty table."""
    first, second = np.empty((2, FIRST_SIZE // 2), np.int32)
    return PairTable(
        first, second, np.full(FIRST_SIZE, EMPTY), np.empty(FIRST_SIZE, np.int32), n_second, bool(symmetric)
    )


@numba.njit(cache=True, nogil=True)
def grown(table, count, room):  # type: ignore[no-untyped-def]
    """Returns a table with room for more pairs: the same one if it has it, otherwise one of twice the size."""
    size = len(table.keys)
    if 2 * (count + room) <= size:
        return table
    while 2 * (count + room) > size:
        size *= 2
    first, second = np.empty(size // 2, np.int32), np.empty(size // 2, np.int32)
    first[:count], second[:count] = table.first[:count], table.second[:count]
    keys, places, mask = np.full(size, EMPTY, np.int64), np.empty(size, np.int32), np.uint64(size - 1)
    for k in range(count):
        key = np.int64(first[k]) * table.n_second + second[k]
        at = _hash(key) & mask
        while keys[at] != EMPTY:
            at = (at + np.uint64(1)) & mask
        keys[at], places[at] = key, k
    return PairTable(first, second, keys, places, table.n_second, table.symmetric)


@numba.njit(cache=True, nogil=True, inline="always")
def _hash(key):  # type: ignore[no-untyped-def]
    value = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    value ^= value >> np.uint64(32)
    return value * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(20)


@numba.njit(cache=True, nogil=True)
def place_pair(table, count, i, j):  # type: ignore[no-untyped-def]
    """Returns the index of a pair, which is `count` if it was added, or EMPTY if its distance is known to be zero."""
    if table.symmetric:
        if i == j:
            return np.int64(EMPTY)
        i, j = min(i, j), max(i, j)
    keys, mask = table.keys, np.uint64(len(table.keys) - 1)
    key = np.int64(i) * table.n_second + j
    at = _hash(key) & mask
    while keys[at] != EMPTY:
        if keys[at] == key:
            return np.int64(table.places[at])
        at = (at + np.uint64(1)) & mask
    keys[at], table.places[at] = key, count
    table.first[count], table.second[count] = i, j
    return np.int64(count)


@numba.njit(cache=True, nogil=True)
def place_pairs(table, count, pairs, index):  # type: ignore[no-untyped-def]
    """Adds pairs [k, 2] to a table, writes their indices and returns the table and its number of pairs."""
    table = grown(table, count, len(pairs))
    for k in range(len(pairs)):
        index[k] = place_pair(table, count, pairs[k, 0], pairs[k, 1])
        count += index[k] == count
    return table, count


def reached_pairs(
    chain_x: Chain, chain_y: Chain, requested: IntArray, symmetric: bool, limit: int
) -> tuple[PairTable, int, bool]:
    """Lists the requested pairs and every pair that any coupling reaches from them, breadth first.

    Args:
        chain_x: the chain of X.
        chain_y: the chain of Y.
        requested: pairs [k, 2].
        symmetric: whether (i, j) also represents (j, i).
        limit: number of pairs after which to stop.

    Returns:
        The table, its number of pairs, and whether all were listed.
    """
    table = new_table(chain_y.n_states, symmetric)
    return _closure(chain_x.rows, chain_y.rows, chain_x.n_actions, requested, table, limit)  # type: ignore[no-any-return]


@numba.njit(cache=True, nogil=True)
def _closure(x, y, actions, requested, table, limit):  # type: ignore[no-untyped-def]
    table, count = place_pairs(table, 0, requested, np.empty(len(requested), np.int64))
    k = 0
    while k < count:
        if count > limit:
            return table, count, False
        i, j = np.int64(table.first[k]), np.int64(table.second[k])
        k += 1
        for action in range(actions):
            a, b = i * actions + action, j * actions + action
            room = (x.pointer[a + 1] - x.pointer[a]) * (y.pointer[b + 1] - y.pointer[b])
            table = grown(table, count, room)
            for u in range(x.pointer[a], x.pointer[a + 1]):
                for v in range(y.pointer[b], y.pointer[b + 1]):
                    count += place_pair(table, count, x.next_state[u], y.next_state[v]) == count
    return table, count, True


@numba.njit(cache=True, nogil=True)
def successors(x, y, actions, table, count):  # type: ignore[no-untyped-def]
    """Returns the index of the next pair of every pair and action of deterministic chains, [P, A]."""
    successor = np.empty((count, actions), np.int32)
    for k in range(count):
        for action in range(actions):
            i, j = np.int64(table.first[k]) * actions + action, np.int64(table.second[k]) * actions + action
            successor[k, action] = place_pair(table, count, x.next_state[x.pointer[i]], y.next_state[y.pointer[j]])
    return successor
