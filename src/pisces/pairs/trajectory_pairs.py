"""Pairs of trajectories from different environments, with the metric between their states."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pisces.errors import UserError, unknown_name
from pisces.metrics.sequence import Last
from pisces.metrics.trajectory import TrajectoryCost, behavior_cost, trajectory_metric
from pisces.pairs.matching import PairChoice, check_pairs, warn_of_identical
from pisces.pairs.metric_store import MetricStore
from pisces.trajectories import Trajectory
from pisces.trajectories.trajectory import STEP_FIELDS
from pisces.validation import as_generator, check_count, check_discount

MEMORY_LIMIT = 256 * 2**20
"""Metrics that need more bytes than this are kept in a file."""
Place = tuple[int, int]
"""A trajectory: the number of its environment, and its number within the environment."""


@dataclass(frozen=True, eq=False)
class Pair:
    """States of two trajectories and the distances between them: the input of a loss."""

    observations_x: Tensor
    """Observations of the first trajectory, [n, ...], in the type in which they were recorded."""
    observations_y: Tensor
    """Observations of the second trajectory, [m, ...]."""
    metric: Tensor
    """Distances between their states, [n, m], finite and non-negative."""


class TrajectoryPairs:
    """Samples two trajectories of different environments together with the metric between their states.

    The metric of a pair is computed when the pair is first sampled and then kept, in memory or, if all metrics together
    are large, in a file that is deleted with the sampler.

    Example:
        >>> import numpy as np
        >>> x = Trajectory(np.zeros((3, 2)), actions=np.array([0, 1, 0]))
        >>> y = Trajectory(np.ones((2, 2)), actions=np.array([1, 0]))
        >>> pair = TrajectoryPairs([x, y], discount=0.5).sample()
        >>> sorted(pair.metric.shape)
        [2, 3]

    Args:
        environments: for each environment its trajectory, or several of them.
        discount: of the metric, in [0, 1).
        cost: the cost at one step, a symmetric function of two trajectories; by default the metric is PSM.
        last: what follows the last states of both trajectories, "self-loop" or "stop"; None decides by whether they
            terminated, see `pisces.metrics.trajectory_metric`.
        states: at most this many states of each trajectory are sampled; None for all.
        candidates: at most this many states of the second trajectory are sampled instead: the nearest one of each
            sampled state of the first, which are always kept, and random others.
        pairs: the pairs of environments to sample from, with equal probability; None for any two different ones.
        match_within: pairs of environments are sampled in proportion to the share of the states of their first
            trajectories whose nearest state is at most this far away, and only the best pairs of each environment;
            None for equal probabilities.
        observe: maps the recorded observations [n, ...] of sampled states to the tensor that a pair holds, e.g. from
            frame numbers to frames on disk; by default the observations themselves.
        seed: a seed, or a generator to sample with.
        memory_limit: bytes of metrics above which they are kept in a file.
        folder: the folder of that file; None for the system's temporary folder.
    """

    def __init__(
        self,
        environments: Sequence[Trajectory | Sequence[Trajectory]],
        *,
        discount: float = 0.9,
        cost: TrajectoryCost = behavior_cost,
        last: Last | None = None,
        states: int | None = None,
        candidates: int | None = None,
        pairs: Sequence[tuple[int, int]] | None = None,
        match_within: float | None = None,
        observe: Callable[[NDArray[Any]], Tensor] = torch.from_numpy,
        seed: int | np.random.Generator = 0,
        memory_limit: int = MEMORY_LIMIT,
        folder: str | Path | None = None,
    ) -> None:
        check_discount(discount)
        if last is not None and last not in get_args(Last):
            raise unknown_name("last", last, get_args(Last))
        for name, count in (("states", states), ("candidates", candidates)):
            check_count(name, count)
        self.generator = as_generator(seed)
        self.groups = _check_groups(environments, cost)
        warn_of_identical(self.groups)
        chosen = None if pairs is None else check_pairs(pairs, len(self.groups))
        self.choice = PairChoice(len(self.groups), chosen, match_within)
        self._arguments: dict[str, Any] = {"discount": discount, "cost": cost, "last": last}
        self._states, self._candidates, self._observe = states, candidates, observe
        self._starts, size = _starts(self.groups, chosen)
        self._store = MetricStore(size, memory_limit, folder)
        self._known: set[tuple[Place, Place]] = set()

    @property
    def in_file(self) -> bool:
        """Whether the metrics are kept in a file."""
        return self._store.in_file

    def __getstate__(self) -> dict[str, Any]:
        # A copy has its own store, and so its own list of what the store holds.
        return {
            **self.__dict__,
            "_store": copy.copy(self._store),
            "_known": set(self._known),
            "choice": copy.copy(self.choice),
        }

    def sample(self, generator: np.random.Generator | None = None) -> Pair:
        """Samples two environments, a trajectory of each, and the metric between their states.

        Args:
            generator: to sample with; None for the sampler's own.
        """
        rng = self.generator if generator is None else generator
        chosen = self.choice.sample(rng, self._first_metric)
        places = [(env, int(rng.integers(len(self.groups[env])))) for env in chosen]
        x, y = (self.groups[env][number] for env, number in places)
        rows = self._sample_states(len(x), rng)
        metric = self.metric(*places)[rows]
        if self._candidates is None:
            columns = self._sample_states(len(y), rng)
        else:
            columns = _nearest_and_others(metric, self._candidates, rng)
        return Pair(
            self._observe(x.observations[rows]),
            self._observe(y.observations[columns]),
            torch.from_numpy(np.ascontiguousarray(metric[:, columns])),
        )

    def metric(self, x: Place, y: Place) -> NDArray[np.float64]:
        """Returns the distances between the states of two trajectories (environment, number), [n, m], read-only."""
        x, y = (self._check_place(place) for place in (x, y))
        if x[0] == y[0]:
            raise UserError(f"expected trajectories of two environments, got two of environment {x[0]}")
        if x[0] > y[0]:
            return self.metric(y, x).T
        if (x, y) not in self._starts:
            raise UserError(f"environments {x[0]} and {y[0]} are not one of the given pairs")
        trajectory_x, trajectory_y = self.groups[x[0]][x[1]], self.groups[y[0]][y[1]]
        start, shape = self._starts[x, y], (len(trajectory_x), len(trajectory_y))
        if (x, y) not in self._known:
            found = trajectory_metric(trajectory_x, trajectory_y, **self._arguments)
            check_metric_values(found, shape)
            if not self._store.write(start, found):
                return found
            self._known.add((x, y))
        return self._store.read(start, shape)

    def _first_metric(self, x: int, y: int) -> NDArray[np.float64]:
        return self.metric((x, 0), (y, 0))

    def _check_place(self, place: Place) -> Place:
        env, number = (int(part) for part in place)
        if not (0 <= env < len(self.groups) and 0 <= number < len(self.groups[env])):
            raise UserError(f"expected (environment, number) of a trajectory, got {tuple(place)}")
        return env, number

    def _sample_states(self, length: int, rng: np.random.Generator) -> NDArray[np.int64]:
        if self._states is None or length <= self._states:
            return np.arange(length)
        return np.sort(rng.choice(length, size=self._states, replace=False))


def _nearest_and_others(metric: NDArray[np.float64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The nearest column of each row of a metric, and random others up to a number of them, sorted."""
    if count >= metric.shape[1]:
        return np.arange(metric.shape[1])
    nearest = np.unique(metric.argmin(axis=1))
    others = np.setdiff1d(rng.permutation(metric.shape[1]), nearest, assume_unique=True)
    return np.sort(np.concatenate([nearest, others[: max(count - len(nearest), 0)]]))


