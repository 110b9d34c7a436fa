"""The agent's 7 x 7 view of MiniGrid."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pisces.envs.minigrid.dynamics import DOOR, EMPTY, KEY, OPEN, WALL, Dynamics, State

SIZE = 7
"""Width and height of the view."""
_UNSEEN = (0, 0, 0)
_WALL = (WALL, 5, 0)


def egocentric_view(dynamics: Dynamics, state: State) -> NDArray[np.uint8]:
    """Returns what the agent sees, as MiniGrid encodes it, uint8 [7, 7, 3].

    The agent is in the middle of the last row and looks up; walls and closed doors hide what is behind them. A carried
    key is shown at the agent's place.
    """
    x, y, direction = state[:3]
    grid = dynamics.grid(state)
    padded = np.empty((grid.shape[0] + 2 * SIZE, grid.shape[1] + 2 * SIZE, 3), dtype=np.uint8)
    padded[:] = _WALL
    padded[SIZE:-SIZE, SIZE:-SIZE] = grid
    half, far = SIZE // 2, SIZE - 1
    left = {0: x, 1: x - half, 2: x - far, 3: x - half}[direction] + SIZE
    top = {0: y - half, 1: y, 2: y - half, 3: y - far}[direction] + SIZE
    view = np.rot90(padded[left : left + SIZE, top : top + SIZE], -(direction + 1)).copy()
    visible = _visible(view)
    level = dynamics.level.grid
    view[half, far] = level[level[:, :, 0] == KEY][0] if state[3] else (EMPTY, 0, 0)
    view[~visible] = _UNSEEN
    return view


def _visible(view: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Spreads visibility from the agent's place, row by row, through cells that can be seen through."""
    blocked = (view[:, :, 0] == WALL) | ((view[:, :, 0] == DOOR) & (view[:, :, 2] != OPEN))
    mask = np.zeros((SIZE, SIZE), dtype=bool)
    mask[SIZE // 2, SIZE - 1] = True
    for row in range(SIZE - 1, -1, -1):
        for columns, side in ((range(SIZE - 1), 1), (range(SIZE - 1, 0, -1), -1)):
            for column in columns:
                if not mask[column, row] or blocked[column, row]:
                    continue
                mask[column + side, row] = True
                if row > 0:
                    mask[column + side, row - 1] = mask[column, row - 1] = True
    return mask
