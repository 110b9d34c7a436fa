"""Episodes from environments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from pisces.errors import UserError
from pisces.trajectories.trajectory import Trajectory

BatchPolicy = Callable[[NDArray[Any]], NDArray[Any]]
"""Maps observations [n, ...] to actions [n, ...]."""


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
        # Copies, before others see them: environments and policies may change an array, or use it again.
        observations.append(np.array(observation))
        action = policy(observation)
        actions.append(np.array(action))
        observation, reward, terminated, truncated, _ = env.step(action)
        rewards.append(float(reward))
        if terminated or truncated:
            return Trajectory(np.stack(observations), np.asarray(actions), rewards=np.asarray(rewards))
    raise UserError(f"expected the episode to end within {max_steps} steps, got one that goes on; raise max_steps")


def play_episodes(
    environments: Sequence[gym.Env[Any, Any]], policy: BatchPolicy, max_steps: int = 500, seed: int | None = None
) -> list[Trajectory]:
    """Plays one episode in each environment, all at once, so that the policy is asked once per step.

    Args:
        environments: Gymnasium environments with one observation and one action space.
        policy: maps observations [n, ...] to actions [n, ...].
        max_steps: longer episodes are cut off.
        seed: seeds each environment's reset.
    """
    check_separate(environments)
    if not environments or max_steps < 1:
        raise UserError(f"expected environments and at least one step, got {len(environments)} and {max_steps}")
    observations = [np.array(env.reset(seed=seed)[0]) for env in environments]
    records = [_Record() for _ in environments]
    running = list(range(len(environments)))
    for _ in range(max_steps):
        actions = policy(np.stack([observations[index] for index in running]))
        going_on = []
        for index, action in zip(running, actions, strict=True):
            records[index].decide(observations[index], action)
            observation, reward, terminated, truncated, _ = environments[index].step(action)
            records[index].rewards.append(float(reward))
            observations[index] = np.array(observation)
            if not (terminated or truncated):
                going_on.append(index)
        running = going_on
        if not running:
            break
    return [record.trajectory() for record in records]


def check_separate(environments: Sequence[gym.Env[Any, Any]]) -> None:
    """Raises if an environment is there twice: its episodes would be played into each other."""
    if len({id(env) for env in environments}) < len(environments):
        raise UserError("expected an environment of its own for each episode, got the same one twice")


def collect_vector(
    env: gym.vector.VectorEnv[Any, Any, Any], policy: BatchPolicy, seed: int | None = None, max_steps: int = 10_000
) -> list[Trajectory]:
    """Plays one episode in each part of a Gymnasium vector environment; parts that have ended are ignored from there.

    Args:
        env: a vector environment, e.g. `gymnasium.make_vec(...)`.
        policy: maps observations [n, ...] to actions [n, ...]; it is asked for ended parts too.
        seed: seeds the environment.
        max_steps: if an episode has not ended by then, that is an error, as in `collect`.

    Returns:
        One trajectory per part; images stay in the type that the environment gives, e.g. uint8.
    """
    observations, _ = env.reset(seed=seed)
    if not isinstance(observations, np.ndarray):
        raise UserError(f"expected observations as one array, got {type(observations).__name__}")
    records, running = [_Record() for _ in range(env.num_envs)], np.ones(env.num_envs, dtype=bool)
    for _ in range(max_steps):
        seen = observations.copy()  # a vector environment may write the next observations into the same array
        actions = np.asarray(policy(observations))
        for index in np.flatnonzero(running):
            records[index].decide(seen[index], actions[index])
        observations, rewards, terminated, truncated, _ = env.step(actions)
        for index in np.flatnonzero(running):
            records[index].rewards.append(float(rewards[index]))
        ended = np.asarray(terminated) | np.asarray(truncated)
        running &= ~ended
        if not running.any():
            return [record.trajectory() for record in records]
        if ended.any() and env.metadata.get("autoreset_mode") == gym.vector.AutoresetMode.DISABLED:
            observations, _ = env.reset(options={"reset_mask": ended})
    raise UserError(f"expected all episodes to end within {max_steps} steps, got some that go on; raise max_steps")


class _Record:
    """An episode under way."""

    def __init__(self) -> None:
        self.observations: list[Any] = []
        self.actions: list[Any] = []
        self.rewards: list[float] = []

    def decide(self, observation: Any, action: Any) -> None:
        """Adds a decision; its reward is to follow."""
        self.observations.append(observation)
        self.actions.append(np.array(action))  # a policy may use its array again, an environment may change it

    def trajectory(self) -> Trajectory:
        return Trajectory(np.stack(self.observations), np.stack(self.actions), rewards=np.asarray(self.rewards))