def check_metric_values(metric: NDArray[np.float64], shape: tuple[int, int]) -> None:
    """Raises unless distances have the right shape and values; losses rely on it and do not check values again."""
    if metric.shape != shape:
        raise UserError(f"the cost or metric of {shape[0]} and {shape[1]} states has shape {metric.shape}")
    wrong = metric[~(np.isfinite(metric) & (metric >= 0))]
    if len(wrong):
        raise UserError(f"distances must be non-negative and finite, got {wrong[0]}; check the cost or metric function")


def _check_groups(
    environments: Sequence[Trajectory | Sequence[Trajectory]], cost: TrajectoryCost
) -> list[list[Trajectory]]:
    groups = [[group] if isinstance(group, Trajectory) else list(group) for group in environments]
    if len(groups) < 2:
        raise UserError(f"expected trajectories of at least two environments, got {len(groups)}")
    empty = [index for index, group in enumerate(groups) if not group]
    if empty:
        raise UserError(f"expected at least one trajectory per environment, got none of environment {empty[0]}")
    trajectories = list(itertools.chain.from_iterable(groups))
    kinds: dict[tuple[Any, ...], Trajectory] = {}
    for one in trajectories:
        _check_observations(one, trajectories[0])
        kinds.setdefault(_kind(one), _first_step(one))
    # One pair of states shows whether the cost can compare two action spaces.
    for one, two in itertools.combinations_with_replacement(kinds.values(), 2):
        cost(one, two)
    return groups


def _check_observations(one: Any, first: Trajectory) -> None:
    if not isinstance(one, Trajectory):
        raise UserError(f"expected trajectories, got {type(one).__name__}; Trajectory(observations, actions) makes one")
    if not one.observations.dtype.isnative or one.observations.dtype.itemsize > 8:
        raise UserError(f"expected observations of a type that torch has, got {one.observations.dtype}")
    shapes = first.observations.shape[1:], one.observations.shape[1:]
    if shapes[0] != shapes[1]:
        raise UserError(f"expected observations of one shape, got {shapes[0]} and {shapes[1]}")


def _kind(trajectory: Trajectory) -> tuple[Any, ...]:
    """The type and shape of what is recorded at each step."""
    values = [getattr(trajectory, name) for name in STEP_FIELDS]
    return tuple(None if value is None else (value.dtype, value.shape[1:]) for value in values)


def _first_step(trajectory: Trajectory) -> Trajectory:
    values = {name: getattr(trajectory, name) for name in STEP_FIELDS}
    return Trajectory(**{name: value[:1] for name, value in values.items() if value is not None})


def _starts(
    groups: list[list[Trajectory]], pairs: list[tuple[int, int]] | None
) -> tuple[dict[tuple[Place, Place], int], int]:
    """Where the metric of each pair of trajectories starts in the store, and the size of the store."""
    starts, size = {}, 0
    chosen = itertools.combinations(range(len(groups)), 2) if pairs is None else {(min(p), max(p)) for p in pairs}
    for env_x, env_y in sorted(chosen):
        for x, y in itertools.product(range(len(groups[env_x])), range(len(groups[env_y]))):
            starts[(env_x, x), (env_y, y)] = size
            size += len(groups[env_x][x]) * len(groups[env_y][y])
    return starts, size
