"""What a result file of the jumping task holds: which tasks are solved, and by which actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.envs.jumping.grids import all_tasks
from pisces.envs.jumping.tasks import AGENT_WIDTH, JumpingTask
from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.jumping.tasks import is_solved, run_colors, run_split, split_percentages

TASK_KEYS = ("obstacle_position", "floor_height", "color")


def solved_tasks(tasks: Sequence[JumpingTask], actions: Sequence[NDArray[np.int64]]) -> dict[JumpingTask, bool]:
    """Returns which tasks greedy actions in the floor's states solve."""
    return {task: is_solved(task, chosen) for task, chosen in zip(tasks, actions, strict=True)}


def solved_percentages(config: JumpingConfig, solved: Mapping[JumpingTask, bool]) -> dict[str, float]:
    """Returns the percentages of solved tasks, by part of the grid and color, under the names of result files."""
    percentages: dict[str, float] = {}
    for color in run_colors(config):
        prefix = f"{color}_" if config.colors else ""
        percentages |= split_percentages(run_split(config, color), solved, prefix)
    return percentages


def task_results(
    config: JumpingConfig, tasks: Sequence[JumpingTask], actions: Sequence[NDArray[np.int64]]
) -> dict[str, Any]:
    """Returns the entries of a result file that depend on the tasks and the agent's actions in them."""
    solved = solved_tasks(tasks, actions)
    return {
        **solved_percentages(config, solved),
        "tasks": [[task.obstacle_position, task.floor_height, task.color] for task in tasks],
        "train_tasks": [asdict(task) for color in run_colors(config) for task in run_split(config, color).train],
        "solved": "".join(str(int(solved[task])) for task in tasks),
        "actions": ["".join(map(str, chosen)) for chosen in actions],
    }


@cache
def task_rows(colors: bool) -> list[list[Any]]:
    """Returns the tasks of a result with or without colors, as result files list them: [position, height, color]."""
    chosen = ("red", "green") if colors else ("white",)
    return [[task.obstacle_position, task.floor_height, color] for color in chosen for task in all_tasks()]


@cache
def task_places(colors: bool) -> Mapping[tuple[int, int, str], int]:
    """Returns the place of each task in the list of `task_rows`."""
    return {(position, height, color): n for n, (position, height, color) in enumerate(task_rows(colors))}


def problem(result: Mapping[str, Any], config: JumpingConfig) -> str | None:
    """Says why a stored result cannot be shown, None if it can."""
    lists = [result.get(name) for name in ("tasks", "actions", "train_tasks")]
    if not all(isinstance(value, list) for value in lists) or not isinstance(result.get("solved"), str):
        return "tasks, solved, actions or train_tasks is missing"
    expected = task_rows(config.colors)
    if result["tasks"] != expected:
        return f"it lists other tasks than the {len(expected)} of this version"
    lengths = [position - AGENT_WIDTH + 1 for position, _, _ in expected]
    if set(map(type, result["actions"])) != {str}:
        return "actions must be strings of 0 and 1"
    if len(result["solved"]) != len(expected) or list(map(len, result["actions"])) != lengths:
        return "it needs one solved flag per task and one action per state before its obstacle"
    if set(result["solved"]) - set("01") or set("".join(result["actions"])) - set("01"):
        return "solved and actions must be strings of 0 and 1"
    if not all(isinstance(row, dict) and _is_known(row, config.colors) for row in result["train_tasks"]):
        return "train_tasks need obstacle_position, floor_height and color of tasks in the list"
    return None


def _is_known(row: Mapping[str, Any], colors: bool) -> bool:
    key = tuple(row.get(name) for name in TASK_KEYS)
    return all(isinstance(value, int | str) for value in key) and key in task_places(colors)
