"""Policy iteration over couplings, with a certified error.

The distance is the fixed point of T(d)[k] = max_a cost[k, a] + discount * W(d; pair k, a). One round solves all
transports on frozen distances, which gives T(d) and so the certificate |d* - T(d)| <= discount / (1 - discount) *
max |T(d) - d|, and then relaxes the linear system of the couplings just found, by Gauss-Seidel sweeps under Anderson
mixing. Large problems are split into two shares that exchange values once per step, so the result does not depend on
the number of threads.
"""

from __future__ import annotations

import itertools

import numpy as np

from pisces.metrics.exact import kernels
from pisces.metrics.exact.chain import Chain, FloatArray
from pisces.metrics.exact.pairs import Pairs
from pisces.metrics.exact.records import Couplings, Problem, Progress, Round, Solution, check_reachable
from pisces.metrics.exact.reduction import MASS_UNIT
from pisces.metrics.exact.relaxation import sweeps
from pisces.metrics.exact.relaxation.factoring import solve_couplings
from pisces.metrics.exact.relaxation.mixing import Mixer
from pisces.metrics.exact.workers import Workers

SHARE_SIZE = 1 << 15
"""Number of pairs from which the work is split into two shares."""
MIXING_ENTRIES = 12_000_000
"""Number of values that the mixing stores per kind of step; larger problems store fewer steps."""
MIXING_STEPS = 200
"""Number of steps after which a relaxation continues without mixing."""
MIXING_DEPTH = 5
"""Largest number of steps that the mixing stores."""
SWEEPS_UNMIXED = 2
"""Gauss-Seidel sweeps between two exchanges of values if no steps are stored; one otherwise."""
FACTOR_AFTER = 30
"""Number of steps after which the linear system is factored, if it is small enough."""
FACTOR_AGAIN = 4
"""The same, once factors have solved a system."""
FACTOR_PAIRS = 1 << 18
"""Largest number of pairs for which it is."""
STALE_ROUNDS = 6
"""Rounds without a smaller error after which value iteration takes over; one if there are several actions."""
ACCURACY = 0.03
"""Relaxation stops when it moves distances by less than this share of the last round's change."""


REDUCED_COST = 1e-14
"""Reduced costs above minus this share of the largest distance count as zero."""


