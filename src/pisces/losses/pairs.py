"""Pairs of trajectories from different environments, with the metric between their states."""

from __future__ import annotations

import errno
import itertools
import os
import tempfile
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pisces.errors import UserError, unknown_name
from pisces.metrics.behaviour import TrajectoryCost, behaviour_cost, trajectory_metric
from pisces.metrics.sequence import Last
from pisces.trajectories import Trajectory, collect
from pisces.trajectories.trajectory import FIELDS
from pisces.validation import as_generator, check_discount

MEMORY_LIMIT = 256 * 2**20
"""Metrics that need more bytes than this are kept in a file."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two trajectories of different environments; what `PolicySimilarityLoss` compares."""

    observations_x: Tensor
    """Observations of the first, [n, ...], in the type in which they were recorded."""
    observations_y: Tensor
    """Observations of the second, [m, ...]."""
    metric: Tensor
    """Distances between their states, [n, m], float64."""


class TrajectoryPairs:
    """Draws two trajectories of different environments and gives the metric between their states.

    The metric of a pair is computed when the pair is drawn for the first time, and kept: in memory, or in a file
    (which goes with the sampler) if all metrics together are large.

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
        cost: the cost at one step, a function of two trajectories that is the same in both directions; without it the
            metric is PSM.
        last: what follows the last pair of states; see `pisces.metrics.sequence_metric`.
        states: at most this many states of each trajectory are drawn, at random; None for all.
        seed: a seed, or a generator to draw from.
        memory_limit: bytes of metrics above which they are kept in a file.
        folder: where that file lies; None for the system's temporary folder.
    """

    def __init__(
        self,
        environments: Sequence[Trajectory | Sequence[Trajectory]],
        discount: float = 0.99,
        cost: TrajectoryCost = behaviour_cost,
        last: Last = "self-loop",
        states: int | None = None,
        seed: int | np.random.Generator = 0,
        memory_limit: int = MEMORY_LIMIT,
        folder: str | Path | None = None,
    ) -> None:
        check_discount(discount)
        if last not in get_args(Last):
            raise unknown_name("last", last, get_args(Last))
        if states is not None and states < 1:
            raise UserError(f"expected at least one state per trajectory, got {states}")
        self.generator = as_generator(seed)
        self.groups = _check_groups(environments, cost)
        self._discount, self._cost, self._last, self._states = discount, cost, last, states
        self._offsets = _offsets(self.groups)
        size = sum(len(x) * len(y) for x, y in _all_pairs(self.groups))
        self._descriptor: int | None = None
        if size * 8 > memory_limit:
            self._store, self._descriptor = _mapped(size, folder)
            weakref.finalize(self, os.close, self._descriptor)
        else:
            self._store = np.empty(size)
        self._known: set[tuple[tuple[int, int], tuple[int, int]]] = set()

    @classmethod
    def from_expert(
        cls,
        environments: Sequence[gym.Env[Any, Any]],
        expert: Callable[[Any], Any] | Sequence[Callable[[Any], Any]],
        reset_seed: int | None = 0,
        **arguments: Any,
    ) -> TrajectoryPairs:
        """Plays one episode of an expert in each environment; `arguments` are those of the class.

        Args:
            environments: the training environments.
            expert: maps an observation to an action; one for all, or one per environment.
            reset_seed: seeds each environment's reset.
            arguments: discount, cost and so on.
        """
        experts = [expert] * len(environments) if callable(expert) else list(expert)
        if len(experts) != len(environments):
            raise UserError(f"expected one expert, or one for each of {len(environments)}, got {len(experts)}")
        played = [collect(env, policy, reset_seed) for env, policy in zip(environments, experts, strict=True)]
        return cls(played, **arguments)

    @property
    def in_file(self) -> bool:
        """Whether the metrics are kept in a file."""
        return self._descriptor is not None

    def __getstate__(self) -> dict[str, Any]:
        # A copy has the metrics in memory: its mapping is one no longer, and the file belongs to the original.
        own = {"_descriptor": None, "_store": np.array(self._store), "_known": set(self._known)}
        return {**self.__dict__, **own}

    def sample(self) -> Pair:
        """Draws two different environments, a trajectory of each, and returns them with their metric."""
        first, second = self.generator.choice(len(self.groups), size=2, replace=False).tolist()
        chosen = [(env, int(self.generator.integers(len(self.groups[env])))) for env in (first, second)]
        trajectories = [self.groups[env][index] for env, index in chosen]
        rows, columns = (self._draw_states(len(trajectory)) for trajectory in trajectories)
        metric = self.metric(chosen[0], chosen[1])[np.ix_(rows, columns)]
        return Pair(
            torch.from_numpy(trajectories[0].observations[rows]),
            torch.from_numpy(trajectories[1].observations[columns]),
            torch.from_numpy(np.ascontiguousarray(metric)),
        )

    def metric(self, x: tuple[int, int], y: tuple[int, int]) -> NDArray[np.float64]:
        """Distances between the states of two trajectories, each given as (environment, number), [n, m]; read-only."""
        x, y = (self._check_place(place) for place in (x, y))
        if x[0] == y[0]:
            raise UserError(f"expected trajectories of two environments, got two of environment {x[0]}")
        if x[0] > y[0]:
            return self.metric(y, x).T
        trajectory_x, trajectory_y = self.groups[x[0]][x[1]], self.groups[y[0]][y[1]]
        start, shape = self._offsets[x, y], (len(trajectory_x), len(trajectory_y))
        if (x, y) not in self._known:
            found = trajectory_metric(trajectory_x, trajectory_y, self._discount, self._cost, self._last)
            if not self._keep(start, found):
                return found
            self._known.add((x, y))
        kept = self._store[start : start + shape[0] * shape[1]].reshape(shape)
        kept.setflags(write=False)  # others will be given the same numbers
        return kept

    def _check_place(self, place: tuple[int, int]) -> tuple[int, int]:
        env, number = (int(part) for part in place)
        if not (0 <= env < len(self.groups) and 0 <= number < len(self.groups[env])):
            raise UserError(f"expected (environment, number) of a trajectory, got {tuple(place)}")
        return env, number

    def _keep(self, start: int, found: NDArray[np.float64]) -> bool:
        """Keeps a metric; not if the disk is full, where a write through the mapping would end the process."""
        if self._descriptor is None:
            self._store[start : start + found.size] = found.ravel()
            return True
        left, place = np.ascontiguousarray(found).data.cast("B"), start * found.itemsize
        try:
            while left:  # a call may write a part only
                written = os.pwrite(self._descriptor, left, place)
                left, place = left[written:], place + written
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            warnings.warn("the disk is full: metrics of further pairs are computed whenever drawn", stacklevel=3)
            return False
        return True

    def _draw_states(self, length: int) -> NDArray[np.int64]:
        if self._states is None or length <= self._states:
            return np.arange(length)
        return np.sort(self.generator.choice(length, size=self._states, replace=False))


