"""Demonstrations and pairs of states for the cloning agent."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.agents.cloning.agent import CloningData
from pisces.agents.cloning.settings import CloningSettings
from pisces.envs.minigrid.render import TILE
from pisces.experiments.minigrid.config import MiniGridConfig
from pisces.experiments.minigrid.mdp import SolvedLevel, solve_level
from pisces.experiments.minigrid.tasks import Task, make_renderer, training_tasks
from pisces.metrics import bisimulation_metric, pi_bisimulation_metric, policy_similarity_metric
from pisces.metrics.costs import reward_difference
from pisces.metrics.trajectory import behavior_cost
from pisces.pairs import StatePairs, TrajectoryPairs
from pisces.trajectories import Trajectory

IntArray = NDArray[np.int64]
STATE_METRICS: Mapping[str, Callable[..., Any]] = {
    "psm": policy_similarity_metric,
    "pi-bisimulation": pi_bisimulation_metric,
    "bisimulation": bisimulation_metric,
}
"""Metrics between all states."""


def reward_cost(x: Trajectory, y: Trajectory) -> NDArray[np.float64]:
    """Difference of the rewards of every pair of states: the cost of pi-bisimulation."""
    assert x.rewards is not None and y.rewards is not None  # noqa: PT018 (no test)
    return reward_difference(x.rewards, y.rewards)


EPISODE_COSTS = {"psm": behavior_cost, "pi-bisimulation": reward_cost}
"""Costs of metrics between the states of two episodes."""


def cloning_data(config: MiniGridConfig) -> CloningData:
    """Draws the frames of the training tasks, the expert's episodes, and the pairs that the method needs."""
    tasks = training_tasks(config)
    levels = [solve_level(config.family, task.level) for task in tasks]
    frames = [_frames(config.family, task, level) for task, level in zip(tasks, levels, strict=True)]
    starts = np.cumsum([0, *(len(part) for part in frames)])
    # The last frame of each task shows the goal reached, which is no state of its own.
    numbers = [np.arange(start, end - 1) for start, end in itertools.pairwise(starts)]
    episodes = [level.expert_episode() for level in levels]
    shown = [own[states] for own, (states, _) in zip(numbers, episodes, strict=True)]
    actions = [actions for _, actions in episodes]
    ends = np.concatenate([np.arange(len(own)) == len(own) - 1 for own in shown])
    return CloningData(
        np.concatenate(frames),
        np.concatenate(shown),
        np.concatenate(actions),
        np.concatenate([np.append(own[1:], end - 1) for own, end in zip(shown, starts[1:], strict=True)]),
        ends.astype(np.float32),
        ends,
        levels[0].mdp.n_actions,
        TILE,
        _make_pairs(config.cloning, levels, numbers, [*zip(shown, actions, strict=True)]),
    )


def _frames(family: str, task: Task, level: SolvedLevel) -> NDArray[np.uint8]:
    """Draws all states of a task, and the one in which the expert has reached the goal."""
    renderer, (states, actions) = make_renderer(family, task), level.expert_episode()
    end = renderer.dynamics.step(level.states[states[-1]], int(actions[-1])).state
    return renderer.frames([*level.states, end])


def _make_pairs(
    settings: CloningSettings,
    levels: Sequence[SolvedLevel],
    numbers: Sequence[IntArray],
    episodes: Sequence[tuple[IntArray, IntArray]],
) -> StatePairs | TrajectoryPairs | None:
    """Pairs whose observations are numbers of frames; None unless the auxiliary loss compares pairs."""
    if settings.auxiliary not in ("contrastive", "l2"):
        return None
    if settings.states == "all":
        metric = partial(STATE_METRICS[settings.metric], discount=settings.discount, threads=1)
        return StatePairs([level.mdp for level in levels], numbers, metric=metric, match_within=settings.match_within)
    trajectories = [Trajectory(own, actions, rewards=np.eye(len(own))[-1]) for own, actions in episodes]
    return TrajectoryPairs(
        trajectories,
        discount=settings.discount,
        cost=EPISODE_COSTS[settings.metric],
        match_within=settings.match_within,
    )
