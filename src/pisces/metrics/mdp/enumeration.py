"""Finite MDPs of Gymnasium environments by search: exactly for deterministic ones, by sampling for the others."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy.sparse

from pisces.errors import UserError
from pisces.metrics.mdp.estimation import EstimatedMDP, Samples
from pisces.metrics.mdp.finite_mdp import FiniteMDP

Key = Callable[[Any], Hashable]
"""Maps an observation to what tells states apart."""
Restore = Callable[[Any, Any], Any]
"""Puts an environment into the state that an observation was seen in."""
Outcome = tuple[Any, Any, float, bool]
"""What an action led to: the place (see `_Search`), the observation, the reward and whether the episode ended."""


@dataclass(frozen=True, eq=False, kw_only=True)
class EnumeratedMDP(FiniteMDP):
    """A finite MDP found by search; made by `FiniteMDP.enumerate`."""

    observations: tuple[Any, ...]
    """The observation in which each state was first seen; None in the terminal state, the last if there is one."""

    index: dict[Hashable, int]
    """The state of each key."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SampledMDP(EstimatedMDP):
    """A finite MDP found by search and estimated by sampling; made by `FiniteMDP.enumerate_random`."""

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
    if array.dtype.kind == "O":
        return str(observation)
    if array.dtype.kind == "f":
        array = array.astype(np.float64) + 0.0  # one precision, and no negative zeros
    return array.shape, array.dtype.str, array.tobytes()


def enumerate_states(
    environment: Any, key: Key | None, max_states: int, seed: int | None, restore: Restore | None
) -> EnumeratedMDP:
    """Searches all states that actions reach from the start; see `FiniteMDP.enumerate`."""
    search = _Search(environment, key, max_states, seed, restore)
    entries = [(following, reward) for _, _, reward, following in search.run(search.certain_outcome)]
    return _as_mdp(entries, search.actions, search.observations, search.index)


def sample_states(
    environment: Any, samples: int, key: Key | None, max_states: int, seed: int | None, restore: Restore | None
) -> SampledMDP:
    """Searches states and samples every action in each; see `FiniteMDP.enumerate_random`."""
    if isinstance(samples, bool) or not (isinstance(samples, numbers.Integral) and samples >= 1):
        raise UserError(f"samples must be an integer >= 1, got {samples!r}")
    search, rng = _Search(environment, key, max_states, seed, restore), np.random.default_rng(seed)
    found = list(search.run(lambda place, action: search.random_outcomes(place, action, int(samples), rng)))
    states, actions, rewards, following = (np.array(part) for part in zip(*found, strict=True))
    ended = following < 0
    seen = Samples(states, actions, rewards, np.where(ended, 0, following), ended, (len(search.index), search.actions))
    base = EstimatedMDP.from_counts(seen, 0.0, "error", None)
    # An ending transition into state 0, which has samples, has added a terminal state.
    observations = (*search.observations, *([None] if ended.any() else []))
    parts = {field.name: getattr(base, field.name) for field in fields(EstimatedMDP)}
    return SampledMDP(**parts, observations=observations, index=search.index)


class _Search:
    # Breadth-first search. A state's place is a copy of the environment in it, or, with `restore`, its observation.

    def __init__(
        self, environment: Any, key: Key | None, max_states: int, seed: int | None, restore: Restore | None
    ) -> None:
        self.actions = _check(environment, key, max_states, restore)
        self._environment, self._restore, self._max_states = environment, restore, max_states
        self._key = observation_key if key is None else key
        # Copied here and in `_step`, because an environment may reuse the array of its observation.
        observation = copy.deepcopy(environment.reset(seed=seed)[0])
        self.index: dict[Hashable, int] = {_hashable(self._key, observation): 0}
        self.observations = [observation]
        self._places = [environment if restore is None else observation]
        self._generators = [np.random.default_rng(stream) for stream in (1, 2)]

    def run(self, outcomes: Callable[[Any, int], Iterator[Outcome]]) -> Iterator[tuple[int, int, float, int]]:
        """Yields (state, action, reward, next state), the last -1 where the episode ends."""
        for state, here in enumerate(self._places):
            for action in range(self.actions):
                for place, observation, reward, ended in outcomes(here, action):
                    yield state, action, reward, -1 if ended else self._number(place, observation)
            self._places[state] = None  # copies of environments may be large

    def certain_outcome(self, place: Any, action: int) -> Iterator[Outcome]:
        """Takes an action; raises if it has another outcome with other random numbers."""
        (there, outcome), (_, other) = (self._step(place, action, rng) for rng in self._generators)
        if observation_key(outcome[0]) != observation_key(other[0]) or outcome[1:3] != other[1:3]:
            raise UserError(
                f"environment must be deterministic, but action {action} had two outcomes; use enumerate_random or "
                "from_samples"
            )
        yield there, outcome[0], float(outcome[1]), bool(outcome[2])

    def random_outcomes(self, place: Any, action: int, samples: int, rng: np.random.Generator) -> Iterator[Outcome]:
        """Takes an action several times, each with new random numbers."""
        for _ in range(samples):
            there, outcome = self._step(place, action, rng)
            yield there, outcome[0], float(outcome[1]), bool(outcome[2])

    def _step(self, place: Any, action: int, rng: np.random.Generator) -> tuple[Any, tuple[Any, ...]]:
        if self._restore is None:
            there = _copied(place)
        else:
            there = self._environment
            self._restore(there, place)
        there.unwrapped.np_random = rng
        observation, *others = there.step(action)
        outcome = (copy.deepcopy(observation), *others)
        return (there if self._restore is None else outcome[0]), outcome

    def _number(self, place: Any, observation: Any) -> int:
        found = _hashable(self._key, observation)
        if found not in self.index:
            if len(self.index) == self._max_states:
                raise UserError(
                    f"more than {self._max_states} states; raise max_states, or pass a key that merges states"
                )
            self.index[found] = len(self.index)
            self._places.append(place)
            self.observations.append(observation)
        return self.index[found]


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


def _check(environment: Any, key: Any, max_states: int, restore: Any) -> int:
    space = getattr(environment, "action_space", None)
    if not (hasattr(environment, "step") and hasattr(environment, "reset") and space is not None):
        raise UserError(f"environment must be a Gymnasium environment, got {type(environment).__name__}")
    if not isinstance(getattr(space, "n", None), numbers.Integral):
        raise UserError(f"environment must have a Discrete action space, got {space}")
    if getattr(space, "start", 0) != 0:
        raise UserError(f"actions must be numbered from 0, got a space that starts at {space.start}")
    if key is not None and not callable(key):
        raise UserError(f"key must be a function of an observation, got {key!r}")
    if restore is not None and not callable(restore):
        raise UserError(f"restore must be a function of (environment, observation), got {restore!r}")
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


def _copied(environment: Any) -> Any:
    try:
        return copy.deepcopy(environment)
    except (TypeError, copy.Error, RecursionError, NotImplementedError) as error:
        raise UserError(
            f"environment cannot be copied ({error}); pass restore, a function that puts it into a state"
        ) from None
