"""The training data of the jumping task, and the evaluation of its agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pisces.agents.imitation.agent import ImitationAgent, ImitationData
from pisces.agents.imitation.auxiliary import TRANSITION_LOSSES, EpisodeTransitions
from pisces.agents.imitation.encoders import Encoder, make_encoder
from pisces.envs.jumping import (
    JumpingTask,
    optimal_actions,
    optimal_frames,
    optimal_rewards,
    render_frames,
    stack_frames,
)
from pisces.envs.jumping.tasks import DECISIONS
from pisces.errors import unknown_name
from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.jumping.mdp import episode_similarity
from pisces.experiments.jumping.policy import JumpingPolicy
from pisces.experiments.jumping.tasks import deciding_states, run_colors, run_split
from pisces.metrics import behavior_cost, l1_distance, reward_difference, sequence_metric
from pisces.metrics.trajectory import TrajectoryCost
from pisces.pairs import TrajectoryPairs
from pisces.trajectories import Trajectory

FloatArray = NDArray[np.float64]
SHIFTS = 9
"""Stream of randomness of the shifts."""


def imitation_data(config: JumpingConfig) -> ImitationData:
    """Optimal episodes of all training tasks, and the metric between those with a white or red obstacle."""
    colors = run_colors(config)
    tasks = [task for color in colors for task in run_split(config, color).train]
    settings = config.imitation
    copies = 1 + settings.shifted_copies if settings.shift else 1
    rng = np.random.default_rng([config.seed, SHIFTS])
    versions = [
        shifted_copies(stack_frames(optimal_frames(task)), copies, settings.shift, rng, settings.shift_border)
        for task in tasks
    ]
    observations = np.concatenate(versions)
    actions = np.concatenate([np.tile(optimal_actions(task), copies) for task in tasks])
    pairs, transitions = None, None
    if settings.auxiliary in TRANSITION_LOSSES:
        transitions = episode_transitions(tasks, copies, settings.reward_scale)
    elif settings.auxiliary != "none":
        compared = [task for task in tasks if task.color == colors[0]]
        pairs = episode_pairs(compared, settings.metric, settings.discount, config.epsilon, copies)
    return ImitationData(observations, actions, pairs, transitions, copies)


def episode_transitions(tasks: Sequence[JumpingTask], copies: int, reward_scale: float) -> EpisodeTransitions:
    """What follows each state of the tasks' optimal episodes and their copies; the last state leads to itself."""
    steps = np.arange(len(tasks) * copies * DECISIONS).reshape(-1, DECISIONS)
    following = np.concatenate([steps[:, 1:], steps[:, -1:]], axis=1)
    rewards = np.concatenate([np.tile(optimal_rewards(task), copies) for task in tasks])
    return EpisodeTransitions(reward_scale * rewards, following.ravel())


def shifted_copies(
    observations: NDArray[np.uint8], copies: int, shift: int, rng: np.random.Generator, border: int = 0
) -> NDArray[np.uint8]:
    """An episode's observations [T, H, W, C] and shifted copies of them, [copies * T, H, W, C].

    The outermost `border` pixels stay in place; what moves in from the sides repeats the edge of the rest.
    """
    inside = (slice(None), slice(border, observations.shape[1] - border), slice(border, observations.shape[2] - border))
    height, width = observations[inside].shape[1:3]
    padded = np.pad(observations[inside], ((0, 0), (shift, shift), (shift, shift), (0, 0)), mode="edge")
    versions = np.repeat(observations[None], copies, axis=0)
    for version, (down, right) in zip(versions[1:], rng.integers(0, 2 * shift + 1, (copies - 1, 2)), strict=True):
        version[inside] = padded[:, down : down + height, right : right + width]
    return versions.reshape(-1, *observations.shape[1:])


