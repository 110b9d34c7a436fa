"""Records of arrays that the compiled loops of the metric solver take, and what solvers return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pisces.errors import RoundingError
from pisces.metrics.exact.chain import FloatArray, Rows

Progress = Callable[[int, float], None]
"""Called after each round with the number of rounds and the error certified by it."""

UnsignedArray = NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True)
class Solution:
    """Distances of the listed pairs, with a certified error."""

    values: FloatArray
    """Distance of every listed pair, [P]."""

    error: float
    """|distance - exact distance| <= error for every listed pair."""

    rounds: int
    """The number of times that all transports were solved."""


def check_reachable(change: float, hidden: float, error: float, tolerance: float) -> None:
    """Raises if the last change is within the rounding error, so that no further round can help."""
    if change <= hidden:
        raise RoundingError(1.1 * error, tolerance)


class Problem(NamedTuple):
    """The pairs, chains and costs of a metric; the solver does not change them."""

    first: UnsignedArray
    """The state of X of each pair, [P]."""
    second: UnsignedArray
    """The state of Y of each pair, [P]."""
    x: Rows
    """The rows of the chain of X."""
    y: Rows
    """The rows of the chain of Y."""
    cost: FloatArray
    """The cost of each pair and action, [P * A]."""
    n_actions: int
    """The number of actions A."""
    discount: float
    """The discount, in [0, 1)."""
    symmetric: bool
    """Whether the distance of (i, j) is also that of (j, i)."""
    tiled: bool
    """Whether a few rows are mirrored at a time, which saves most cache misses; all pairs i < j must be listed."""


class Couplings(NamedTuple):
    """The last optimal coupling of every transport, as a basis and its masses."""

    offset: NDArray[Any]
    """The first cell of each transport, [P * A]."""
    cells: NDArray[Any]
    """The basis cells of all transports, row << shift | column."""
    mass: FloatArray
    """The mass of each basis cell."""
    shift: int
    """The number of bits of a column."""
    best: NDArray[Any]
    """The action of each pair whose value is largest, [P]."""
    limit: FloatArray
    """The drift up to which each basis stays optimal, [P * A]."""


class Round(NamedTuple):
    """How `improve` treats the transports in one round."""

    slack: float
    """Reduced costs above minus this count as zero."""
    drift: float
    """A bound on how far any distance has moved since the first round in total."""
    fresh: bool
    """Whether no basis is stored yet."""
    in_place: bool
    """Whether each result is written into the distances at once."""


class Place(NamedTuple):
    """Where one transport is stored."""

    base: np.int64
    """Its first basis cell."""
    x0: int
    """The first entry of its row in the chain of X."""
    kx: int
    """The number of entries of that row."""
    y0: int
    """The first entry of its row in the chain of Y."""
    ky: int
    """The number of entries of that row."""


class Rest(NamedTuple):
    """Memory for the part of a transport that remains when shared mass stays in place; see `simplex.shared`."""

    table: FloatArray
    """Its distances."""
    rows: NDArray[np.int64]
    """Its rows, among those of the whole transport."""
    columns: NDArray[np.int64]
    """Its columns."""
    partner: NDArray[np.int64]
    """The column with the same state as each row of the whole transport, or -1."""
    column_of: NDArray[np.int64]
    """The column of each state; entries of other states are arbitrary."""


class Scratch(NamedTuple):
    """Memory for one transport; see `simplex`."""

    table: FloatArray
    """The distances between the next states."""
    tree: NDArray[np.int64]
    """The basis as a tree."""
    flow: FloatArray
    """Masses, potentials and marginals."""
    rest: Rest
    """Memory for a part of it."""
