"""Tasks of the jumping family, their sizes and their optimal actions (Sec. 5 and App. F, arXiv:2101.05265).

Lengths are pixels, heights are measured from the floor, and the screen is 60 x 60.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pisces.errors import UserError, unknown_name

Color = Literal["white", "red", "green"]

SCREEN = 60
AGENT_WIDTH, AGENT_HEIGHT = 5, 10
OBSTACLE_WIDTH, OBSTACLE_HEIGHT = 9, 10
JUMP_DISTANCE = 14
"""The optimal agent jumps when the obstacle's left edge is this far ahead of its own."""
DECISIONS = SCREEN - AGENT_WIDTH + 1
"""Decisions in a successful episode."""
OBSTACLE_POSITIONS = range(JUMP_DISTANCE, 48)
FLOOR_HEIGHTS = range(41)
RIGHT, JUMP = 0, 1


@dataclass(frozen=True, order=True)
class JumpingTask:
    """One task of the family."""

    obstacle_position: int
    """Left edge of the obstacle, 14..47."""
    floor_height: int
    """Height of the floor above the screen's lower edge, 0..40."""
    color: Color = "white"
    """Color of the obstacle. White and red obstacles must be jumped over; green ones must be struck."""

    def __post_init__(self) -> None:
        if self.color not in get_args(Color):
            raise unknown_name("color", self.color, get_args(Color))
        _check_range("obstacle_position", self.obstacle_position, OBSTACLE_POSITIONS)
        _check_range("floor_height", self.floor_height, FLOOR_HEIGHTS)

    @property
    def jump_step(self) -> int:
        """Step at which the optimal agent jumps; 56, after the last decision, for green obstacles."""
        return DECISIONS if self.color == "green" else self.obstacle_position - JUMP_DISTANCE

    @property
    def steps_to_obstacle(self) -> int:
        """Number of states that an agent that never jumps visits before it strikes the obstacle."""
        return self.obstacle_position - AGENT_WIDTH + 1


def optimal_actions(task: JumpingTask) -> NDArray[np.int64]:
    """Returns the actions of the optimal episode, [56]: jump once (never, if green), else right."""
    return np.asarray(np.arange(DECISIONS) == task.jump_step, dtype=np.int64)


def _check_range(name: str, value: int, allowed: range) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value not in allowed:
        raise UserError(f"expected {name} to be a whole number in {allowed[0]}..{allowed[-1]}, got {value!r}")
