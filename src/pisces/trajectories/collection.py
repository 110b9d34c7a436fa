"""Episodes from environments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from pisces.errors import UserError
from pisces.trajectories.trajectory import Trajectory


def collect(
    env: gym.Env[Any, Any], policy: Callable[[Any], Any], seed: int | None = None, max_steps: int = 10_000
) -> Trajectory:
    """Plays one episode.

    Args:
        env: any Gymnasium environment.
        policy: maps an observation to an action.
        seed: seeds the environment.
        max_steps: an episode that has not ended by then is an error, since its last state would not be known.

    Returns:
        The observations before each decision, the actions and the rewards.
    """
    observation, _ = env.reset(seed=seed)
    observations, actions, rewards = [], [], []
    for _ in range(max_steps):
        action = policy(observation)
        observations.append(np.asarray(observation))
        actions.append(action)
        observation, reward, terminated, truncated, _ = env.step(action)
        rewards.append(float(reward))
        if terminated or truncated:
            return Trajectory(np.stack(observations), np.asarray(actions), rewards=np.asarray(rewards))
    raise UserError(f"expected the episode to end within {max_steps} steps, got one that goes on; raise max_steps")
