"""Collection of episodes from Gymnasium environments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from pisces.errors import UserError
from pisces.trajectories.trajectory import Trajectory

Policy = Callable[[Any], Any]
"""Maps an observation to an action."""
Seeds = int | Sequence[int] | None
"""A seed for many environments, or one for each."""
BatchPolicy = Callable[[NDArray[Any]], NDArray[Any]]
"""Maps observations [n, ...] to actions [n, ...]."""


def collect(env: gym.Env[Any, Any], policy: Policy, seed: int | None = None, max_steps: int = 10_000) -> Trajectory:
    """Plays one episode.

    Args:
        env: any Gymnasium environment.
        policy: maps an observation to an action.
        seed: seeds the environment's reset.
        max_steps: the episode is truncated after this many steps.

    Returns:
        The observations before each decision, the actions, the rewards, whether the environment terminated the
        episode, and the observation after the last decision.
    """
    _check_steps(max_steps)
    observation, _ = env.reset(seed=seed)
    record = _Record()
    for _ in range(max_steps):
        seen = np.array(observation)
        record.decide(seen, action := policy(observation))
        observation, reward, terminated, truncated, _ = env.step(action)
        record.observe(reward, terminated, observation)
        if terminated or truncated:
            break
    return record.trajectory()


def collect_each(
    environments: Sequence[gym.Env[Any, Any]],
    policy: Policy | Sequence[Policy],
    seed: Seeds = 0,
    max_steps: int = 10_000,
) -> list[Trajectory]:
    """Plays one episode in each environment, one after the other.

    Args:
        environments: Gymnasium environments.
        policy: maps an observation to an action; one for all environments, or one per environment.
        seed: seeds the resets: environment k with seed + k, so that environments that differ by seed alone differ here
            too; or one seed per environment.
        max_steps: episodes are truncated after this many steps.
    """
    policies = [policy] * len(environments) if callable(policy) else list(policy)
    if len(policies) != len(environments):
        raise UserError(f"expected one policy, or one for each of {len(environments)}, got {len(policies)}")
    seeds = reset_seeds(seed, len(environments))
    return [
        collect(env, chosen, start, max_steps) for env, chosen, start in zip(environments, policies, seeds, strict=True)
    ]


def play_episodes(
    environments: Sequence[gym.Env[Any, Any]], policy: BatchPolicy, max_steps: int = 500, seed: Seeds = None
) -> list[Trajectory]:
    """Plays one episode in each environment, all at once, so that the policy is called once per step.

    Args:
        environments: Gymnasium environments with one observation and one action space.
        policy: maps observations [n, ...] to actions [n, ...].
        max_steps: episodes are truncated after this many steps, as in `collect`.
        seed: seeds the resets, as in `collect_each`.
    """
    check_separate(environments)
    _check_steps(max_steps)
    if not environments:
        raise UserError("expected at least one environment, got none")
    seeds = reset_seeds(seed, len(environments))
    observations = [np.array(env.reset(seed=own)[0]) for env, own in zip(environments, seeds, strict=True)]
    records = [_Record() for _ in environments]
    running = list(range(len(environments)))
    for _ in range(max_steps):
        actions = policy(np.stack([observations[index] for index in running]))
        still_running = []
        for index, action in zip(running, actions, strict=True):
            records[index].decide(observations[index], action)
            observation, reward, terminated, truncated, _ = environments[index].step(action)
            observations[index] = np.array(observation)
            records[index].observe(reward, terminated, observation)
            if not (terminated or truncated):
                still_running.append(index)
        running = still_running
        if not running:
            break
    return [record.trajectory() for record in records]


def reset_seeds(seed: Seeds, count: int) -> Sequence[int | None]:
    """Returns the seed of each environment's reset."""
    if seed is None or isinstance(seed, int | np.integer):
        return [None if seed is None else int(seed) + number for number in range(count)]
    if len(seed) != count:
        raise UserError(f"expected one seed, or one for each of {count} environments, got {len(seed)}")
    return [int(own) for own in seed]


def check_separate(environments: Sequence[gym.Env[Any, Any]]) -> None:
    """Raises if an environment occurs twice: its episodes would be played into each other."""
    if len({id(env) for env in environments}) < len(environments):
        raise UserError("expected an environment of its own for each episode, got the same one twice")


def collect_vector(
    env: gym.vector.VectorEnv[Any, Any, Any], policy: BatchPolicy, seed: int | None = None, max_steps: int = 10_000
) -> list[Trajectory]:
    """Plays one episode in each sub-environment of a Gymnasium vector environment.

    Args:
        env: a vector environment, e.g. `gymnasium.make_vec(...)`.
        policy: maps observations [n, ...] to actions [n, ...]; it is also called for sub-environments that are done.
        seed: seeds the environment's reset.
        max_steps: episodes are truncated after this many steps, as in `collect`.

    Returns:
        One trajectory per sub-environment; images keep the environment's type, e.g. uint8.
    """
    _check_steps(max_steps)
    observations, _ = env.reset(seed=seed)
    if not isinstance(observations, np.ndarray):
        raise UserError(f"expected observations as one array, got {type(observations).__name__}")
    records, running = [_Record() for _ in range(env.num_envs)], np.ones(env.num_envs, dtype=bool)
    for _ in range(max_steps):
        seen = observations.copy()  # a vector environment may write the next observations into the same array
        actions = np.asarray(policy(observations))
        for index in np.flatnonzero(running):
            records[index].decide(seen[index], actions[index])
        observations, rewards, terminated, truncated, info = env.step(actions)
        for index in np.flatnonzero(running):
            final = _final_observation(info, int(index), observations)
            records[index].observe(rewards[index], terminated[index], final)
        ended = np.asarray(terminated) | np.asarray(truncated)
        running &= ~ended
        if not running.any():
            break
        if ended.any() and env.metadata.get("autoreset_mode") == gym.vector.AutoresetMode.DISABLED:
            observations, _ = env.reset(options={"reset_mask": ended})
    return [record.trajectory() for record in records]


def _final_observation(info: dict[str, Any], index: int, observations: NDArray[Any]) -> Any:
    """The observation after a step; an environment that was reset within the step returns it in `info`."""
    reset = "final_obs" in info and info["_final_obs"][index]
    return info["final_obs"][index] if reset else observations[index]


def _check_steps(max_steps: int) -> None:
    if max_steps < 1:
        raise UserError(f"max_steps must be at least 1, got {max_steps}")


class _Record:
    """The part of an episode that has been played."""

    def __init__(self) -> None:
        self._observations: list[Any] = []
        self._actions: list[Any] = []
        self._rewards: list[float] = []
        self._terminated = False
        self._newest: Any = None

    def decide(self, observation: Any, action: Any) -> None:
        """Adds a decision; its outcome is given to `observe`."""
        self._observations.append(observation)
        self._actions.append(np.array(action))  # policies may reuse the array, environments may change it

    def observe(self, reward: Any, terminated: Any, observation: Any) -> None:
        """Adds what followed the newest decision."""
        self._rewards.append(float(reward))
        self._terminated, self._newest = bool(terminated), np.array(observation)

    def trajectory(self) -> Trajectory:
        return Trajectory(
            np.stack(self._observations),
            np.stack(self._actions),
            rewards=np.asarray(self._rewards),
            terminated=self._terminated,
            final_observation=self._newest,
        )
