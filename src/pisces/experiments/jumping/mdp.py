"""The jumping task as a finite MDP, and the bisimulation metric between the states of two optimal episodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pisces.envs.jumping.dynamics import JumpingState, optimal_episode, transition
from pisces.envs.jumping.tasks import DECISIONS, JUMP, RIGHT, JumpingTask
from pisces.errors import UserError
from pisces.metrics import FiniteMDP, bisimulation_metric


@dataclass(frozen=True)
class JumpingMDP:
    """The jumping task as a finite MDP."""

    mdp: FiniteMDP
    """Transitions and rewards; the last state is terminal."""
    floor: NDArray[np.int64]
    """The states in which the agent stands on the floor, by increasing x up to the one before the obstacle."""
    episode: NDArray[np.int64]
    """The states of the optimal episode, [56]: walking, in the air, landed."""


@cache
def jumping_mdp(obstacle_position: int) -> JumpingMDP:
    """Lists the states that a white or red task can reach; the floor's height changes the frames, not the MDP."""
    task, start = JumpingTask(obstacle_position, 0), JumpingState()
    index, queue, entries = {start: 0}, [start], []
    for state in queue:
        for action in (RIGHT, JUMP):
            following, reward, _, terminated = transition(task, state, action)
            if not terminated and following not in index:
                index[following] = len(index)
                queue.append(following)
            entries.append((following, reward))
    terminal, size = len(index), len(index) + 1
    transitions, rewards = np.zeros((size, 2, size)), np.zeros((size, 2))
    for row, (following, reward) in enumerate(entries):
        transitions[row // 2, row % 2, index.get(following, terminal)] = 1
        rewards[row // 2, row % 2] = reward
    transitions[terminal, :, terminal] = 1
    walking = [index[JumpingState(x)] for x in range(task.steps_to_obstacle)]
    optimal = [index[state] for state in optimal_episode(task).states[:DECISIONS]]
    return JumpingMDP(FiniteMDP(transitions, rewards), np.array(walking), np.array(optimal))


@cache
def episode_bisimulation(task_x: JumpingTask, task_y: JumpingTask, discount: float) -> NDArray[np.float64]:
    """Bisimulation metric (maximum over actions, whole MDPs) between the states of two optimal episodes, [56, 56]."""
    if "green" in (task_x.color, task_y.color):
        raise UserError("expected white or red tasks, which end when the obstacle is struck; got a green one")
    x, y = jumping_mdp(task_x.obstacle_position), jumping_mdp(task_y.obstacle_position)
    pairs = np.stack([np.repeat(x.episode, len(y.episode)), np.tile(y.episode, len(x.episode))], axis=1)
    distance = bisimulation_metric(x.mdp, y.mdp, discount=discount, pairs=pairs).distance
    return distance.reshape(len(x.episode), len(y.episode))
