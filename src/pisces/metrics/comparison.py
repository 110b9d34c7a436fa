"""Compares the behavior of two agents by their logged episodes."""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.errors import UserError
from pisces.metrics.estimates.bootstrap import check_resampling
from pisces.metrics.sequence import Last
from pisces.metrics.trajectory import TrajectoryCost, behavior_cost, check_trajectories, trajectory_metric
from pisces.trajectories import Trajectory
from pisces.validation import as_generator

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Key = Callable[[NDArray[Any]], Hashable]
"""Maps an observation to what tells states apart."""
LEAST_EPISODES = 3
"""Number of episodes of each agent that an interval needs."""


@dataclass(frozen=True, eq=False)
class StateMatches:
    """The states of one agent's episodes and what they correspond to in the other's; N states."""

    episode: IntArray
    """The episode of each state, [N]."""
    step: IntArray
    """Its step within the episode, [N]."""
    nearest_episode: IntArray
    """The other agent's episode with the state of most similar behavior, [N]."""
    nearest_step: IntArray
    """The step of that state, [N]."""
    distance: FloatArray
    """The distance to that state, [N]."""
    matched: NDArray[np.bool_]
    """Whether that distance is at most the threshold, [N]."""
    visited: NDArray[np.bool_]
    """Whether the other agent visits the same state, as told by the key of its observation, [N]."""

    def __len__(self) -> int:
        return len(self.distance)


@dataclass(frozen=True, eq=False)
class BehaviorComparison:
    """The result of `compare_behavior`."""

    difference: float
    """How much further episodes of different agents are from each other than episodes of one agent."""
    interval: tuple[float, float] | None
    """Bootstrap interval of `difference` over episodes; None with fewer than 3 episodes of an agent."""
    confidence: float
    """The approximate probability with which the interval covers the true difference."""
    between: FloatArray
    """Distance of every two episodes, one of each agent: the mean distance of a state to the nearest one, [n, m]."""
    within_a: FloatArray
    """The same between the first agent's episodes, [n, n]."""
    within_b: FloatArray
    """The same between the second agent's episodes, [m, m]."""
    states_a: StateMatches
    """The states of the first agent."""
    states_b: StateMatches
    """The states of the second agent."""
    threshold: float
    """The distance above which a state has no match."""

    def text(self) -> str:
        """The comparison in a few lines."""
        lines = [_verdict(self)]
        for name, other, states in (("A", "B", self.states_a), ("B", "A", self.states_b)):
            size = f"{states.episode.max() + 1} episodes, {len(states)} states"
            matched, alone = states.matched.mean(), 1 - states.visited.mean()
            lines.append(
                f"{name}: {size}; {matched:.0%} have a match in {other} within {self.threshold:g}, {alone:.0%} are "
                f"visited by {name} only."
            )
        return "\n".join(lines)


