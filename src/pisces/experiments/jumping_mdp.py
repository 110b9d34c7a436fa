"""The jumping task as a finite MDP, and the bisimulation metric between the states of two optimal episodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pisces.envs.jumping import (
    AGENT_WIDTH,
    JUMP,
    JUMP_HEIGHT,
    OBSTACLE_HEIGHT,
    OBSTACLE_WIDTH,
    SCREEN,
    JumpingTask,
    optimal_actions,
)
from pisces.errors import UserError
from pisces.metrics import FiniteMDP, bisimulation_metric

State = tuple[int, int, int]
"""Left edge, height above the floor, and vertical speed: 1 going up, -1 going down, 0 on the floor."""
START: State = (0, 0, 0)


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
    """The states that a white or red task can reach; the floor's height changes the picture, not the MDP."""
    index, queue, entries = {START: 0}, [START], []
    for state in queue:
        for action in (0, 1):
            following, reward = _step(state, action, obstacle_position)
            if following is not None and following not in index:
                index[following] = len(index)
                queue.append(following)
            entries.append((following, reward))
    terminal, size = len(index), len(index) + 1
    transitions, rewards = np.zeros((size, 2, size)), np.zeros((size, 2))
    for row, (following, reward) in enumerate(entries):
        transitions[row // 2, row % 2, terminal if following is None else index[following]] = 1
        rewards[row // 2, row % 2] = reward
    transitions[terminal, :, terminal] = 1
    walking = [index[x, 0, 0] for x in range(obstacle_position - AGENT_WIDTH + 1)]
    optimal = [index[state] for state in _optimal_states(obstacle_position)]
    return JumpingMDP(FiniteMDP(transitions, rewards), np.array(walking), np.array(optimal))


def _step(state: State, action: int, obstacle_position: int) -> tuple[State | None, float]:
    """One step: the next state, None if the episode ends, and the reward."""
    x, height, speed = state
    if height == 0:
        speed = int(action == JUMP)
    elif height > JUMP_HEIGHT:
        speed = -1
    x, height = x + 1, height + speed
    beside = obstacle_position - AGENT_WIDTH < x < obstacle_position + OBSTACLE_WIDTH
    if beside and height < OBSTACLE_HEIGHT:
        return None, -1.0
    if x + AGENT_WIDTH > SCREEN:
        return None, 101.0
    return (x, height, speed if height else 0), 1.0


def _optimal_states(obstacle_position: int) -> list[State]:
    states, following = [], START
    for action in optimal_actions(JumpingTask(obstacle_position, 0)):
        states.append(following)
        following = _step(following, int(action), obstacle_position)[0] or START
    return states


@cache
def episode_bisimulation(task_x: JumpingTask, task_y: JumpingTask, discount: float) -> NDArray[np.float64]:
    """Bisimulation metric (maximum over actions, whole MDPs) between the states of two optimal episodes, [56, 56]."""
    if "green" in (task_x.color, task_y.color):
        raise UserError("expected white or red tasks, which end when the obstacle is struck, got a green one")
    x, y = jumping_mdp(task_x.obstacle_position), jumping_mdp(task_y.obstacle_position)
    pairs = np.stack([np.repeat(x.episode, len(y.episode)), np.tile(y.episode, len(x.episode))], axis=1)
    distance = bisimulation_metric(x.mdp, y.mdp, discount, pairs=pairs).distance
    return distance[np.ix_(x.episode, y.episode)]
