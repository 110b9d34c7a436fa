"""Greedy episodes of an agent on many levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pisces.experiments.experiment import Evaluation
from pisces.experiments.minigrid.config import MiniGridConfig
from pisces.experiments.minigrid.tasks import Task, make_renderer, training_tasks, unseen_tasks
from pisces.trajectories import BatchPolicy

if TYPE_CHECKING:
    from pisces.experiments.minigrid.policy import MiniGridPolicy

MOST_STEPS = 100
"""Steps after which an episode counts as failed."""


@dataclass(frozen=True)
class Episodes:
    """One greedy episode per task."""

    solved: NDArray[np.bool_]
    """Which reach the goal, [n]."""
    actions: tuple[str, ...]
    """The actions of each episode, a digit per step."""


def play_tasks(family: str, tasks: Sequence[Task], act: BatchPolicy) -> Episodes:
    """Plays one greedy episode per task, all at once.

    The agent's action depends on the state alone, so an episode that returns to a state never ends and is stopped.

    Args:
        family: the family of the levels.
        tasks: the tasks.
        act: maps frames [n, H, W, 3] to greedy actions [n].
    """
    renderers = [make_renderer(family, task) for task in tasks]
    states = [renderer.dynamics.start for renderer in renderers]
    visited = [{state} for state in states]
    solved, running = np.zeros(len(tasks), dtype=bool), list(range(len(tasks)))
    actions = [""] * len(tasks)
    for _ in range(MOST_STEPS):
        frames = np.stack([renderers[index].frame(states[index]) for index in running])
        still_running = []
        for index, action in zip(running, act(frames), strict=True):
            actions[index] += str(int(action))
            outcome = renderers[index].dynamics.step(states[index], int(action))
            solved[index] = outcome.reward > 0
            if not outcome.terminated and outcome.state not in visited[index]:
                states[index] = outcome.state
                visited[index].add(outcome.state)
                still_running.append(index)
        running = still_running
        if not running:
            break
    return Episodes(solved, tuple(actions))


def solved_tasks(family: str, tasks: Sequence[Task], act: BatchPolicy) -> NDArray[np.bool_]:
    """Returns which tasks a greedy agent solves, [n]; see `play_tasks`."""
    return play_tasks(family, tasks, act).solved


def solved_shares(config: MiniGridConfig, act: BatchPolicy) -> dict[str, float]:
    """Share of training and validation tasks that a greedy agent solves, in percent."""
    groups = {"train": training_tasks(config), "validation": unseen_tasks(config, test=False)}
    return {
        f"{name}_solved_percent": _percent(solved_tasks(config.family, tasks, act)) for name, tasks in groups.items()
    }


def final_results(config: MiniGridConfig, act: BatchPolicy) -> dict[str, Any]:
    """The shares of all tasks solved, and the episodes on test tasks: [level, theme], actions, solved or not."""
    tasks = unseen_tasks(config, test=True)
    played = play_tasks(config.family, tasks, act)
    episodes = {
        "tasks": [[task.level, task.theme] for task in tasks],
        "actions": list(played.actions),
        "solved": "".join(str(int(one)) for one in played.solved),
    }
    return {**solved_shares(config, act), "test_solved_percent": _percent(played.solved), "episodes": episodes}


def _percent(solved: NDArray[np.bool_]) -> float:
    return round(100 * float(solved.mean()), 4)


def evaluate(policy: MiniGridPolicy, config: MiniGridConfig) -> Evaluation:
    """Evaluates a cloned policy on training, validation and test tasks."""
    found = final_results(config, policy.act_all)
    shares = {name: value for name, value in found.items() if name.endswith("_percent")}
    rows = tuple((name.removesuffix("_solved_percent"), f"{value:.1f}") for name, value in shares.items())
    return Evaluation(("tasks", "solved (%)"), rows, shares)