def compare_behavior(
    episodes_a: Sequence[Trajectory],
    episodes_b: Sequence[Trajectory],
    *,
    discount: float = 0.99,
    cost: TrajectoryCost = behavior_cost,
    last: Last | None = "stop",
    threshold: float = 0.5,
    key: Key | None = None,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int | np.random.Generator = 0,
) -> BehaviorComparison:
    """Compares two agents by their episodes: which states correspond, and by how much the agents differ.

    Two states are as far apart as `trajectory_metric` says; two episodes as far as their states from the nearest
    state of the other episode, on average over the states of both. The difference of the agents is

    mean between(a, b) - (mean within_a(a, a') + mean within_b(b, b')) / 2,     a != a', b != b',

    which is 0 on average if both agents behave alike, however much their episodes vary. A single episode counts as if
    the agent always repeated it. The interval resamples the episodes of both agents.

    Example:
        >>> import numpy as np
        >>> left = Trajectory(np.arange(3)[:, None], actions=np.array([0, 0, 0]))
        >>> right = Trajectory(np.arange(3)[:, None], actions=np.array([0, 0, 1]))
        >>> found = compare_behavior([left], [right], discount=0.5)
        >>> round(found.difference, 3), found.states_a.matched.tolist(), found.states_b.visited.tolist()
        (0.417, [True, True, True], [True, True, True])

    Args:
        episodes_a: episodes of the first agent, with discrete, continuous, stochastic or Gaussian policies.
        episodes_b: episodes of the second agent in the same action space.
        discount: of the metric.
        cost: the cost at one step; the default gives the PSM.
        last: what follows the last states of two episodes: nothing, so that their last actions count once, or one of
            the other choices of `trajectory_metric`.
        threshold: distance above which a state counts as unmatched.
        key: maps an observation to what tells states apart; None for the whole observation.
        confidence: of the interval, in (0, 1).
        resamples: number of bootstrap samples.
        seed: seed or generator.
    """
    counts = [check_trajectories(*one) for one in (("episodes_a", episodes_a), ("episodes_b", episodes_b))]
    if 0 in counts:
        raise UserError(f"expected episodes of both agents, got {counts[0]} and {counts[1]}")
    _check(threshold, key)
    check_resampling(confidence, resamples)

    def metric(x: Trajectory, y: Trajectory) -> FloatArray:
        return trajectory_metric(x, y, discount, cost, last)

    within_a, within_b = (_within(episodes, metric) for episodes in (episodes_a, episodes_b))
    between, near_a, near_b = _between(episodes_a, episodes_b, metric)
    kind = _coarsest([*episodes_a, *episodes_b])
    keys_a, keys_b = ([_keys(one, key, kind) for one in episodes] for episodes in (episodes_a, episodes_b))
    tables = (between, within_a, within_b)
    interval = None
    if min(counts) >= LEAST_EPISODES:
        drawn = [_difference(*tables, *weights) for weights in _resamples(counts, resamples, as_generator(seed))]
        low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
        interval = (float(low), float(high))
    return BehaviorComparison(
        _difference(*tables, *(np.ones(count) for count in counts)),
        interval,
        float(confidence),
        *tables,
        _matches(near_a, threshold, keys_a, keys_b),
        _matches(near_b, threshold, keys_b, keys_a),
        float(threshold),
    )


def _check(threshold: Any, key: Any) -> None:
    if not (isinstance(threshold, numbers.Real) and float(threshold) >= 0):
        raise UserError(f"threshold must be a distance >= 0, got {threshold!r}")
    if key is not None and not callable(key):
        raise UserError(f"key must be a function of one observation, got {key!r}")


@dataclass(frozen=True, eq=False)
class _Nearest:
    """The nearest state to each state of one episode, so far."""

    distance: FloatArray
    episode: IntArray
    step: IntArray

    @classmethod
    def start(cls, length: int) -> _Nearest:
        return cls(np.full(length, np.inf), np.zeros(length, np.int64), np.zeros(length, np.int64))

    def update(self, table: FloatArray, episode: int) -> FloatArray:
        """Takes in the distances [states, steps] to another episode; returns the smallest of each state."""
        step = table.argmin(axis=1)
        found = np.take_along_axis(table, step[:, None], axis=1)[:, 0]
        nearer = found < self.distance
        self.distance[nearer], self.episode[nearer], self.step[nearer] = found[nearer], episode, step[nearer]
        return found


def _between(
    episodes_a: Sequence[Trajectory], episodes_b: Sequence[Trajectory], metric: TrajectoryCost
) -> tuple[FloatArray, list[_Nearest], list[_Nearest]]:
    near_a, near_b = ([_Nearest.start(len(one)) for one in episodes] for episodes in (episodes_a, episodes_b))
    between = np.empty((len(episodes_a), len(episodes_b)))
    for i, x in enumerate(episodes_a):
        for j, y in enumerate(episodes_b):
            table = metric(x, y)
            between[i, j] = np.concatenate([near_a[i].update(table, j), near_b[j].update(table.T, i)]).mean()
    return between, near_a, near_b


