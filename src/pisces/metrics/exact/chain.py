"""Markov chains as sparse rows, and their states ordered so that successors come first."""

from __future__ import annotations

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
IndexArray = NDArray[np.integer[Any]]


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


def subchain(chain: Chain, states: IntArray) -> tuple[Chain, IntArray]:
    """Restricts a chain to some states and their successors, ordered by depth-first postorder.

    Args:
        chain: the chain.
        states: the states whose rows are needed; rows of successors that are not among them are arbitrary.

    Returns:
        The chain, and the original number of each of its states.
    """
    _, source = _entries(chain, states)
    members = np.union1d(states, chain.next_state[source])
    place = np.zeros(chain.n_states, np.int64)
    place[members] = np.arange(len(members))
    part, order = in_postorder(_permuted(chain, members, place))
    return part, members[order]


def as_matrix(chain: Chain) -> scipy.sparse.csr_array:
    """The rows as a sparse matrix [S * A, S]."""
    shape = (len(chain.pointer) - 1, chain.n_states)
    return scipy.sparse.csr_array((chain.probability, chain.next_state, chain.pointer), shape=shape)


def in_postorder(chain: Chain) -> tuple[Chain, IntArray]:
    """Orders the states by depth-first postorder; returns the chain and the original number of each state."""
    order = _postorder(chain.rows, chain.n_actions)
    return _permuted(chain, order, np.argsort(order)), order


def _permuted(chain: Chain, order: IntArray, place: IntArray) -> Chain:
    pointer, source = _entries(chain, order)
    return Chain(pointer, place[chain.next_state[source]], chain.probability[source], chain.n_actions)


def _entries(chain: Chain, states: IntArray) -> tuple[IntArray, IntArray]:
    # Where the rows of some states stand: their own pointers and the entries of the chain.
    chosen = (states[:, None] * chain.n_actions + np.arange(chain.n_actions)).ravel()
    lengths = np.diff(chain.pointer)[chosen]
    pointer = np.concatenate([[0], np.cumsum(lengths)])
    return pointer, np.repeat(chain.pointer[chosen] - pointer[:-1], lengths) + np.arange(pointer[-1])


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
