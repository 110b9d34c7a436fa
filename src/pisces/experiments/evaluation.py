"""A trained agent, from its run folder, on any tasks: what `pisces evaluate` prints."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pisces.agents.draws import evaluation_kernels
from pisces.agents.linear_policy import LinearPolicy
from pisces.agents.loading import ControlPolicy, JumpingPolicy, load
from pisces.envs.jumping import JUMP, JumpingTask
from pisces.envs.lqr import make_distractors, make_system, policy_cost
from pisces.errors import UserError
from pisces.experiments import distracting, jumping
from pisces.experiments.jumping_data import TaskEvaluator, evaluated_tasks, is_solved, run_colors, run_split
from pisces.experiments.store import CONFIG, write_atomically

EPISODES = 10
"""Episodes per kind of video, or unseen environments of linear control, unless told otherwise."""
FRESH = 10**9
"""Evaluations have the number of an iteration; from this one on their kernels are none that training has met."""
PARTS = ("training", "validation", "held out")


@dataclass(frozen=True)
class Evaluation:
    """How an agent did."""

    header: tuple[str, ...]
    """Columns of the table."""
    rows: tuple[tuple[str, ...], ...]
    """The table."""
    values: Mapping[str, Any]
    """All numbers, as JSON values."""

    def write(self, out: Path) -> Path:
        """Writes the numbers to evaluation.json in a folder."""
        if out.exists() and not out.is_dir():
            raise UserError(f"expected an output folder, got {str(out)!r}, which is a file")
        out.mkdir(parents=True, exist_ok=True)
        path = out / "evaluation.json"
        write_atomically(path, json.dumps(self.values, indent=1, sort_keys=True, allow_nan=False) + "\n")
        return path


def evaluate_run(
    folder: Path, tasks: Sequence[str] = (), episodes: int | None = None, draws: int | None = None
) -> Evaluation:
    """Evaluates the agent of a run folder.

    Args:
        folder: the run folder, with its config and checkpoint.
        tasks: of a jumping run, tasks as "obstacle,floor" or "obstacle,floor,color"; all tasks of the study if empty.
        episodes: of a control run, episodes on training and unseen videos each; of a linear one, unseen environments.
        draws: of a jumping run with RandConv, evaluations of all tasks, each with random kernels of its own.
    """
    if episodes is not None and episodes < 1:
        raise UserError(f"expected at least 1 episode, got {episodes}")
    if draws is not None and draws < 1:
        raise UserError(f"expected at least 1 draw, got {draws}")
    policy = load(folder)
    config = json.loads((folder / CONFIG).read_text())
    if isinstance(policy, JumpingPolicy):
        if episodes is not None:
            raise UserError("expected tasks of a jumping run, whose episodes are all alike, got --episodes")
        return _jumping(policy, jumping.config_from_dict(config), tasks, draws)
    if draws is not None:
        raise UserError("expected --draws for a jumping run with RandConv only; --episodes N sets how many are played")
    if tasks:
        raise UserError(
            f"expected tasks for a jumping run only, got {tasks[0]!r}; --episodes N sets how many are played"
        )
    if isinstance(policy, ControlPolicy):
        return _control(policy, distracting.config_from_dict(config), episodes or EPISODES)
    return _linear(policy, config, episodes or EPISODES)


def parse_task(text: str) -> JumpingTask:
    """Reads a jumping task, written as "25,10" or "45,20,red": obstacle, floor, color."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) not in (2, 3) or not all(part.isdecimal() for part in parts[:2]):
        raise UserError(f"expected a task as obstacle,floor or obstacle,floor,color, got {text!r}")
    return JumpingTask(int(parts[0]), int(parts[1]), *parts[2:])  # type: ignore[arg-type]


def _jumping(
    policy: JumpingPolicy, config: jumping.JumpingConfig, named: Sequence[str], draws: int | None
) -> Evaluation:
    colors = run_colors(config)
    tasks = tuple(parse_task(text) for text in named) or evaluated_tasks(config)
    for task in tasks:
        if task.color not in colors:
            raise UserError(f"expected tasks of the run's colours, {' or '.join(colors)}, got a {task.color} one")
    # Many draws need no more states than decide; a single evaluation also tells of jumps that come too late.
    evaluator = TaskEvaluator(tasks, torch.device("cpu"), beyond_jump=draws is None)
    if draws is not None:
        if named:
            raise UserError("expected tasks or draws, got both; draws are of all tasks")
        return _by_draw(policy, config, evaluator, draws)
    rows = _task_rows(evaluator, policy, config)
    values = {"config": config.as_dict(), "tasks": rows}
    return _single_tasks(rows, values) if named else _by_part(rows, values)


