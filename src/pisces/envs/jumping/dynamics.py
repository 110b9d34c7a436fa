"""Dynamics of the jumping task, shared by the environment, the finite MDP and the report page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pisces.envs.jumping.tasks import (
    AGENT_WIDTH,
    DECISIONS,
    JUMP,
    OBSTACLE_HEIGHT,
    OBSTACLE_WIDTH,
    RIGHT,
    SCREEN,
    JumpingTask,
    optimal_actions,
)

JUMP_HEIGHT = 15
"""The agent rises until it is above this height, then falls."""


class JumpingState(NamedTuple):
    """State of an episode; the default is the start."""

    x: int = 0
    """Left edge of the agent; it grows by 1 at each step."""
    height: int = 0
    """Height of the agent above the floor."""
    vertical_speed: int = 0
    """1 going up, -1 going down, 0 on the floor."""
    struck: Literal["", "floor", "air"] = ""
    """Where the agent was when it struck the obstacle; empty if it has not struck it."""


class Transition(NamedTuple):
    """Result of one step."""

    state: JumpingState
    """The next state."""
    reward: float
    """The reward of the step."""
    collided: bool
    """Whether the agent struck the obstacle in this step."""
    terminated: bool
    """Whether the episode ends."""


def transition(task: JumpingTask, state: JumpingState, action: int) -> Transition:
    """Moves one pixel to the right, and up or down during a jump; an action in the air is ignored.

    The reward is 1 per step and 101 for the step that reaches the right edge. Striking a white or red obstacle gives
    -1 and ends the episode. A green obstacle can be struck once, for a reward of 99 on the floor and of -1 in the air,
    and the episode continues.
    """
    x, height, speed, struck = state
    if height == 0:
        speed = int(action == JUMP)
    elif height > JUMP_HEIGHT:
        speed = -1
    x, height = x + 1, height + speed
    beside = task.obstacle_position - AGENT_WIDTH < x < task.obstacle_position + OBSTACLE_WIDTH
    collided = beside and height < OBSTACLE_HEIGHT and not struck
    if collided:
        struck = "air" if height else "floor"
    green, exited = task.color == "green", x + AGENT_WIDTH > SCREEN
    reward = 1.0 + 100.0 * exited
    if collided:
        reward = 99.0 if green and height == 0 else -1.0
    following = JumpingState(x, height, speed if height else 0, struck)
    return Transition(following, reward, collided, exited or (collided and not green))


def is_success(task: JumpingTask, state: JumpingState) -> bool:
    """Whether a final state has reached the right edge as the color asks: green struck on the floor, others never."""
    return state.x + AGENT_WIDTH > SCREEN and state.struck == ("floor" if task.color == "green" else "")


@dataclass(frozen=True)
class Episode:
    """One episode of T steps."""

    states: tuple[JumpingState, ...]
    """The T + 1 states, the final one included."""
    rewards: tuple[float, ...]
    """The T rewards."""


def play(task: JumpingTask, actions: Iterable[int]) -> Episode:
    """Plays actions from the start until the episode ends; after the last action the agent goes right."""
    states, rewards, terminated = [JumpingState()], [], False
    remaining = iter(actions)
    while not terminated:
        following, reward, _, terminated = transition(task, states[-1], next(remaining, RIGHT))
        states.append(following)
        rewards.append(reward)
    return Episode(tuple(states), tuple(rewards))


@cache
def optimal_episode(task: JumpingTask) -> Episode:
    """Plays the optimal episode."""
    return play(task, optimal_actions(task).tolist())


def optimal_heights(task: JumpingTask) -> NDArray[np.int64]:
    """Returns the agent's height above the floor at each step of the optimal episode, [56]; its x equals the step."""
    return np.array([state.height for state in optimal_episode(task).states[:DECISIONS]], dtype=np.int64)


def optimal_rewards(task: JumpingTask) -> NDArray[np.float64]:
    """Returns the rewards of the optimal episode, [56]."""
    return np.array(optimal_episode(task).rewards)
