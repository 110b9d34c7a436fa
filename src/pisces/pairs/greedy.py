"""Pairs from an agent's own greedy episodes, which need no optimal policy."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import gymnasium as gym
import numpy as np

from pisces.errors import UserError, unknown_name
from pisces.metrics.sequence import Last
from pisces.metrics.trajectory import TrajectoryCost, behavior_cost
from pisces.pairs.trajectory_pairs import Pair, TrajectoryPairs
from pisces.trajectories import BatchPolicy, Trajectory, play_episodes
from pisces.trajectories.collection import check_separate
from pisces.validation import as_generator, check_discount

Keep = Literal["latest", "best"]


class GreedyPairs:
    """Samples pairs of the agent's own greedy episodes, which it plays again at intervals.

    The metric between them is the generalized PSM of the agent's current policy, so no optimal policy is needed.

    Args:
        environments: the training environments, one object each, other than those that the agent trains in; not a
            vector environment.
        refresh: number of sampled pairs after which episodes are played again.
        discount: of the metric, in [0, 1).
        keep: "latest" for the newest episode of each environment, "best" for the one with the highest return so far.
        cost: the cost at one step; by default the metric is PSM.
        last: what follows the last states of both episodes, "self-loop" or "stop"; None decides by whether they
            terminated, see `pisces.metrics.trajectory_metric`.
        min_return: episodes with a lower return are left out, because they show no behavior worth copying; None keeps
            all. As long as fewer than two are left, no pair can be sampled.
        max_steps: episodes are truncated after this many steps.
        match_within: pairs of environments are sampled in proportion to the share of their states whose nearest state
            is at most this far away, and only the best pairs of each environment; None for equal probabilities.
        states: at most this many states of each episode are sampled per pair; None for all.
        seed: a seed, or a generator to sample with.
    """

    def __init__(
        self,
        environments: Sequence[gym.Env[Any, Any]],
        *,
        refresh: int = 100,
        discount: float = 0.9,
        keep: Keep = "latest",
        cost: TrajectoryCost = behavior_cost,
        last: Last | None = None,
        min_return: float | None = None,
        max_steps: int = 500,
        match_within: float | None = None,
        states: int | None = 256,
        seed: int | np.random.Generator = 0,
    ) -> None:
        _check_environments(environments)
        if keep not in get_args(Keep):
            raise unknown_name("keep", keep, get_args(Keep))
        for name, value in (("refresh", refresh), ("max_steps", max_steps), ("states", states)):
            if value is not None and not (isinstance(value, int | np.integer) and value >= 1):
                raise UserError(f"expected {name} of at least 1, got {value!r}")
        check_discount(discount)
        if min_return is not None and not isinstance(min_return, numbers.Real):
            raise UserError(f"min_return must be a number or None, got {min_return!r}")
        self.environments, self.refresh, self.keep, self.max_steps = list(environments), refresh, keep, max_steps
        self.min_return, self.generator = min_return, as_generator(seed)
        self.episodes: list[Trajectory] = []
        self.drawn = 0
        self._played, self._wrapped = False, self.environments
        self._pairs: TrajectoryPairs | None = None
        self._arguments: dict[str, Any] = {
            "discount": discount,
            "cost": cost,
            "last": last,
            "match_within": match_within,
            "states": states,
        }

    def sample(self, policy: BatchPolicy) -> Pair | None:
        """Samples a pair of episodes; plays new ones with the policy if they are due.

        Returns:
            The pair; None if fewer than two episodes reach `min_return`. The next call then plays new ones.
        """
        if self._pairs is None or (self.drawn and self.drawn % self.refresh == 0):
            self._use(self._chosen(policy), played=True)
        if self._pairs is None:
            return None
        self.drawn += 1
        return self._pairs.sample()

    def set_episodes(self, episodes: Sequence[Trajectory]) -> None:
        """Replaces the episodes, one per environment."""
        self._use(episodes, played=False)
        self.drawn = 0

    def restore(self, episodes: Sequence[Trajectory], drawn: int) -> None:
        """Continues with episodes that were played before, and the number of pairs sampled by then."""
        self._use(episodes, played=True)
        self.drawn = drawn

    def forget(self) -> None:
        """Drops episodes that another agent played; episodes given to `set_episodes` stay."""
        if self._played:
            self.episodes, self._pairs, self.drawn, self._played = [], None, 0, False

    def wrap_environments(self, wrap: Callable[[gym.Env[Any, Any]], gym.Env[Any, Any]]) -> None:
        """Plays from now on in wrapped environments, e.g. with the observations that an agent expects."""
        self._wrapped = [wrap(env) for env in self.environments]

    def _use(self, episodes: Sequence[Trajectory], played: bool) -> None:
        if len(episodes) != len(self.environments):
            raise UserError(
                f"expected an episode for each of {len(self.environments)} environments, got {len(episodes)}"
            )
        self.episodes, self._played = list(episodes), played
        low = -math.inf if self.min_return is None else self.min_return
        good = [episode for episode in self.episodes if _total(episode) >= low]
        self._pairs = TrajectoryPairs(good, seed=self.generator, **self._arguments) if len(good) > 1 else None

    def _chosen(self, policy: BatchPolicy) -> list[Trajectory]:
        seed = int(self.generator.integers(2**31))
        played = play_episodes(self._wrapped, policy, self.max_steps, seed)
        if self.keep == "latest" or not self.episodes:
            return played
        pairs = zip(self.episodes, played, strict=True)
        return [new if _total(new) >= _total(old) else old for old, new in pairs]


def _total(trajectory: Trajectory) -> float:
    return 0.0 if trajectory.rewards is None else float(trajectory.rewards.sum())


def _check_environments(environments: Any) -> None:
    """Raises unless these are at least two single environments, each one object."""
    if hasattr(environments, "num_envs"):
        raise UserError(
            f"expected a list of single environments, got a vector environment ({type(environments).__name__}); pass "
            "the environments themselves, e.g. GreedyPairs([make_env(0), make_env(1)])"
        )
    if not isinstance(environments, Sequence):
        raise UserError(f"expected a list of environments, got {type(environments).__name__}")
    for index, env in enumerate(environments):
        if hasattr(env, "num_envs"):
            raise UserError(f"environment {index} is a vector environment ({type(env).__name__}); pass single ones")
        if not isinstance(env, gym.Env):
            hint = "call it, e.g. GreedyPairs([make() for make in makers])" if callable(env) else "pass a gymnasium.Env"
            raise UserError(f"environment {index} is a {type(env).__name__}, not an environment; {hint}")
    if len(environments) < 2:
        raise UserError(f"expected at least two environments to compare, got {len(environments)}")
    check_separate(environments)
