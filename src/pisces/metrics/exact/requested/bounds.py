"""Bounds of the distances of requested pairs where too many pairs are reached to solve them all.

Pairs are stored as they are needed, each with a lower and an upper bound. A pair whose next pairs are listed gets both
bounds from theirs: the optimal coupling for the lower bounds gives a lower bound, and the same coupling, which need not
be optimal for the upper bounds, an upper bound. Weights flow from the requested pairs along these couplings; a pair
whose weight times the gap of its bounds reaches a threshold is expanded next, so that pairs far away are never listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pisces.errors import RoundingError, UserError
from pisces.metrics.exact.chain import Chain, FloatArray, IntArray
from pisces.metrics.exact.records import Solution
from pisces.metrics.exact.requested.kernels import Bounds, Chains, Workspace, back_up, expand, spread
from pisces.metrics.exact.requested.landmarks import Landmark, landmarks
from pisces.metrics.exact.requested.table import EMPTY, new_table, place_pairs
from pisces.metrics.exact.simplex.basis import TREE_ROWS

if TYPE_CHECKING:
    from pisces.metrics.exact.problem import Costs, Options

PAIRS_LIMIT = 16_000_000
"""Largest number of pairs that are stored."""
REFINEMENT = 4.0
"""Factor by which the threshold falls from one round to the next."""
PROGRESS = 0.8
"""The threshold falls when a round leaves more than this share of the error."""
CHUNK = 1 << 17
"""Number of pairs per call into compiled code; Python can be interrupted between calls."""
REDUCED_COST = 1e-14
"""Reduced costs above minus this share of the largest distance count as zero."""


class BoundedPairs:
    """Lower and upper bounds of pairs, refined around the requested ones."""

    def __init__(
        self,
        chain_x: Chain,
        chain_y: Chain,
        costs: Costs,
        near: Sequence[Landmark],
        requested: IntArray,
        symmetric: bool,
        discount: float,
    ) -> None:
        self._costs, self._near, self._range = costs, near, tuple(bound / (1 - discount) for bound in costs.bounds())
        self._largest = max(abs(bound) for bound in self._range)
        slack = REDUCED_COST * self._largest
        self._chains = Chains(chain_x.rows, chain_y.rows, chain_x.n_actions, discount, slack)
        self._rounding = self._largest * (REDUCED_COST + 8 * (chain_x.widest + chain_y.widest) * 2.0**-53)
        widest = (chain_x.widest, chain_y.widest)
        tree, flow = np.empty((TREE_ROWS, sum(widest)), np.int64), np.empty((5, sum(widest)))
        self._scratch = Workspace(np.empty(widest), tree, flow, np.zeros(1, np.int64))
        self._children, self._used = np.empty(1 << 16, np.int32), 0
        self._bounds = Bounds(
            np.empty(0),
            np.empty(0),
            np.empty((0, chain_x.n_actions)),
            np.empty(0, np.int64),
            np.empty(0),
            np.empty(0, np.bool_),
        )
        self._index = np.empty(len(requested), np.int64)
        self._table, count = place_pairs(new_table(chain_y.n_states, symmetric), 0, requested, self._index)
        self._count = 0
        self._add(count)

    @property
    def count(self) -> int:
        """The number of stored pairs."""
        return self._count

    def rounding(self, cost_rounding: float) -> float:
        """Bounds the rounding errors of all backups together: each adds the same, and passes on less than it got."""
        return (self._rounding + cost_rounding) / (1 - self._chains.discount)

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Returns the lower and upper bounds of the requested pairs, without rounding errors."""
        known = self._index != EMPTY
        low, high = self._bounds.low[self._index], self._bounds.high[self._index]
        return np.where(known, low, 0.0), np.where(known, high, 0.0)

    def refine(self, threshold: float) -> None:
        """Expands every pair whose weight times its gap is at least `threshold`, then improves all bounds."""
        roots = np.unique(self._index[self._index != EMPTY])
        self._bounds.weight[:], self._bounds.listed[:] = 0.0, False
        self._bounds.weight[roots] = 1.0
        current, waves = roots.astype(np.int32), []
        while len(current) and self._count <= PAIRS_LIMIT:
            self._expand(current[self._bounds.child[current] == EMPTY])
            waves.append(current)
            current = spread(
                current, threshold, self._table, self._bounds, self._children, self._chains, self._scratch
            ).copy()
        for wave in reversed(waves):
            for stop in range(len(wave), 0, -CHUNK):
                part = wave[max(0, stop - CHUNK) : stop]
                back_up(part, self._table, self._bounds, self._children, self._chains, self._scratch)

    def _expand(self, chosen: NDArray[np.int32]) -> None:
        self._table, count, self._children, self._used = expand(
            chosen, self._table, self._count, self._bounds.child, self._children, self._used, self._chains
        )
        self._add(count)

    def _add(self, count: int) -> None:
        # Gives new pairs their costs and first bounds.
        old, room = self._count, len(self._table.first)
        if room > len(self._bounds.low):
            self._bounds = Bounds._make(_with_room(array, old, room) for array in self._bounds)
        new = slice(old, count)
        cost = self._costs.of_pairs(self._table.first[new], self._table.second[new])
        bounds, discount = self._bounds, self._chains.discount
        bounds.cost[new], bounds.child[new], bounds.weight[new], bounds.listed[new] = cost, EMPTY, 0.0, False
        top = cost.max(axis=1, initial=-np.inf)
        bounds.low[new], bounds.high[new] = (top + discount * bound for bound in self._range)
        for landmark in self._near:
            low, high = landmark.bounds(self._table.first[new], self._table.second[new])
            np.maximum(bounds.low[new], low, out=bounds.low[new])
            np.minimum(bounds.high[new], high, out=bounds.high[new])
        self._count = count


def _with_room(array: NDArray[Any], used: int, room: int) -> NDArray[Any]:
    longer = np.empty((room, *array.shape[1:]), array.dtype)
    longer[:used] = array[:used]
    return longer


def solve_by_bounds(
    chain_x: Chain,
    chain_y: Chain,
    costs: Costs,
    requested: IntArray,
    symmetric: bool,
    options: Options,
    cost_rounding: float,
) -> Solution:
    """Solves requested pairs [k, 2]: the middle of their bounds once these are close enough."""
    discount = float(options.discount)
    near = landmarks(chain_x, chain_y, costs, discount, options.tolerance, cost_rounding)
    pairs = BoundedPairs(chain_x, chain_y, costs, near, requested, symmetric, discount)
    hidden, rounds, last = pairs.rounding(cost_rounding), 0, np.inf
    if 2 * hidden > options.tolerance:
        raise RoundingError(2.2 * hidden, options.tolerance)
    low, high = pairs.bounds()
    threshold = float((high - low).max()) / REFINEMENT
    while True:
        gap = float((high - low).max())
        error = gap / 2 + hidden
        if options.progress is not None and rounds:
            options.progress(rounds, error)
        if error <= options.tolerance:
            return Solution((low + high) / 2, error, rounds)
        if pairs.count > PAIRS_LIMIT:
            raise UserError(
                f"{pairs.count} pairs of states certify an error of {error:.1e} only; raise the tolerance of "
                f"{options.tolerance} to that, or request fewer pairs"
            )
        threshold, last = threshold / (REFINEMENT if gap > PROGRESS * last else 1.0), gap
        pairs.refine(threshold)
        rounds, (low, high) = rounds + 1, pairs.bounds()
