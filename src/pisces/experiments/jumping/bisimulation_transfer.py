"""Bisimulation transfer: a baseline of Table 1 that learns nothing (Castro & Precup, 2010).

In each state of a test task the agent takes the optimal action of the nearest state of any training task, by the exact
bisimulation metric between their MDPs. It needs the dynamics and rewards of the test tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.envs.jumping import JumpingTask, all_tasks
from pisces.envs.jumping.tasks import DECISIONS
from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.jumping.mdp import jumping_mdp
from pisces.experiments.jumping.results import task_results
from pisces.experiments.jumping.tasks import run_split
from pisces.metrics import bisimulation_metric, optimal_policy


@cache
def _nearest(test_position: int, train_position: int, discount: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """For each walking state of the test task, the distance to the nearest training state and that state's action."""
    test, train = jumping_mdp(test_position), jumping_mdp(train_position)
    states = np.arange(train.mdp.n_states)
    pairs = np.stack([np.repeat(states, len(test.floor)), np.tile(test.floor, len(states))], axis=1)
    distance = bisimulation_metric(train.mdp, test.mdp, discount=discount, pairs=pairs).distance
    distance = distance.reshape(len(states), len(test.floor))
    actions = optimal_policy(train.mdp, discount).argmax(axis=1)
    nearest = distance.argmin(axis=0)
    return distance[nearest, np.arange(len(test.floor))], actions[nearest]


def transferred_actions(test: JumpingTask, train: Iterable[JumpingTask], discount: float) -> NDArray[np.int64]:
    """Actions copied from the nearest training states, in the test task's walking states; the first of equals."""
    positions = list(dict.fromkeys(task.obstacle_position for task in train))
    found = [_nearest(test.obstacle_position, position, discount) for position in positions]
    best = np.argmin([distance for distance, _ in found], axis=0)
    return np.array([found[task][1][state] for state, task in enumerate(best)])


def transfer_result(config: JumpingConfig) -> dict[str, Any]:
    """Returns the entries of the result file of a config."""
    split, tasks = run_split(config, "white"), all_tasks()
    actions = [transferred_actions(task, split.train, config.settings.discount)[:DECISIONS] for task in tasks]
    return task_results(config, tasks, actions)
