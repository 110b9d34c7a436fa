"""Merging of equivalent states of a chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pisces.metrics.exact.chain import Chain, FloatArray, IntArray, as_matrix, chain_from_rows, in_postorder

MASS_UNIT = 2.0**50
"""Probabilities that differ by less than one part in this count as equal when states are merged."""


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
    ordered, order = in_postorder(quotient)
    place = np.argsort(order)
    return Reduction(ordered, member[order], place[labels])


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


def _quotient(chain: Chain, labels: IntArray, member: IntArray) -> Chain:
    chosen = (member[:, None] * chain.n_actions + np.arange(chain.n_actions)).ravel()
    rows = as_matrix(chain)[chosen].tocoo()
    shape = (len(chosen), len(member))
    merged = scipy.sparse.coo_array((rows.data, (rows.row, labels[rows.col])), shape=shape)
    return chain_from_rows(merged.tocsr(), chain.n_actions)
