"""Samplers of trajectory pairs with the metric between their states."""

from pisces.errors import import_extra

import_extra("torch", "torch")

from pisces.pairs.greedy import GreedyPairs  # noqa: E402
from pisces.pairs.state_pairs import StatePairs  # noqa: E402
from pisces.pairs.trajectory_pairs import Pair, TrajectoryPairs  # noqa: E402

__all__ = ["GreedyPairs", "Pair", "StatePairs", "TrajectoryPairs"]
