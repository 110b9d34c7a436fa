"""Greedy episodes of an agent on many levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

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


def solved_tasks(family: str, tasks: Sequence[Task], act: BatchPolicy) -> NDArray[np.bool_]:
    """Plays one greedy episode per task, all at once; returns which reach the goal, [n].

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
    for _ in range(MOST_STEPS):
        frames = np.stack([renderers[index].frame(states[index]) for index in running])
        still_running = []
        for index, action in zip(running, act(frames), strict=True):
            outcome = renderers[index].dynamics.step(states[index], int(action))
            solved[index] = outcome.reward > 0
            if not outcome.terminated and outcome.state not in visited[index]:
                states[index] = outcome.state
                visited[index].add(outcome.state)
                still_running.append(index)
        running = still_running
        if not running:
            break
    return solved


def solved_shares(config: MiniGridConfig, act: BatchPolicy, test: bool = False) -> dict[str, float]:
    """Share of tasks that a greedy agent solves, in percent: training and validation tasks, and test tasks if asked."""
    groups = {"train": training_tasks(config), "validation": unseen_tasks(config, test=False)}
    groups |= {"test": unseen_tasks(config, test=True)} if test else {}
    return {
        f"{name}_solved_percent": round(100 * float(solved_tasks(config.family, tasks, act).mean()), 4)
        for name, tasks in groups.items()
    }


def evaluate(policy: MiniGridPolicy, config: MiniGridConfig) -> Evaluation:
    """Evaluates a cloned policy on training, validation and test tasks."""
    shares = solved_shares(config, policy.act_all, test=True)
    rows = tuple((name.removesuffix("_solved_percent"), f"{value:.1f}") for name, value in shares.items())
    return Evaluation(("tasks", "solved (%)"), rows, shares)