class Solver:
    """Solves one problem; holds its couplings, distances and scratch memory."""

    def __init__(
        self, chain_x: Chain, chain_y: Chain, pairs: Pairs, cost: FloatArray, discount: float, workers: Workers
    ) -> None:
        self._pairs, self._workers, count = pairs, workers, len(pairs)
        tiled = pairs.symmetric and pairs.complete
        chains = (chain_x.rows, chain_y.rows)
        self._problem = Problem(
            pairs.first, pairs.second, *chains, cost, chain_x.n_actions, discount, pairs.symmetric, tiled
        )
        self._couplings = _make_couplings(self._problem, max(chain_x.widest, chain_y.widest))
        self._width = chain_x.widest + chain_y.widest
        shares = 2 if count >= SHARE_SIZE else 1
        self._cuts = [count * share // shares for share in range(shares + 1)]
        self._matrices = [np.zeros((chain_x.n_states, chain_y.n_states)) for _ in range(shares)]
        self._cost_bound = float(kernels.largest(cost))
        self.merged = False
        """Whether states were merged, which adds the rounding of their rows to the error."""
        self.cost_rounding = 0.0
        """The largest rounding error in the costs."""
        self._values, self._image, self._frozen = np.zeros(count), np.empty(count), np.zeros(count)
        self._drift, self._patience = 0.0, FACTOR_AFTER
        depth = min(MIXING_DEPTH, MIXING_ENTRIES // max(1, count))
        self._mixer, self._sweeps = Mixer(count, depth), 1 if depth else SWEEPS_UNMIXED

    def solve(self, tolerance: float, progress: Progress | None) -> Solution:
        """Runs rounds until the certified error is at most `tolerance`."""
        self._first_round()
        rounds, best, plain, patience, stale = 1, np.inf, 0, 1, 0
        while True:
            change = self._round()
            rounds += 1
            hidden = self._rounding()
            error = (self._problem.discount * change + hidden) / (1 - self._problem.discount)
            if progress is not None:
                progress(rounds, error)
            if error <= tolerance:
                return Solution(self._image, error, rounds)
            check_reachable(change, hidden, error, tolerance)
            # Without a maximum, distances fall from round to round even when the largest change does not.
            stale = stale + 1 if change > self._problem.discount * best else 0
            if stale >= (STALE_ROUNDS if self._problem.n_actions == 1 else 1):
                plain, patience, stale = patience, 2 * patience, 0
            best = min(best, change)
            self._values, self._image = self._image, self._values
            if plain:
                plain -= 1
            else:
                self._relax(max(ACCURACY * change, 0.1 * tolerance * (1 - self._problem.discount), hidden))

    def _rounding(self) -> float:
        # Bounds the rounding error of one round: skipped pivots, sums of masses and distances, merged rows.
        largest = max(float(kernels.largest(values)) for values in (self._image, self._frozen))
        hidden = largest * (REDUCED_COST + 8 * self._width * 2.0**-53 + self.merged * self._width / MASS_UNIT)
        return hidden + self.cost_rounding

    def _first_round(self) -> None:
        # In place and in order: exact at once for acyclic parts, and a good first guess of the couplings elsewhere.
        problem, couplings = self._problem, self._couplings
        self._values[:] = problem.cost.reshape(len(self._values), problem.n_actions).max(axis=1)
        first = Round(REDUCED_COST * self._cost_bound, drift=0.0, fresh=True, in_place=True)

        def work(share: int) -> None:
            matrix = self._matrices[share]
            self._scatter(matrix)
            for span in self._workers.chunks(self._cuts[share], self._cuts[share + 1]):
                kernels.improve(span, problem, couplings, first, matrix, self._image)

        self._workers.run(work, range(len(self._cuts) - 1))
        self._values, self._image = self._image, self._values
        self._relax(0.02 * float(kernels.largest(self._values)), FACTOR_AFTER)

    def _round(self) -> float:
        matrix, slack = self._matrices[0], REDUCED_COST * float(kernels.largest(self._values))
        self._scatter(matrix)
        self._drift += kernels.furthest(self._values, self._frozen)
        self._frozen[:] = self._values

        settings = Round(slack, self._drift, fresh=False, in_place=False)

        def work(span: tuple[int, int]) -> float:
            return float(kernels.improve(span, self._problem, self._couplings, settings, matrix, self._image))

        return max(self._workers.run(work, list(self._workers.chunks(0, len(self._pairs)))), default=0.0)

    def _relax(self, target: float, limit: int | None = None) -> None:
        def work(share: int) -> None:
            matrix, low, high = self._matrices[share], self._cuts[share], self._cuts[share + 1]
            self._scatter(matrix)
            for _ in range(self._sweeps):
                for span in self._workers.chunks(low, high):
                    sweeps.relax(span, self._problem, self._couplings, matrix)
            sweeps.gather((low, high), self._problem, matrix, self._image)

        self._mixer.reset()
        for step in itertools.count():
            self._workers.run(work, range(len(self._cuts) - 1))
            moved = float(kernels.furthest(self._image, self._values))
            if moved <= target or step >= MIXING_STEPS:  # unmixed steps contract, so the loop ends
                self._values, self._image = self._image, self._values
            else:
                self._mixer.mix(self._values, self._image, moved)
            if moved <= target or step == limit:
                return
            if step == self._patience and len(self._pairs) <= FACTOR_PAIRS:
                if solve_couplings(self._problem, self._couplings, self._values):
                    self._patience = FACTOR_AGAIN
                    return
                self._mixer.reset()

    def _scatter(self, matrix: FloatArray) -> None:
        sweeps.scatter(self._problem, self._values, matrix)

    def matrix(self, values: FloatArray) -> FloatArray:
        """Returns the distances as a matrix; all pairs must be listed."""
        matrix = self._matrices[0]
        sweeps.scatter(self._problem, values, matrix)
        return matrix


def _make_couplings(problem: Problem, widest: int) -> Couplings:
    # Integers as small as the problem allows: the couplings take most of the memory.
    count = len(problem.cost)
    offset = np.empty(count, np.int64 if count * (2 * widest - 1) >= 1 << 32 else np.uint32)
    total = kernels.count_cells(problem, offset)
    cells, shift = np.empty(total, np.uint8 if widest <= 16 else np.uint32), 4 if widest <= 16 else 16
    best = np.zeros(len(problem.first), np.uint8 if problem.n_actions <= 1 << 8 else np.int32)
    return Couplings(offset, cells, np.empty(total), shift, best, np.full(count, -1.0))
