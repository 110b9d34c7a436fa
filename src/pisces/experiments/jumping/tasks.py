"""The tasks of a run: which train, which are evaluated, and when one counts as solved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pisces.envs.jumping.grids import TaskSplit, all_tasks, split_tasks
from pisces.envs.jumping.tasks import JUMP, Color, JumpingTask
from pisces.experiments.jumping.config import JumpingConfig


def run_colors(config: JumpingConfig) -> tuple[Color, ...]:
    """The colors of the obstacles that a run trains with and is evaluated on."""
    return ("red", "green") if config.colors else ("white",)


def run_split(config: JumpingConfig, color: Color) -> TaskSplit:
    """The training, validation and held-out tasks of a run."""
    return split_tasks(config.grid, config.seed, color, config.training_tasks)


def deciding_states(task: JumpingTask) -> int:
    """How many states decide whether a task is solved: up to the jump, or up to striking a green obstacle."""
    return task.steps_to_obstacle if task.color == "green" else task.jump_step + 1


def is_solved(task: JumpingTask, actions: NDArray[np.int64]) -> bool:
    """Whether greedy actions in the floor's states are optimal in every state that decides."""
    deciding = actions[: deciding_states(task)]
    jumps = np.flatnonzero(deciding == JUMP)
    expected = [] if task.color == "green" else [task.jump_step]
    return jumps.tolist() == expected


def solved_percent(tasks: Sequence[JumpingTask], solved: Mapping[JumpingTask, bool]) -> float:
    """Percentage of the given tasks that are solved."""
    return 100 * sum(solved[task] for task in tasks) / len(tasks) if tasks else 0.0


def split_percentages(split: TaskSplit, solved: Mapping[JumpingTask, bool], prefix: str = "") -> dict[str, float]:
    """Percentages of solved training, validation, test and held-out tasks, under the names of result files."""
    parts = {"train": split.train, "validation": split.validation, "test": split.test, "heldout": split.heldout}
    return {f"{prefix}{name}_solved_percent": solved_percent(tasks, solved) for name, tasks in parts.items()}


def evaluated_tasks(config: JumpingConfig) -> tuple[JumpingTask, ...]:
    """All tasks that a run is evaluated on."""
    return tuple(task for color in run_colors(config) for task in all_tasks(color))
