import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pisces.pairs import TrajectoryPairs
from pisces.pairs.matching import best_shares
from pisces.trajectories import Trajectory


@settings(max_examples=30, deadline=None)
@given(count=st.integers(2, 6), seed=st.integers(0, 999))
def test_pairs_worse_than_the_best_of_both_environments_are_left_out(count, seed):
    pairs = list(itertools.combinations(range(count), 2))
    shares = np.random.default_rng(seed).integers(0, 5, len(pairs)) / 4
    kept = best_shares(pairs, shares.tolist())
    best = [max(share for pair, share in zip(pairs, shares, strict=True) if env in pair) for env in range(count)]
    for (x, y), share, value in zip(pairs, shares, kept, strict=True):
        assert value == (share if share >= 0.5 * best[x] or share >= 0.5 * best[y] else 0)
    for env in range(count):  # an environment keeps its best pair
        assert max(value for pair, value in zip(pairs, kept, strict=True) if env in pair) == best[env]


def test_full_matches_are_not_outnumbered_by_partial_ones():
    """Three levels in two appearances each; different levels share only their last action."""
    levels = [[0, 0, 0, 2], [1, 1, 1, 2], [3, 3, 3, 2]]
    tasks = [
        Trajectory(np.full((4, 1), 10 * level + look), np.array(levels[level])) for level in range(3) for look in (0, 1)
    ]
    pairs = TrajectoryPairs(tasks, discount=0.9, match_within=0.01)
    for _ in range(30):
        pair = pairs.sample()
        assert abs(int(pair.observations_x[0, 0]) - int(pair.observations_y[0, 0])) == 1
