"""A small grid world with a gate to find; levels differ in their layout and in an uninformative background."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from pisces.errors import UserError

ROWS, COLUMNS, STEPS = 9, 6, 20
"""Size of the grid, and the number of steps after which an episode is truncated."""
WALL = 1
"""The column of the wall."""
RIGHT, UP, DOWN = 0, 1, 2
STEP_COST, PROGRESS = 0.02, 0.1
"""Cost of every step, and reward of a step toward the goal; a step away costs as much."""
LEVEL_SEED = 7
"""Seed of the levels, used together with their number."""


class CrossingEnv(gym.Env[NDArray[np.uint8], np.int64]):
    """Walk along a wall to its gate, then through it to the right side.

    Actions: 0 right, 1 up, 2 down; a step into the wall or over the border does nothing, and behind the gate one can
    only go right, so each state has one optimal action. A level is given by the row of the gate, another row to start
    in, and the random colors of the background. Observations are color images, channels first, uint8
    [3, 9, 6], one pixel per cell: the wall white, its gate black, the walker red.

    Args:
        level: number of the level, at least 0; each level has its own random generator.
        contrast: brightest value of the background, 0 (black) to 255.
        render_mode: must be None; observations are images already.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium's convention)

    def __init__(self, level: int = 0, contrast: int = 60, render_mode: None = None) -> None:
        if render_mode is not None:
            raise UserError(f"expected render_mode None, got {render_mode!r}")
        if level < 0 or not 0 <= contrast <= 255:
            raise UserError(f"expected level >= 0 and contrast in [0, 255], got {level} and {contrast}")
        self.observation_space = gym.spaces.Box(0, 255, (3, ROWS, COLUMNS), np.uint8)
        self.action_space = gym.spaces.Discrete(3)
        rng = np.random.default_rng([LEVEL_SEED, level])
        self.gate = int(rng.integers(ROWS))
        self.start = int((self.gate + rng.integers(1, ROWS)) % ROWS)
        self._background = rng.integers(0, contrast + 1, (3, ROWS, COLUMNS)).astype(np.uint8)
        self._background[:, :, WALL] = 255
        self._background[:, self.gate, WALL] = 0
        self.row, self.column, self.time = self.start, 0, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Puts the walker back to the start; there are no options."""
        if options:
            raise UserError(f"expected no options, got {', '.join(map(str, options))}")
        super().reset(seed=seed)
        self.row, self.column, self.time = self.start, 0, 0
        return self._observe(), {}

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """Moves the walker, if nothing is in the way."""
        if np.ndim(action) or action not in (RIGHT, UP, DOWN):
            raise UserError(f"expected action 0 (right), 1 (up) or 2 (down), got {action!r}")
        before = self.distance
        row = self.row + {UP: -1, DOWN: 1}.get(int(action), 0)
        column = self.column + (int(action) == RIGHT)
        if 0 <= row < ROWS and (column < WALL or row == self.gate):
            self.row, self.column = row, column
        self.time += 1
        solved = self.column == COLUMNS - 1
        reward = PROGRESS * (before - self.distance) - STEP_COST + float(solved)
        return self._observe(), reward, solved, self.time >= STEPS, {"solved": solved}

    @property
    def distance(self) -> int:
        """Number of steps to the right side."""
        return COLUMNS - 1 - self.column + abs(self.row - self.gate)

    def optimal_action(self) -> int:
        """Returns the one action that brings the walker nearer to the goal."""
        if self.row != self.gate:
            return DOWN if self.row < self.gate else UP
        return RIGHT

    def _observe(self) -> NDArray[np.uint8]:
        image = self._background.copy()
        image[:, self.row, self.column] = (255, 0, 0)
        return image
