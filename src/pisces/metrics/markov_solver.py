"""Policy iteration over couplings, with a certified error.

The distance is the fixed point of T(d)[k] = max_a cost[k, a] + discount * W(d; pair k, a). One round solves all
transports on frozen distances, which gives T(d) and so the certificate |d* - T(d)| <= discount / (1 - discount) *
max |T(d) - d|, and then relaxes the linear system of the couplings just found, by Gauss-Seidel sweeps under Anderson
mixing. Large problems are cut into two shares that see each other's values once per step, so the answer does not
depend on the number of threads.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pisces.errors import UserError
from pisces.metrics import markov_kernels as kernels
from pisces.metrics.markov_chain import MASS_UNIT, Chain, FloatArray
from pisces.metrics.markov_mixing import Mixer
from pisces.metrics.markov_pairs import Pairs
from pisces.metrics.markov_workers import Workers

Progress = Callable[[int, float], None]
"""Called after each round with the number of rounds and the error certified by it."""

SHARE_SIZE = 1 << 15
"""From this many pairs on, the work is cut into two shares."""
MIXING_ENTRIES = 12_000_000
"""Numbers that the mixing may remember per kind of step; larger problems remember fewer steps."""
MIXING_STEPS = 200
"""Steps after which a relaxation goes on without mixing."""
MIXING_DEPTH = 5
"""Steps that the mixing remembers at most."""
SWEEPS_UNMIXED = 2
"""Gauss-Seidel sweeps between two exchanges of values if no steps are remembered; one otherwise."""
ACCURACY = 0.03
"""Relaxation stops when it moves distances by less than this share of the last round's change."""


@dataclass(frozen=True)
class Solution:
    """Distances of the listed pairs and what is known about them."""

    values: FloatArray
    """Distance of every listed pair, [P]."""

    error: float
    """|distance - exact distance| <= error for every listed pair."""

    rounds: int
    """How often all transports were solved."""


REDUCED_COST = 1e-14
"""Reduced costs above minus this share of the largest distance count as zero."""