def _task_rows(evaluator: TaskEvaluator, policy: JumpingPolicy, config: jumping.JumpingConfig) -> list[dict[str, Any]]:
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
    header = ("obstacle", "floor", "colour", "part", "solved", "first jump", "right jump")
    words = {"None": "never", "True": "yes", "False": "no"}
    shown = tuple(tuple(words.get(str(value), str(value)) for value in row.values()) for row in rows)
    return Evaluation(header, shown, values)


def _by_part(rows: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> Evaluation:
    parts = _solved_by_part(rows)
    percentages = {" ".join(key): 100 * float(np.mean(flags)) for key, flags in parts.items()}
    shown = [
        (*key, str(len(flags)), str(sum(flags)), f"{percentages[' '.join(key)]:.1f}") for key, flags in parts.items()
    ]
    header = ("colour", "part", "tasks", "solved", "%")
    return Evaluation(header, tuple(shown), {**values, "solved_percent": percentages})


def _by_draw(policy: JumpingPolicy, config: jumping.JumpingConfig, evaluator: TaskEvaluator, draws: int) -> Evaluation:
    if config.settings.augmentation == "none":
        raise UserError("expected a run with RandConv, whose evaluations are random, got --draws for one without")
    channels = 3 if config.colors else 1
    percentages: dict[tuple[str, str], list[float]] = {}
    counts: dict[tuple[str, str], int] = {}
    for number in range(FRESH, FRESH + draws):
        kernels = evaluation_kernels(config.settings, config.seed, number, channels)
        rows = _task_rows(evaluator, JumpingPolicy(policy.network, None, kernels), config)
        for key, flags in _solved_by_part(rows).items():
            percentages.setdefault(key, []).append(100 * float(np.mean(flags)))
            counts[key] = len(flags)
    shown = [(*key, str(counts[key]), *_spread(values, ".1f")) for key, values in percentages.items()]
    named = {" ".join(key): values for key, values in percentages.items()}
    header = ("colour", "part", "tasks", "draws", "mean %", "smallest", "largest")
    return Evaluation(header, tuple(shown), {"config": config.as_dict(), "solved_percent": named})


def _solved_by_part(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], list[bool]]:
    """Whether the tasks of each colour and part were solved; the last two parts together are the unseen tasks."""
    parts: dict[tuple[str, str], list[bool]] = {}
    for color in dict.fromkeys(row["color"] for row in rows):
        for part in PARTS:
            flags = [row["solved"] for row in rows if (row["color"], row["part"]) == (color, part)]
            if flags:
                parts[color, part] = flags
        parts[color, "unseen, both"] = [flag for part in PARTS[1:] for flag in parts.get((color, part), [])]
    return parts


def _control(policy: ControlPolicy, config: distracting.DistractingConfig, episodes: int) -> Evaluation:
    # dm_control takes seconds to import, which the other experiments need not wait for.
    from pisces.experiments.distracting_data import TEST, TRAIN, evaluate, make_env

    returns: dict[str, list[float]] = {}
    for videos, stream in (("train", TRAIN), ("test", TEST)):
        env = make_env(config, videos)
        returns[videos] = evaluate(config, env, policy, episodes, stream)
        env.close()
    names = {"train": "training", "test": "unseen"}
    rows = [(names[videos], *_spread(values, ".1f")) for videos, values in returns.items()]
    values = {"config": config.as_dict(), **{f"{name}_returns": numbers for name, numbers in returns.items()}}
    return Evaluation(("videos", "episodes", "mean return", "smallest", "largest"), tuple(rows), values)


def _linear(policy: LinearPolicy, config: Mapping[str, Any], environments: int) -> Evaluation:
    system, size = make_system(config["seed"]), int(config["distractors"])
    matrix, errors = policy.matrix, []
    for number in range(environments):
        cost = policy_cost(system, make_distractors(config["seed"], size, "test", number), matrix)
        errors.append(abs(cost - system.oracle_cost))
    finite = [error for error in errors if np.isfinite(error)]
    if not finite:
        raise UserError(f"expected a stable closed loop in some environment, got none in {environments}")
    row = (str(environments), *_spread(finite, ".4f"), str(environments - len(finite)))
    values = {"config": dict(config), "errors": [error if np.isfinite(error) else None for error in errors]}
    header = ("unseen environments", "stable", "mean error", "smallest", "largest", "unstable")
    return Evaluation(header, (row,), {**values, "oracle_cost": system.oracle_cost})


def _spread(values: Sequence[float], form: str) -> tuple[str, str, str, str]:
    functions: tuple[Callable[[Sequence[float]], Any], ...] = (np.mean, min, max)
    mean, low, high = (f"{float(function(values)):{form}}" for function in functions)
    return str(len(values)), mean, low, high
