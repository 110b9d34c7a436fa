"""Finite MDPs of deterministic Gymnasium environments, by search."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from pisces.errors import UserError
from pisces.metrics.mdp.finite_mdp import FiniteMDP

Key = Callable[[Any], Hashable]
"""Maps an observation to what tells states apart."""


@dataclass(frozen=True, eq=False, kw_only=True)
class EnumeratedMDP(FiniteMDP):
    """A finite MDP found by search; made by `FiniteMDP.enumerate`."""

    observations: tuple[Any, ...]
    """The observation in which each state was first seen; None in the terminal state, the last if there is one."""

    index: dict[Hashable, int]
    """The state of each key."""


def observation_key(observation: Any) -> Hashable:
    """Returns an observation's value as something to look up; dictionaries and tuples of arrays included."""
    if isinstance(observation, dict):
        return tuple((name, observation_key(value)) for name, value in sorted(observation.items()))
    if isinstance(observation, tuple | list):
        return tuple(observation_key(value) for value in observation)
    array = np.asarray(observation)
    return (array.shape, array.dtype.str, array.tobytes()) if array.dtype.kind != "O" else str(observation)


def enumerate_states(environment: Any, key: Key | None, max_states: int, seed: int | None) -> EnumeratedMDP:
    """Searches all states that actions reach from the start; see `FiniteMDP.enumerate`."""
    actions = _check(environment, key, max_states)
    key = observation_key if key is None else key
    observation, _ = environment.reset(seed=seed)
    index, queue = {_hashable(key, observation): 0}, [environment]
    observations, entries = [observation], []
    for state, here in enumerate(queue):
        for action in range(actions):
            there, (observation, reward, terminated, _, _) = _step(here, action)
            found = None if terminated else _hashable(key, observation)
            if found is not None and found not in index:
                if len(index) == max_states:
                    raise UserError(
                        f"more than {max_states} states; raise max_states, or pass a key that merges states"
                    )
                index[found] = len(index)
                queue.append(there)
                observations.append(observation)
            entries.append((-1 if found is None else index[found], float(reward)))
        queue[state] = None  # copies of environments may be large
    return _as_mdp(entries, actions, observations, index)


def _as_mdp(
    entries: list[tuple[int, float]], actions: int, observations: list[Any], index: dict[Hashable, int]
) -> EnumeratedMDP:
    following = np.array([state for state, _ in entries])
    rewards = np.array([reward for _, reward in entries]).reshape(-1, actions)
    if (following < 0).any():
        terminal = len(rewards)
        following = np.append(np.where(following < 0, terminal, following), [terminal] * actions)
        rewards, observations = np.vstack([rewards, np.zeros(actions)]), [*observations, None]
    rows = (np.ones(len(following)), (np.arange(len(following)), following))
    transitions = scipy.sparse.coo_array(rows, shape=(len(following), len(rewards)))
    return EnumeratedMDP(transitions, rewards, observations=tuple(observations), index=index)


def _check(environment: Any, key: Any, max_states: int) -> int:
    space = getattr(environment, "action_space", None)
    if not (hasattr(environment, "step") and hasattr(environment, "reset") and space is not None):
        raise UserError(f"environment must be a Gymnasium environment, got {type(environment).__name__}")
    if not isinstance(getattr(space, "n", None), numbers.Integral):
        raise UserError(f"environment must have a Discrete action space, got {space}")
    if getattr(space, "start", 0) != 0:
        raise UserError(f"actions must be numbered from 0, got a space that starts at {space.start}")
    if key is not None and not callable(key):
        raise UserError(f"key must be a function of an observation, got {key!r}")
    if not (isinstance(max_states, numbers.Integral) and max_states >= 1):
        raise UserError(f"max_states must be an integer >= 1, got {max_states!r}")
    return int(space.n)


def _hashable(key: Key, observation: Any) -> Hashable:
    found = key(observation)
    try:
        hash(found)
    except TypeError:
        raise UserError(f"key must return something hashable, e.g. a tuple, got {type(found).__name__}") from None
    return found


def _step(environment: Any, action: int) -> tuple[Any, tuple[Any, ...]]:
    """Takes an action in a copy; raises if another copy with other random numbers does something else."""
    try:
        there, again = copy.deepcopy(environment), copy.deepcopy(environment)
    except (TypeError, copy.Error, RecursionError) as error:
        raise UserError(f"environment must be copyable with copy.deepcopy, got: {error}") from None
    again.unwrapped.np_random = np.random.default_rng(12345)
    outcome, other = there.step(action), again.step(action)
    same = observation_key(outcome[0]) == observation_key(other[0]) and outcome[1:3] == other[1:3]
    if not same:
        raise UserError(
            f"environment must be deterministic, but action {action} had two outcomes; estimate it with from_samples"
        )
    return there, outcome
