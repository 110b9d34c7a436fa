"""Which pairs of environments to sample: any two, given ones, or those in which states have matches."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pisces.errors import UserError
from pisces.trajectories import Trajectory
from pisces.validation import as_integers, check_match_within

EnvironmentMetric = Callable[[int, int], NDArray[np.float64]]
"""Returns the distances between the states of two environments, given by their numbers."""


def matched_share(metric: NDArray[np.float64], match_within: float) -> float:
    """Share of the states of both sides of a metric [n, m] whose nearest state is at most `match_within` away."""
    nearest = np.concatenate([metric.min(axis=1), metric.min(axis=0)])
    return float((nearest <= match_within).mean())


def best_shares(pairs: Sequence[tuple[int, int]], shares: Sequence[float]) -> NDArray[np.float64]:
    """Sets shares to 0 that are less than half of the largest one of either environment of their pair."""
    found, ends = np.array(shares, dtype=np.float64), np.array(pairs)
    best = np.zeros(ends.max() + 1)
    for side in (0, 1):
        np.maximum.at(best, ends[:, side], found)
    return np.where(found >= 0.5 * best[ends].min(axis=1), found, 0.0)


def check_pairs(pairs: Sequence[tuple[int, int]], environments: int) -> list[tuple[int, int]]:
    """Raises unless all are pairs of two different environments."""
    numbers = as_integers("pairs", list(pairs), "[n, 2]")
    if numbers.size and numbers.shape[1:] != (2,):
        raise UserError(f"pairs must be a list of pairs of environments, e.g. [(0, 1)], got {list(pairs)[:2]}")
    checked = [(int(x), int(y)) for x, y in numbers]
    wrong = [pair for pair in checked if pair[0] == pair[1] or not all(0 <= env < environments for env in pair)]
    if wrong or not checked:
        raise UserError(f"pairs must be of two different environments in 0..{environments - 1}, got {wrong[:1]}")
    return checked


@dataclass
class PairChoice:
    """Samples two environments.

    With `match_within`, a pair is sampled in proportion to the share of its states that have a match: pairs without
    any teach a contrastive loss only to push states apart. Pairs with less than half the share of the best pair of
    either environment are left out: many pairs with few matches would outnumber the few with many.
    """

    environments: int
    """The number of environments."""
    pairs: list[tuple[int, int]] | None
    """The pairs to choose from; None for any two different environments."""
    match_within: float | None
    """Largest distance of a match; None for equal probabilities."""
    shares: NDArray[np.float64] | None = None
    """The share of matched states in each of `pairs`, 0 for pairs left out; computed when the first is sampled."""

    def __post_init__(self) -> None:
        check_match_within(self.match_within)

    def sample(self, rng: np.random.Generator, metric: EnvironmentMetric) -> tuple[int, int]:
        """Samples two environments, given the function that returns the distances between their states."""
        if self.match_within is not None and self.shares is None:
            self._find_shares(self.match_within, metric)
        if self.pairs is None:
            x, y = rng.choice(self.environments, size=2, replace=False).tolist()
            return x, y
        if self.shares is None or not self.shares.any():
            return self.pairs[int(rng.integers(len(self.pairs)))]
        x, y = self.pairs[int(rng.choice(len(self.pairs), p=self.shares / self.shares.sum()))]
        return (x, y) if rng.integers(2) else (y, x)

    def _find_shares(self, match_within: float, metric: EnvironmentMetric) -> None:
        if self.pairs is None:
            self.pairs = list(itertools.combinations(range(self.environments), 2))
        self.shares = best_shares(self.pairs, [matched_share(metric(x, y), match_within) for x, y in self.pairs])
        if not self.shares.any():
            warnings.warn(
                f"no state of any pair has a match within {match_within:g}, so that the loss leaves out all states; "
                "lower the metric's discount or raise match_within",
                stacklevel=4,
            )


def warn_of_identical(groups: Sequence[Sequence[Trajectory]]) -> None:
    """Warns if two environments have a trajectory in common, which teaches nothing about their difference."""
    known: dict[tuple[int, bytes], list[tuple[int, Trajectory]]] = {}
    for number, group in enumerate(groups):
        for trajectory in group:
            same = known.setdefault((len(trajectory), trajectory.observations[0].tobytes()), [])
            for other, earlier in same:
                if other != number and _identical(earlier, trajectory):
                    warnings.warn(
                        f"environments {other} and {number} have an identical trajectory; are they the same level? "
                        "Levels given by the seed of `reset` need a seed per environment",
                        stacklevel=3,
                    )
                    return
            same.append((number, trajectory))


def _identical(one: Trajectory, other: Trajectory) -> bool:
    arrays, others = one.arrays(), other.arrays()
    return arrays.keys() == others.keys() and all(np.array_equal(arrays[name], others[name]) for name in arrays)
