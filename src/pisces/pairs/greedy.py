"""Pairs from an agent's own greedy episodes, which need no optimal policy."""

from __future__ import annotations

from collections.abc import Sequence
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
        environments: the training environments, one object each, other than those that the agent trains in.
        refresh: number of sampled pairs after which episodes are played again.
        discount: of the metric, in [0, 1).
        keep: "latest" for the newest episode of each environment, "best" for the one with the highest return so far.
        cost: the cost at one step; by default the metric is PSM.
        last: what follows the last states of both episodes, "self-loop" or "stop"; None decides by whether they
            terminated, see `pisces.metrics.trajectory_metric`.
        max_steps: episodes are truncated after this many steps.
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
        max_steps: int = 500,
        states: int | None = 256,
        seed: int | np.random.Generator = 0,
    ) -> None:
        if len(environments) < 2:
            raise UserError(f"expected at least two environments to compare, got {len(environments)}")
        if keep not in get_args(Keep):
            raise unknown_name("keep", keep, get_args(Keep))
        for name, value in (("refresh", refresh), ("max_steps", max_steps), ("states", states)):
            if value is not None and not (isinstance(value, int | np.integer) and value >= 1):
                raise UserError(f"expected {name} of at least 1, got {value!r}")
        check_separate(environments)
        check_discount(discount)
        self.environments, self.refresh, self.keep, self.max_steps = list(environments), refresh, keep, max_steps
        self.generator = as_generator(seed)
        self.episodes: list[Trajectory] = []
        self.drawn = 0
        self._pairs: TrajectoryPairs | None = None
        self._arguments: dict[str, Any] = {"discount": discount, "cost": cost, "last": last, "states": states}

    def sample(self, policy: BatchPolicy) -> Pair:
        """Samples a pair of episodes; plays new ones with the policy if they are due."""
        if self._pairs is None or (self.drawn and self.drawn % self.refresh == 0):
            self.set_episodes(self._chosen(policy))
        self.drawn += 1
        assert self._pairs is not None
        return self._pairs.sample()

    def set_episodes(self, episodes: Sequence[Trajectory]) -> None:
        """Replaces the episodes, one per environment."""
        if len(episodes) != len(self.environments):
            raise UserError(
                f"expected an episode for each of {len(self.environments)} environments, got {len(episodes)}"
            )
        self.episodes = list(episodes)
        self._pairs = TrajectoryPairs(self.episodes, seed=self.generator, **self._arguments)

    def _chosen(self, policy: BatchPolicy) -> list[Trajectory]:
        seed = int(self.generator.integers(2**31))
        played = play_episodes(self.environments, policy, self.max_steps, seed)
        if self.keep == "latest" or not self.episodes:
            return played
        pairs = zip(self.episodes, played, strict=True)
        return [new if _total(new) >= _total(old) else old for old, new in pairs]


def _total(trajectory: Trajectory) -> float:
    return 0.0 if trajectory.rewards is None else float(trajectory.rewards.sum())