class Solver:
    """Holds the couplings, distances and scratch memory of one problem while it is solved."""

    def __init__(
        self, chain_x: Chain, chain_y: Chain, pairs: Pairs, cost: FloatArray, discount: float, workers: Workers
    ) -> None:
        self._chain_x, self._chain_y, self._pairs, self._discount = chain_x, chain_y, pairs, discount
        self._workers = workers
        self._lists, self._tiled = (pairs.first, pairs.second), pairs.symmetric and pairs.complete
        count, actions = len(pairs), chain_x.actions
        widest = max(chain_x.widest, chain_y.widest)
        roomy = count * actions * (2 * widest - 1) >= 1 << 32
        offset = np.empty(count * actions, np.int64 if roomy else np.uint32)
        total = kernels.count_transports(*self._lists, chain_x.pointer, chain_y.pointer, actions, offset)
        cells = np.empty(total, np.uint8 if widest <= 16 else np.uint32)
        shift = 4 if widest <= 16 else 16
        best = np.zeros(count, np.uint8 if actions <= 1 << 8 else np.int32)
        chains, limit = (chain_x.arrays, chain_y.arrays), np.full(count * actions, -1.0)
        self._data = (*self._lists, *chains, cost, offset, cells, np.empty(total), shift, best, limit)
        shares = 2 if count >= SHARE_SIZE else 1
        self._cuts = [count * share // shares for share in range(shares + 1)]
        self._matrices = [np.zeros((chain_x.states, chain_y.states)) for _ in range(shares)]
        self._cost_bound = float(kernels.largest(cost))
        self.merged = False
        """Whether states were merged before, which adds their rows' last digits to the error."""
        self.cost_rounding = 0.0
        """What rounding has added to the costs."""
        self._values, self._image, self._frozen = np.zeros(count), np.empty(count), np.zeros(count)
        self._drift = 0.0
        depth = min(MIXING_DEPTH, MIXING_ENTRIES // max(1, count))
        self._mixer, self._sweeps = Mixer(count, depth), 1 if depth else SWEEPS_UNMIXED

    def solve(self, tolerance: float, progress: Progress | None) -> Solution:
        """Runs rounds until the certified error is at most `tolerance`."""
        self._first_round()
        rounds, best, plain, patience = 1, np.inf, 0, 1
        while True:
            change = self._round()
            rounds += 1
            hidden = self._rounding()
            error = (self._discount * change + hidden) / (1 - self._discount)
            if progress is not None:
                progress(rounds, error)
            if error <= tolerance:
                return Solution(self._image, error, rounds)
            if change <= hidden:
                raise UserError(
                    f"expected a tolerance of at least {1.1 * error:.1e}, the rounding error here, got {tolerance}"
                )
            if change > self._discount * best:  # policy iteration made no headway: value iteration always does
                plain, patience = patience, 2 * patience
            best = min(best, change)
            self._values, self._image = self._image, self._values
            if plain:
                plain -= 1
            else:
                self._relax(max(ACCURACY * change, 0.1 * tolerance * (1 - self._discount), hidden))

    def _rounding(self) -> float:
        # What rounding can hide in one round: pivots not worth while, sums of masses and distances, merged rows.
        largest = max(float(kernels.largest(values)) for values in (self._image, self._frozen))
        width = self._chain_x.widest + self._chain_y.widest
        hidden = largest * (REDUCED_COST + 8 * width * 2.0**-53 + self.merged * width / MASS_UNIT)
        return hidden + self.cost_rounding

    def _slack(self) -> float:
        return REDUCED_COST * float(kernels.largest(self._values))

    def _first_round(self) -> None:
        # In place and in order: exact at once for acyclic parts, and a good first guess of the couplings elsewhere.
        self._values[:] = self._data[4].reshape(len(self._values), self._chain_x.actions).max(axis=1)
        flags = (self._chain_x.actions, True, True, self._pairs.symmetric)
        slack = REDUCED_COST * self._cost_bound

        def work(share: int) -> None:
            matrix = self._matrices[share]
            self._scatter(matrix)
            for start, stop in self._workers.chunks(self._cuts[share], self._cuts[share + 1]):
                kernels.improve(start, stop, *self._data, matrix, self._discount, slack, 0.0, flags, self._image)

        self._workers.run(work, range(len(self._cuts) - 1))
        self._values, self._image = self._image, self._values
        self._relax(0.02 * float(kernels.largest(self._values)))

    def _round(self) -> float:
        slack = self._slack()
        flags = (self._chain_x.actions, False, False, self._pairs.symmetric)
        matrix = self._matrices[0]
        self._scatter(matrix)
        self._drift += kernels.furthest(self._values, self._frozen)
        self._frozen[:] = self._values

        def work(piece: tuple[int, int]) -> float:
            setting = (matrix, self._discount, slack, self._drift, flags, self._image)
            return float(kernels.improve(*piece, *self._data, *setting))

        return max(self._workers.run(work, list(self._workers.chunks(0, len(self._pairs)))), default=0.0)

    def _relax(self, target: float) -> None:
        flags = (self._chain_x.actions, self._pairs.symmetric, self._tiled)

        def work(share: int) -> None:
            matrix, low, high = self._matrices[share], self._cuts[share], self._cuts[share + 1]
            self._scatter(matrix)
            for _ in range(self._sweeps):
                for start, stop in self._workers.chunks(low, high):
                    kernels.relax(start, stop, *self._data, matrix, self._discount, flags)
            kernels.gather(low, high, *self._lists, matrix, self._image)

        self._mixer.reset()
        for step in itertools.count():
            self._workers.run(work, range(len(self._cuts) - 1))
            moved = float(kernels.furthest(self._image, self._values))
            if moved <= target or step >= MIXING_STEPS:  # unmixed steps contract, so the loop ends
                self._values, self._image = self._image, self._values
            else:
                self._mixer.mix(self._values, self._image, moved)
            if moved <= target:
                return

    def _scatter(self, matrix: FloatArray) -> None:
        kernels.scatter(*self._lists, self._values, self._pairs.symmetric, self._tiled, matrix)

    def matrix(self, values: FloatArray) -> FloatArray:
        """The distances as a matrix; pairs that were not asked for are NaN."""
        matrix = self._matrices[0]
        if not self._pairs.complete:
            matrix[:] = np.nan
            if self._pairs.symmetric:
                np.fill_diagonal(matrix, 0.0)
        kernels.scatter(*self._lists, values, self._pairs.symmetric, self._tiled, matrix)
        return matrix