def _within(episodes: Sequence[Trajectory], metric: TrajectoryCost) -> FloatArray:
    found = np.zeros((len(episodes), len(episodes)))
    for i, x in enumerate(episodes):
        for j, y in enumerate(episodes[:i]):
            table = metric(x, y)
            found[i, j] = found[j, i] = np.concatenate([table.min(axis=1), table.min(axis=0)]).mean()
    return found


def _difference(
    between: FloatArray, within_a: FloatArray, within_b: FloatArray, times_a: FloatArray, times_b: FloatArray
) -> float:
    """Returns the difference where episode i counts times_a[i] or times_b[i] times; no episode pairs with itself."""
    across = times_a @ between @ times_b / (times_a.sum() * times_b.sum())
    spreads = [_spread(within_a, times_a), _spread(within_b, times_b)]
    return float(across - sum(spreads) / 2)


def _spread(within: FloatArray, times: FloatArray) -> float:
    pairs = times.sum() ** 2 - (times**2).sum()
    return float(times @ within @ times / pairs) if pairs else 0.0


def _resamples(
    counts: Sequence[int], resamples: int, rng: np.random.Generator
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Draws how often each episode counts."""
    for _ in range(resamples):
        yield _drawn(counts[0], rng), _drawn(counts[1], rng)


def _drawn(count: int, rng: np.random.Generator) -> FloatArray:
    while True:
        times = rng.multinomial(count, np.full(count, 1 / count))
        if times.max() < count:  # one episode alone has no spread
            return times.astype(np.float64)


def _coarsest(episodes: Sequence[Trajectory]) -> np.dtype[Any]:
    """The least precise type of floats among the observations; double precision if there are none."""
    kinds = {np.asarray(episode.observations).dtype for episode in episodes}
    return min((kind for kind in kinds if kind.kind == "f"), key=lambda kind: kind.itemsize, default=np.dtype(float))


def _keys(episode: Trajectory, key: Key | None, kind: np.dtype[Any]) -> list[Hashable]:
    if key is None:
        return [_content(np.asarray(observation), kind) for observation in episode.observations]
    try:
        found = [key(observation) for observation in episode.observations]
        set(found)
    except TypeError as error:
        raise UserError(f"key must return something hashable, e.g. a tuple: {error}") from None
    return found


def _content(observation: NDArray[Any], kind: np.dtype[Any]) -> Hashable:
    """Shape and digest of an observation, whose numbers are rounded to a type of floats that holds them."""
    if observation.dtype.kind in "biuf":
        with np.errstate(over="ignore"):
            numbers = observation.astype(kind) + kind.type(0)  # no negative zeros
        if not np.isfinite(numbers).all():  # too large for the type
            numbers = observation.astype(np.float64)
        if observation.dtype.kind == "f" or np.abs(numbers).max(initial=0) < 2 ** np.finfo(kind).nmant:
            observation = numbers
    return observation.shape, hashlib.blake2b(observation.tobytes()).digest()


def _matches(
    near: list[_Nearest], threshold: float, keys: list[list[Hashable]], other_keys: list[list[Hashable]]
) -> StateMatches:
    known = {one for episode in other_keys for one in episode}
    lengths = [len(one.distance) for one in near]
    distance = np.concatenate([one.distance for one in near])
    return StateMatches(
        np.repeat(np.arange(len(near)), lengths),
        np.concatenate([np.arange(length) for length in lengths]),
        np.concatenate([one.episode for one in near]),
        np.concatenate([one.step for one in near]),
        distance,
        distance <= threshold,
        np.array([one in known for episode in keys for one in episode]),
    )


def _verdict(found: BehaviorComparison) -> str:
    if found.interval is None:
        return f"difference {found.difference:.3g}; an interval needs at least {LEAST_EPISODES} episodes of each agent"
    low, high = found.interval
    text = f"difference {found.difference:.3g}, {found.confidence:.0%} interval {low:.3g} to {high:.3g}"
    if low <= 0 <= high:
        return text + ": these episodes do not tell the agents apart"
    return text + ": the agents behave differently"
