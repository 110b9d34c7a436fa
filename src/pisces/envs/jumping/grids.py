"""Grids of jumping tasks: which of the 286 tasks train, validate and test (Fig. 4 and App. F, arXiv:2101.05265)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from pisces.envs.jumping.tasks import Color, JumpingTask
from pisces.errors import UserError, unknown_name
from pisces.validation import check_seed

Grid = Literal["wide", "narrow", "random"]

GRID_POSITIONS = range(20, 46)
GRID_HEIGHTS = range(10, 21)
TRAINING_TASKS = 18


@dataclass(frozen=True)
class TaskSplit:
    """The tasks of one grid; all three tuples are sorted and hold distinct tasks."""

    train: tuple[JumpingTask, ...]
    """Tasks whose optimal episodes the agent learns from."""
    validation: tuple[JumpingTask, ...]
    """The unseen neighbors of the training tasks, one step away in position or height: for choosing settings."""
    heldout: tuple[JumpingTask, ...]
    """Tasks that are neither training nor validation tasks."""

    @property
    def test(self) -> tuple[JumpingTask, ...]:
        """All tasks outside training, validation included: what the paper reports."""
        return tuple(sorted(self.validation + self.heldout))


def all_tasks(color: Color = "white") -> tuple[JumpingTask, ...]:
    """Returns the 286 tasks in order of position, then height."""
    return tuple(JumpingTask(p, h, color) for p in GRID_POSITIONS for h in GRID_HEIGHTS)


def split_tasks(grid: Grid, seed: int = 0, color: Color = "white", training_tasks: int = TRAINING_TASKS) -> TaskSplit:
    """Splits the 286 tasks.

    Args:
        grid: "wide" (positions 20, 25, ..., 45 and heights 10, 15, 20), "narrow" (28, 30, ..., 38 and 13, 15, 17) or
            "random" (positions and heights drawn independently, with replacement, so tasks may repeat).
        seed: draws the random grid; the others do not depend on it.
        color: color of all tasks.
        training_tasks: how many training tasks to keep; fewer than 18 are spread evenly over the grid's list
            without repetitions.
    """
    check_seed(seed)
    if training_tasks < 1:
        raise UserError(f"expected at least one training task, got {training_tasks}")
    chosen = list(dict.fromkeys(_training_cells(grid, seed)))
    if training_tasks < len(chosen):
        chosen = [chosen[i] for i in np.linspace(0, len(chosen) - 1, training_tasks).round().astype(int)]
    train = sorted({JumpingTask(p, h, color) for p, h in chosen})
    neighbors = {
        (task.obstacle_position + dp, task.floor_height + dh)
        for task in train
        for dp, dh in ((-1, 0), (1, 0), (0, -1), (0, 1))
    }
    unseen = [task for task in all_tasks(color) if task not in train]
    near = [task for task in unseen if (task.obstacle_position, task.floor_height) in neighbors]
    return TaskSplit(tuple(train), tuple(near), tuple(task for task in unseen if task not in near))


def _training_cells(grid: str, seed: int) -> list[tuple[int, int]]:
    if grid == "wide":
        return [(p, h) for p in range(20, 46, 5) for h in range(10, 21, 5)]
    if grid == "narrow":
        return [(p, h) for p in range(28, 39, 2) for h in range(13, 18, 2)]
    if grid == "random":
        rng = np.random.default_rng([seed, 18])
        positions = rng.choice(GRID_POSITIONS, TRAINING_TASKS)
        heights = rng.choice(GRID_HEIGHTS, TRAINING_TASKS)
        return [(int(p), int(h)) for p, h in zip(positions, heights, strict=True)]
    raise unknown_name("grid", grid, get_args(Grid))