def episode_pairs(
    tasks: Sequence[JumpingTask], metric: str, discount: float, epsilon: float = 0.0, copies: int = 1
) -> TrajectoryPairs:
    """Pairs of the tasks' optimal episodes; observations are the numbers of the states in the training data.

    Args:
        tasks: the tasks to compare.
        metric: "psm" compares epsilon-suboptimal policies along the optimal episodes and "psm-mdp" on the whole MDPs,
            "pi-bisimulation" compares rewards, the last of which repeats forever (App. I.1, arXiv:2101.05265), and
            "pi-bisimulation-end" rewards that are zero after the end (Eq. 1 on the MDPs); "true" is the difference
            in pixels of the distances to the obstacle, the feature that the tasks share.
        discount: of all but "true".
        epsilon: probability of the other action in the policies.
        copies: how many versions of each episode the training data holds.
    """
    numbers = np.arange(len(tasks) * copies * DECISIONS).reshape(len(tasks), -1)
    ahead = np.array([[task.obstacle_position] for task in tasks]) - np.arange(copies * DECISIONS)

    def task_of(episode: Trajectory) -> JumpingTask:
        return tasks[int(episode.observations[0]) // numbers.shape[1]]

    costs: dict[str, TrajectoryCost] = {
        "psm": behavior_cost,
        "psm-mdp": lambda x, y: episode_similarity(task_of(x), task_of(y), discount, epsilon),
        "pi-bisimulation": lambda x, y: reward_difference(_rewards(x), _rewards(y)),
        "pi-bisimulation-end": lambda x, y: _ended_bisimulation(_rewards(x), _rewards(y), discount),
        "true": lambda x, y: l1_distance(ahead.take(x.observations), ahead.take(y.observations)),
    }
    if metric not in costs:
        raise unknown_name("metric", metric, costs)
    episodes = [
        Trajectory(states[:DECISIONS], policies=_policies(task, epsilon), rewards=optimal_rewards(task))
        for states, task in zip(numbers, tasks, strict=True)
    ]
    # The true distance compares single states, not what follows them; two other metrics sum it up themselves.
    single = metric in ("true", "psm-mdp", "pi-bisimulation-end")
    return TrajectoryPairs(episodes, discount=0.0 if single else discount, cost=costs[metric])


def task_metrics(
    pairs: Sequence[tuple[JumpingTask, JumpingTask]], metric: str, discount: float, epsilon: float = 0.0
) -> FloatArray:
    """Distances between the states of the optimal episodes of each pair of tasks, [P, 56, 56]; see `episode_pairs`."""
    return np.stack([episode_pairs(pair, metric, discount, epsilon).metric((0, 0), (1, 0)) for pair in pairs])


def _policies(task: JumpingTask, epsilon: float) -> FloatArray:
    optimal = np.eye(2)[optimal_actions(task)]
    return np.asarray((1 - epsilon) * optimal + epsilon * (1 - optimal), dtype=np.float64)


def _ended_bisimulation(rewards_x: NDArray[Any], rewards_y: NDArray[Any], discount: float) -> FloatArray:
    """pi*-bisimulation of two episodes that lead to an absorbing state without rewards, [n, m]."""
    cost = reward_difference(np.append(rewards_x, 0.0), np.append(rewards_y, 0.0))
    return np.ascontiguousarray(sequence_metric(cost, discount)[:-1, :-1])


def _rewards(trajectory: Trajectory) -> NDArray[Any]:
    assert trajectory.rewards is not None
    return trajectory.rewards


@dataclass(frozen=True)
class TaskEvaluator:
    """Computes an agent's greedy actions in the states of many tasks that it passes through on the floor."""

    tasks: tuple[JumpingTask, ...]
    """The tasks."""
    device: torch.device
    """The torch device."""
    beyond_jump: bool = False
    """Also the states after a missed jump, up to the collision: what it takes to redraw a failed episode."""

    @cached_property
    def _lengths(self) -> list[int]:
        if self.beyond_jump:
            return [task.steps_to_obstacle for task in self.tasks]
        return [deciding_states(task) for task in self.tasks]

    @cached_property
    def _observations(self) -> NDArray[np.uint8]:
        parts = []
        for task, length in zip(self.tasks, self._lengths, strict=True):
            steps = np.arange(length)
            parts.append(stack_frames(render_frames(task, steps, np.zeros_like(steps))))
        return np.concatenate(parts)

    @cached_property
    def _encoder(self) -> Encoder:
        return make_encoder(self._observations, self.device)

    @torch.no_grad()
    def greedy_actions(self, agent: ImitationAgent | JumpingPolicy) -> list[NDArray[np.int64]]:
        """Greedy actions per task; with augmentation, of the action probabilities averaged over several kernels."""
        total = torch.zeros(len(self._observations), 2, device=self.device)
        for kernel in agent.evaluation_kernels():
            total += agent.network.policy(self._encoder.represent_all(agent.network, kernel)).softmax(dim=1)
        actions = total.argmax(dim=1).cpu().numpy()
        return np.split(actions, np.cumsum(self._lengths)[:-1])