def _check_groups(
    environments: Sequence[Trajectory | Sequence[Trajectory]], cost: TrajectoryCost
) -> list[list[Trajectory]]:
    groups = [[group] if isinstance(group, Trajectory) else list(group) for group in environments]
    for one in itertools.chain.from_iterable(groups):
        if not isinstance(one, Trajectory):
            raise UserError(
                f"expected trajectories, got {type(one).__name__}; Trajectory(observations, actions) makes one"
            )
        if not one.observations.dtype.isnative or one.observations.dtype.itemsize > 8:
            raise UserError(f"expected observations of a type that torch has, got {one.observations.dtype}")
    if len(groups) < 2:
        raise UserError(f"expected trajectories of at least two environments, got {len(groups)}")
    empty = [index for index, group in enumerate(groups) if not group]
    if empty:
        raise UserError(f"expected at least one trajectory per environment, got none of environment {empty[0]}")
    first = groups[0][0]
    kinds: dict[tuple[Any, ...], Trajectory] = {}
    for trajectory in itertools.chain.from_iterable(groups):
        if trajectory.observations.shape[1:] != first.observations.shape[1:]:
            shapes = f"{first.observations.shape[1:]} and {trajectory.observations.shape[1:]}"
            raise UserError(f"expected observations of one shape, got {shapes}")
        kinds.setdefault(_kind(trajectory), _start(trajectory))
    # One pair of states tells whether the cost can compare two action spaces.
    for one, two in itertools.combinations_with_replacement(kinds.values(), 2):
        cost(one, two)
    return groups


def _kind(trajectory: Trajectory) -> tuple[Any, ...]:
    """What is recorded of each state, and its type and shape."""
    values = [getattr(trajectory, name) for name in FIELDS]
    return tuple(None if value is None else (value.dtype, value.shape[1:]) for value in values)


def _mapped(size: int, folder: str | Path | None) -> tuple[NDArray[np.float64], int]:
    """Room for numbers in a file, to be read, and the file's descriptor, to be written to."""
    if folder is not None and not Path(folder).is_dir():
        raise UserError(f"expected a folder for metrics, got {str(folder)!r}, which is not a folder")
    # The file has no name, so it is gone when the mapping and the descriptor are.
    with tempfile.TemporaryFile(dir=folder, prefix="pisces-metric-") as file:
        return np.memmap(file, np.float64, "w+", shape=(size,)), os.dup(file.fileno())


def _start(trajectory: Trajectory) -> Trajectory:
    values = {name: getattr(trajectory, name) for name in FIELDS}
    return Trajectory(**{name: value[:1] for name, value in values.items() if value is not None})


def _all_pairs(groups: list[list[Trajectory]]) -> list[tuple[Trajectory, Trajectory]]:
    return [pair for one, two in itertools.combinations(groups, 2) for pair in itertools.product(one, two)]


def _offsets(groups: list[list[Trajectory]]) -> dict[tuple[tuple[int, int], tuple[int, int]], int]:
    """Where the metric of each pair, given as two (environment, number), starts in the store."""
    offsets, start = {}, 0
    for env_x, env_y in itertools.combinations(range(len(groups)), 2):
        for x, y in itertools.product(range(len(groups[env_x])), range(len(groups[env_y]))):
            offsets[(env_x, x), (env_y, y)] = start
            start += len(groups[env_x][x]) * len(groups[env_y][y])
    return offsets
