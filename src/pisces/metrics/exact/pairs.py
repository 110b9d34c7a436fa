"""Pairs of states to solve, in order: all, one triangle, or a list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from pisces.metrics.exact.chain import IntArray


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


def listed_pairs(first: IntArray, second: IntArray, shape: tuple[int, int], symmetric: bool) -> Pairs:
    """Lists given pairs, which must be sorted and closed under the chains' transitions."""
    kind = _index_type(*shape)
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
