"""The rules of MiniGrid on encoded grids."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pisces.envs.minigrid.families import FORWARD, LEFT, PICKUP, RIGHT, TOGGLE
from pisces.envs.minigrid.levels import Level

EMPTY, WALL, DOOR, KEY, GOAL, LAVA = 1, 2, 4, 5, 8, 9
"""Objects in MiniGrid's encoding."""
OPEN, CLOSED, LOCKED = 0, 1, 2
"""States of doors in MiniGrid's encoding."""
STEPS = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Step forward in each direction: right, down, left, up."""

State = tuple[int, ...]
"""Column, row, direction, whether the key is carried, and the state of each door."""


@dataclass(frozen=True)
class Outcome:
    """What an action leads to."""

    state: State
    """The next state."""
    reward: float
    """1 for reaching the goal, otherwise 0."""
    terminated: bool
    """Whether the goal or lava was reached."""


@dataclass(frozen=True, eq=False)
class Dynamics:
    """The rules of one level.

    They are those of the package `minigrid`, except that the reward of the goal does not depend on the time, which is
    no part of the state, and that nothing can be dropped. A level has at most one key.
    """

    level: Level
    """The level."""

    @cached_property
    def doors(self) -> tuple[tuple[int, int], ...]:
        """The doors' columns and rows."""
        return tuple((int(x), int(y)) for x, y in np.argwhere(self.level.grid[:, :, 0] == DOOR))

    @cached_property
    def objects(self) -> list[list[int]]:
        """The object of each cell at the start, by column and row."""
        found: list[list[int]] = self.level.grid[:, :, 0].tolist()
        return found

    @cached_property
    def start(self) -> State:
        """The first state."""
        return (*self.level.start, 0, *(int(self.level.grid[x, y, 2]) for x, y in self.doors))

    def step(self, state: State, action: int) -> Outcome:
        """Takes an action, given by its number in the family."""
        x, y, direction, carrying, *doors = state
        move = self.level.family.actions[action]
        if move in (LEFT, RIGHT):
            direction = (direction + (1 if move == RIGHT else -1)) % 4
            return Outcome((x, y, direction, *state[3:]), 0.0, False)
        ahead = (x + STEPS[direction][0], y + STEPS[direction][1])
        front = self.objects[ahead[0]][ahead[1]]
        if move == FORWARD and self._passable(state, ahead, front):
            return Outcome((*ahead, *state[2:]), float(front == GOAL), front in (GOAL, LAVA))
        if move == PICKUP and front == KEY and not carrying:
            return Outcome((x, y, direction, 1, *doors), 0.0, False)
        if move == TOGGLE and front == DOOR:
            number = self.doors.index(ahead)
            doors[number] = _toggled(doors[number], bool(carrying))
            return Outcome((x, y, direction, carrying, *doors), 0.0, False)
        return Outcome(state, 0.0, False)

    def _passable(self, state: State, cell: tuple[int, int], front: int) -> bool:
        if front == DOOR:
            return state[4 + self.doors.index(cell)] == OPEN
        return front in (EMPTY, GOAL, LAVA) or (front == KEY and bool(state[3]))

    def grid(self, state: State) -> NDArray[np.uint8]:
        """Returns the encoded grid in a state, [width, height, 3], without the agent."""
        grid = self.level.grid.copy()
        for (x, y), door in zip(self.doors, state[4:], strict=True):
            grid[x, y, 2] = door
        if state[3]:
            grid[grid[:, :, 0] == KEY] = (EMPTY, 0, 0)
        return grid


def _toggled(door: int, key: bool) -> int:
    if door == LOCKED:
        return OPEN if key else LOCKED
    return CLOSED if door == OPEN else OPEN
