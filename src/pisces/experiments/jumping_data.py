"""What a run of the jumping task learns from, and how its agent is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from pisces.agents.encoders import Encoder, make_encoder
from pisces.agents.imitation import ImitationAgent, ImitationData
from pisces.agents.loading import JumpingPolicy
from pisces.agents.settings import Metric
from pisces.envs.grids import TaskSplit, all_tasks, split_tasks
from pisces.envs.jumping import (
    DECISIONS,
    JUMP,
    Color,
    JumpingTask,
    optimal_actions,
    optimal_halves,
    optimal_rewards,
    render_halves,
    stack_frames,
)
from pisces.errors import unknown_name
from pisces.experiments.jumping import JumpingConfig
from pisces.metrics import reward_difference, sequence_metric, total_variation

FloatArray = NDArray[np.float64]
SHIFTS = 9
"""Stream of randomness of the shifts."""


def run_colors(config: JumpingConfig) -> tuple[Color, ...]:
    """The colors of the obstacles that a run trains with and is judged on."""
    return ("red", "green") if config.colors else ("white",)


def run_split(config: JumpingConfig, color: Color) -> TaskSplit:
    """The training, validation and held-out tasks of a run."""
    return split_tasks(config.grid, config.seed, color, config.training_tasks)


def imitation_data(config: JumpingConfig) -> ImitationData:
    """Optimal episodes of all training tasks, and the metric between those with a white or red obstacle."""
    colors = run_colors(config)
    tasks = [task for color in colors for task in run_split(config, color).train]
    settings = config.settings
    copies = 1 + settings.shifted_copies if settings.shift else 1
    rng = np.random.default_rng([config.seed, SHIFTS])
    versions = [
        shifted_copies(stack_frames(optimal_halves(task)), copies, settings.shift, rng, settings.shift_border)
        for task in tasks
    ]
    observations = np.concatenate(versions)
    actions = np.concatenate([np.tile(optimal_actions(task), copies) for task in tasks])
    compared = [task for task in tasks if task.color == colors[0]]
    episodes = np.arange(len(compared) * copies * DECISIONS).reshape(len(compared), copies, DECISIONS)
    metric = None
    if settings.auxiliary != "none":
        metric = pairwise_metric(compared, settings.metric, settings.discount, config.epsilon)
    return ImitationData(observations, actions, episodes, metric, copies)


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


def pairwise_metric(
    tasks: Sequence[JumpingTask], metric: Metric, discount: float, epsilon: float = 0.0
) -> NDArray[np.float32]:
    """Distances between the states of the optimal episodes of every two tasks, [K, K, 56, 56]."""
    count = len(tasks)
    distances = np.zeros((count, count, DECISIONS, DECISIONS), dtype=np.float32)
    x, y = np.triu_indices(count, k=1)
    pairs = [(tasks[i], tasks[j]) for i, j in zip(x.tolist(), y.tolist(), strict=True)]
    solved = task_metrics(pairs, metric, discount, epsilon)
    distances[x, y] = solved
    distances[y, x] = solved.transpose(0, 2, 1)
    return distances


def task_metrics(
    pairs: Sequence[tuple[JumpingTask, JumpingTask]], metric: str, discount: float, epsilon: float = 0.0
) -> FloatArray:
    """Distances between the states of the optimal episodes of each pair of tasks, [P, 56, 56].

    "psm" compares epsilon-suboptimal policies, "bisimulation" rewards, and "true" is the difference in pixels of the
    distances to the obstacle, the feature that the tasks share.
    """
    if metric == "true":
        return np.stack([_obstacle_distance(x, y) for x, y in pairs])
    if metric == "psm":
        costs = [total_variation(_policies(x, epsilon), _policies(y, epsilon)) for x, y in pairs]
    elif metric == "bisimulation":
        costs = [reward_difference(optimal_rewards(x), optimal_rewards(y)) for x, y in pairs]
    else:
        raise unknown_name("metric", metric, ("psm", "bisimulation", "true"))
    return sequence_metric(np.stack(costs), discount)


def _policies(task: JumpingTask, epsilon: float) -> FloatArray:
    optimal = np.eye(2)[optimal_actions(task)]
    return np.asarray((1 - epsilon) * optimal + epsilon * (1 - optimal), dtype=np.float64)


def _obstacle_distance(task_x: JumpingTask, task_y: JumpingTask) -> FloatArray:
    ahead_x = task_x.obstacle_position - np.arange(DECISIONS)
    ahead_y = task_y.obstacle_position - np.arange(DECISIONS)
    return np.asarray(np.abs(ahead_x[:, None] - ahead_y[None, :]), dtype=np.float64)


@dataclass(frozen=True)
class TaskEvaluator:
    """Finds the agent's greedy actions in the states of many tasks that an agent on the floor passes through."""

    tasks: tuple[JumpingTask, ...]
    """The tasks."""
    device: torch.device
    """Where to compute."""
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
            parts.append(stack_frames(render_halves(task, steps, np.zeros_like(steps))))
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


def deciding_states(task: JumpingTask) -> int:
    """How many states decide whether a task is solved: up to the jump, or up to striking a green obstacle."""
    return task.steps_to_obstacle if task.color == "green" else task.jump_step + 1


def is_solved(task: JumpingTask, actions: NDArray[np.int64]) -> bool:
    """Whether greedy actions in the floor's states are optimal in every state that decides."""
    deciding = actions[: deciding_states(task)]
    jumps = np.flatnonzero(deciding == JUMP)
    expected = [] if task.color == "green" else [task.jump_step]
    return jumps.tolist() == expected


def solved_percent(tasks: Sequence[JumpingTask], solved: dict[JumpingTask, bool]) -> float:
    """Percentage of the given tasks that are solved."""
    return 100 * sum(solved[task] for task in tasks) / len(tasks) if tasks else 0.0


def split_percentages(split: TaskSplit, solved: dict[JumpingTask, bool], prefix: str = "") -> dict[str, float]:
    """Percentages of solved training, validation, test and held-out tasks, under the names of result files."""
    parts = {"train": split.train, "validation": split.validation, "test": split.test, "heldout": split.heldout}
    return {f"{prefix}{name}_solved_percent": solved_percent(tasks, solved) for name, tasks in parts.items()}


def evaluated_tasks(config: JumpingConfig) -> tuple[JumpingTask, ...]:
    """All tasks that a run is judged on."""
    return tuple(task for color in run_colors(config) for task in all_tasks(color))
