"""Markov chains as sparse rows, with equal states merged and states ordered so that successors come first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pisces.errors import UserError
from pisces.validation import PROBABILITY_TOLERANCE

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MASS_UNIT = 2.0**50
"""Probabilities that differ by less than one part in this count as equal when states are merged."""


class Rows(NamedTuple):
    """The arrays of a chain, in the form that compiled functions take; see `Chain`."""

    pointer: IntArray
    """Row r occupies entries pointer[r] to pointer[r + 1]."""

    next_state: IntArray
    """The next states of all rows, one row after the other."""

    probability: FloatArray
    """The probabilities of the next states."""


@dataclass(frozen=True)
class Chain:
    """Next-state distributions of every state and action, without zeros; row state * actions + action."""

    pointer: IntArray
    """Row r occupies entries pointer[r] to pointer[r + 1], [S * A + 1]."""

    next_state: IntArray
    """The next states of all rows, one row after the other."""

    probability: FloatArray
    """The probabilities of the next states; every row sums to 1."""

    n_actions: int
    """The number of actions A; 1 for a chain under a policy."""

    @property
    def n_states(self) -> int:
        """The number of states."""
        return (len(self.pointer) - 1) // self.n_actions

    @property
    def rows(self) -> Rows:
        """The arrays in the form that compiled functions take."""
        return Rows(self.pointer, self.next_state, self.probability)

    @cached_property
    def widest(self) -> int:
        """The largest number of next states in a row."""
        return int(np.diff(self.pointer).max())


def chain_from_rows(rows: scipy.sparse.csr_array, n_actions: int) -> Chain:
    """Builds a chain from sparse rows [S * A, S]; zeros are dropped and each row is scaled to sum to 1."""
    rows = scipy.sparse.csr_array(rows, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    lengths = np.diff(rows.indptr)
    sums = np.add.reduceat(rows.data, rows.indptr[:-1])
    return Chain(
        rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data / np.repeat(sums, lengths), n_actions
    )


def markov_chain(transitions: Any) -> Chain:
    """Builds a chain from a transition matrix [n, n], dense or sparse, after checking that its rows sum to 1."""
    matrix = transitions if scipy.sparse.issparse(transitions) else np.asarray(transitions, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise UserError(f"expected transition probabilities [n, n] with n >= 1, got shape {list(matrix.shape)}")
    return chain_from_rows(scaled_rows(scipy.sparse.csr_array(matrix, dtype=np.float64), 1), 1)


def scaled_rows(rows: scipy.sparse.csr_array, n_actions: int) -> scipy.sparse.csr_array:
    """Scales rows [S * A, S] that sum to 1 within the tolerance to sum to 1 in all digits; raises if they do not."""
    bad = np.flatnonzero(~np.isfinite(rows.data) | (rows.data < 0))
    if bad.size:
        row = int(np.searchsorted(rows.indptr, bad[0], side="right")) - 1
        place = f"{_place(row, n_actions)}, next state {rows.indices[bad[0]]}"
        raise UserError(f"expected probabilities >= 0, got {rows.data[bad[0]]} at {place}")
    sums = np.asarray(rows.sum(axis=1)).ravel()
    wrong = np.flatnonzero(np.abs(sums - 1) > PROBABILITY_TOLERANCE)
    if wrong.size:
        place = _place(wrong[0], n_actions)
        raise UserError(f"expected next-state probabilities that sum to 1, got a sum of {sums[wrong[0]]} at {place}")
    entries = np.diff(rows.indptr)
    # Rows that differ by rounding alone stay as they are, so that a saved MDP is the same when it is loaded.
    sums[np.abs(sums - 1) <= 2.0**-52 * entries] = 1.0
    data = rows.data / np.repeat(sums, entries)
    return scipy.sparse.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)


def _place(row: int, n_actions: int) -> str:
    return f"state {row // n_actions}" + (f", action {row % n_actions}" if n_actions > 1 else "")


@dataclass(frozen=True)
class Reduction:
    """A chain with equal states merged and the classes ordered."""

    chain: Chain
    """The chain over classes."""

    member: IntArray
    """One original state of each class, [classes]."""

    class_of: IntArray
    """The class of each original state, [S]."""


def reduce_chain(chain: Chain, costs: Sequence[FloatArray]) -> Reduction:
    """Merges states with equal costs and equivalent successors, and orders the classes by depth-first postorder.

    Two states are merged if their rows of costs are equal and, for every action, they reach each class with the same
    probability (the coarsest such partition): their distances to any state are then equal. In the new order an acyclic
    part of the chain lists successors before predecessors, so one Gauss-Seidel sweep solves it.

    Args:
        chain: the chain.
        costs: the cost of its states paired with each state of the other chain, [S, m] for every action.
    """
    labels = _equal_rows(costs)
    while labels.max() + 1 < chain.n_states:
        refined = _compact(_refine(chain.rows, chain.n_actions, labels))
        if refined.max() == labels.max():
            break
        labels = refined
    if not _is_stable(chain.rows, chain.n_actions, labels):
        labels = np.arange(chain.n_states)
    _, member = np.unique(labels, return_index=True)
    quotient = chain if len(member) == chain.n_states else _quotient(chain, labels, member)
    order = _postorder(quotient.rows, quotient.n_actions)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return Reduction(_permuted(quotient, order, place), member[order], place[labels])


def _equal_rows(tables: Sequence[FloatArray]) -> IntArray:
    keys = np.zeros(len(tables[0]), np.uint64)
    for table in tables:
        _hash_rows(table, keys)
    labels = _compact(keys)
    _, member = np.unique(labels, return_index=True)
    if len(member) < len(labels) and not all(_rows_equal(table, member[labels]) for table in tables):
        return np.arange(len(labels))  # two different rows with one hash: merge nothing
    return labels


@numba.njit(cache=True, nogil=True)
def _hash_rows(table, keys):  # type: ignore[no-untyped-def]
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            bits = np.float64(table[i, j] + 0.0).view(np.uint64)  # adding 0.0 turns -0.0 into 0.0
            keys[i] = (keys[i] ^ bits) * np.uint64(0x9E3779B97F4A7C15)
            keys[i] ^= keys[i] >> np.uint64(31)


@numba.njit(cache=True, nogil=True)
def _rows_equal(table, member):  # type: ignore[no-untyped-def]
    for i in range(table.shape[0]):
        if member[i] != i:
            for j in range(table.shape[1]):
                if table[i, j] != table[member[i], j]:
                    return False
    return True


def _compact(labels: NDArray[np.generic]) -> IntArray:
    # Numbered by first appearance, so that a chain without equal states keeps the order of its states.
    _, index, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(index), np.int64)
    rank[np.argsort(index)] = np.arange(len(index))
    return rank[inverse]


@numba.njit(cache=True, nogil=True)
def _scramble(value):  # type: ignore[no-untyped-def]
    value = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0xD1B54A32D192ED03)
    value ^= value >> np.uint64(29)
    value *= np.uint64(0xBF58476D1CE4E5B9)
    value ^= value >> np.uint64(32)
    return value


@numba.njit(cache=True, nogil=True)
def _refine(rows, actions, labels):  # type: ignore[no-untyped-def]
    # A hash that is linear in the mass of each class, so masses of one class add up; `_is_stable` checks the outcome.
    pointer, next_state, probability = rows
    states = (len(pointer) - 1) // actions
    keys = np.empty(states, np.uint64)
    for state in range(states):
        key = _scramble(labels[state])
        for action in range(actions):
            total = np.uint64(0)
            for e in range(pointer[state * actions + action], pointer[state * actions + action + 1]):
                units = np.uint64(np.int64(np.round(probability[e] * MASS_UNIT)))
                total += units * _scramble(labels[next_state[e]] + 1000003)
            key = _scramble(key ^ _scramble(total + np.uint64(action)))
        keys[state] = key
    return keys


@numba.njit(cache=True, nogil=True)
def _is_stable(rows, actions, labels):  # type: ignore[no-untyped-def]
    pointer, next_state, probability = rows
    states = (len(pointer) - 1) // actions
    member = np.full(states, -1, np.int64)
    mass = np.zeros(states)
    for state in range(states):
        if member[labels[state]] < 0:
            member[labels[state]] = state
            continue
        for action in range(actions):
            own, other = state * actions + action, member[labels[state]] * actions + action
            for e in range(pointer[own], pointer[own + 1]):
                mass[labels[next_state[e]]] += probability[e]
            for e in range(pointer[other], pointer[other + 1]):
                mass[labels[next_state[e]]] -= probability[e]
            gap = 0.0
            for row in (own, other):
                for e in range(pointer[row], pointer[row + 1]):
                    gap += abs(mass[labels[next_state[e]]])
                    mass[labels[next_state[e]]] = 0.0
            if gap > (pointer[own + 1] - pointer[own] + pointer[other + 1] - pointer[other]) / MASS_UNIT:
                return False
    return True


def _as_matrix(chain: Chain) -> scipy.sparse.csr_array:
    shape = (len(chain.pointer) - 1, chain.n_states)
    return scipy.sparse.csr_array((chain.probability, chain.next_state, chain.pointer), shape=shape)


def _quotient(chain: Chain, labels: IntArray, member: IntArray) -> Chain:
    chosen = (member[:, None] * chain.n_actions + np.arange(chain.n_actions)).ravel()
    rows = _as_matrix(chain)[chosen].tocoo()
    shape = (len(chosen), len(member))
    merged = scipy.sparse.coo_array((rows.data, (rows.row, labels[rows.col])), shape=shape)
    return chain_from_rows(merged.tocsr(), chain.n_actions)


def _permuted(chain: Chain, order: IntArray, place: IntArray) -> Chain:
    chosen = (order[:, None] * chain.n_actions + np.arange(chain.n_actions)).ravel()
    lengths = np.diff(chain.pointer)[chosen]
    pointer = np.concatenate([[0], np.cumsum(lengths)])
    source = np.repeat(chain.pointer[chosen] - pointer[:-1], lengths) + np.arange(pointer[-1])
    return Chain(pointer, place[chain.next_state[source]], chain.probability[source], chain.n_actions)


@numba.njit(cache=True, nogil=True)
def _postorder(rows, actions):  # type: ignore[no-untyped-def]
    pointer, next_state, _ = rows
    states = (len(pointer) - 1) // actions
    order, found = np.empty(states, np.int64), 0
    seen, stack, cursor = np.zeros(states, np.bool_), np.empty(states, np.int64), np.empty(states, np.int64)
    for root in range(states):
        if seen[root]:
            continue
        seen[root], stack[0], cursor[0], height = True, root, pointer[root * actions], 1
        while height:
            state = stack[height - 1]
            if cursor[height - 1] == pointer[(state + 1) * actions]:
                order[found] = state
                found += 1
                height -= 1
                continue
            child = next_state[cursor[height - 1]]
            cursor[height - 1] += 1
            if not seen[child]:
                seen[child], stack[height], cursor[height] = True, child, pointer[child * actions]
                height += 1
    return order
