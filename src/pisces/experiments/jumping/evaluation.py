"""Evaluation of trained jumping agents on any tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from pisces.agents.imitation.kernels import evaluation_kernels
from pisces.envs.jumping.tasks import JUMP, JumpingTask
from pisces.errors import UserError
from pisces.experiments.experiment import Evaluation, spread
from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.jumping.data import TaskEvaluator
from pisces.experiments.jumping.policy import JumpingPolicy
from pisces.experiments.jumping.tasks import evaluated_tasks, is_solved, run_colors, run_split

FRESH = 10**9
"""Evaluations are numbered by iteration; from this number on their kernels are none that training has used."""
PARTS = ("training", "validation", "held out")


def evaluate(
    policy: JumpingPolicy, config: JumpingConfig, tasks: Sequence[str] | None = None, draws: int | None = None
) -> Evaluation:
    """Evaluates a policy.

    Args:
        policy: the trained agent.
        config: its run's config.
        tasks: tasks as "obstacle,floor" or "obstacle,floor,color"; None for all tasks of the experiment.
        draws: with RandConv, the number of evaluations of all tasks, each with its own random kernels.
    """
    if draws is not None:
        if tasks:
            raise UserError("--tasks and --draws exclude each other; --draws evaluates all tasks")
        return _by_draw(policy, config, draws)
    colors = run_colors(config)
    chosen = tuple(parse_task(text) for text in tasks or ()) or evaluated_tasks(config)
    for task in chosen:
        if task.color not in colors:
            raise UserError(f"the run was trained with {' and '.join(colors)} obstacles, got a {task.color} task")
    rows = _task_rows(TaskEvaluator(chosen, torch.device("cpu"), beyond_jump=True), policy, config)
    values = {"config": config.as_dict(), "tasks": rows}
    return _single_tasks(rows, values) if tasks else _by_part(rows, values)


def parse_task(text: str) -> JumpingTask:
    """Reads a jumping task, written as "25,10" or "45,20,red": obstacle, floor, color."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) not in (2, 3) or not all(part.isdecimal() for part in parts[:2]):
        raise UserError(f"a task is written as obstacle,floor or obstacle,floor,color, got {text!r}")
    return JumpingTask(int(parts[0]), int(parts[1]), *parts[2:])  # type: ignore[arg-type]


def _task_rows(evaluator: TaskEvaluator, policy: JumpingPolicy, config: JumpingConfig) -> list[dict[str, Any]]:
    splits = {color: run_split(config, color) for color in run_colors(config)}
    rows = []
    for task, chosen in zip(evaluator.tasks, evaluator.greedy_actions(policy), strict=True):
        split, jumps = splits[task.color], np.flatnonzero(chosen == JUMP)
        part = PARTS[0] if task in split.train else PARTS[1] if task in split.validation else PARTS[2]
        row = {"obstacle": task.obstacle_position, "floor": task.floor_height, "color": task.color, "part": part}
        first, needed = int(jumps[0]) if len(jumps) else None, None if task.color == "green" else task.jump_step
        rows.append({**row, "solved": is_solved(task, chosen), "jump": first, "optimal_jump": needed})
    return rows


def _single_tasks(rows: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> Evaluation:
    header = ("obstacle", "floor", "color", "part", "solved", "first jump", "right jump")
    words = {"None": "never", "True": "yes", "False": "no"}
    shown = tuple(tuple(words.get(str(value), str(value)) for value in row.values()) for row in rows)
    return Evaluation(header, shown, values)


def _by_part(rows: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> Evaluation:
    parts = _solved_by_part(rows)
    percentages = {" ".join(key): 100 * float(np.mean(flags)) for key, flags in parts.items()}
    shown = [
        (*key, str(len(flags)), str(sum(flags)), f"{percentages[' '.join(key)]:.1f}") for key, flags in parts.items()
    ]
    header = ("color", "part", "tasks", "solved", "%")
    return Evaluation(header, tuple(shown), {**values, "solved_percent": percentages})


def _by_draw(policy: JumpingPolicy, config: JumpingConfig, draws: int) -> Evaluation:
    settings = config.imitation
    if settings.augmentation == "none":
        raise UserError("--draws requires a run with RandConv; other evaluations are deterministic")
    evaluator = TaskEvaluator(evaluated_tasks(config), torch.device("cpu"))
    channels = 3 if config.colors else 1
    percentages: dict[tuple[str, str], list[float]] = {}
    counts: dict[tuple[str, str], int] = {}
    for number in range(FRESH, FRESH + draws):
        kernels = evaluation_kernels(settings, config.seed, number, channels)
        rows = _task_rows(evaluator, JumpingPolicy(policy.network, None, kernels), config)
        for key, flags in _solved_by_part(rows).items():
            percentages.setdefault(key, []).append(100 * float(np.mean(flags)))
            counts[key] = len(flags)
    shown = [(*key, str(counts[key]), *spread(values, ".1f")) for key, values in percentages.items()]
    named = {" ".join(key): values for key, values in percentages.items()}
    header = ("color", "part", "tasks", "draws", "mean %", "smallest", "largest")
    return Evaluation(header, tuple(shown), {"config": config.as_dict(), "solved_percent": named})


def _solved_by_part(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], list[bool]]:
    """Whether the tasks of each color and part were solved; the last two parts together are the unseen tasks."""
    parts: dict[tuple[str, str], list[bool]] = {}
    for color in dict.fromkeys(row["color"] for row in rows):
        for part in PARTS:
            flags = [row["solved"] for row in rows if (row["color"], row["part"]) == (color, part)]
            if flags:
                parts[color, part] = flags
        parts[color, "unseen, both"] = [flag for part in PARTS[1:] for flag in parts.get((color, part), [])]
    return parts
