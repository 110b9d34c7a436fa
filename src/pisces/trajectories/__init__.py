"""Episodes as frozen, validated data."""

from pisces.trajectories.collection import BatchPolicy, collect, collect_each, collect_vector, play_episodes
from pisces.trajectories.trajectory import Trajectory

__all__ = ["BatchPolicy", "Trajectory", "collect", "collect_each", "collect_vector", "play_episodes"]
