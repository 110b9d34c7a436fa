"""Episodes as frozen, validated data."""

from pisces.trajectories.collection import collect
from pisces.trajectories.trajectory import Trajectory

__all__ = ["Trajectory", "collect"]
