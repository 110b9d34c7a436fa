"""RGB frames of levels, a few pixels per cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pisces.envs.minigrid.dynamics import CLOSED, DOOR, EMPTY, GOAL, KEY, LAVA, LOCKED, OPEN, WALL, Dynamics, State
from pisces.envs.minigrid.themes import AGENT, Theme

TILE = 4
"""Width and height of a cell in pixels."""


def _shape(*rows: str) -> NDArray[np.bool_]:
    return np.array([[pixel == "#" for pixel in row] for row in rows])


SHAPES: Mapping[int, NDArray[np.bool_]] = {
    WALL: _shape("####", "####", "####", "####"),
    GOAL: _shape("####", "#..#", "#..#", "####"),
    LAVA: _shape("#.#.", ".#.#", "#.#.", ".#.#"),
    KEY: _shape(".##.", ".##.", ".#..", ".##."),
}
"""Which pixels of a cell an object covers; the floor shows through the others."""
DOORS: Mapping[int, NDArray[np.bool_]] = {
    OPEN: _shape("####", "#...", "#...", "####"),
    CLOSED: _shape("####", "#.##", "####", "####"),
    LOCKED: _shape("####", "#..#", "####", "####"),
}
"""The same for doors, by their state."""
AGENTS = tuple(np.rot90(_shape("##..", "####", "####", "##.."), -turn) for turn in range(4))
"""The same for the agent, by its direction."""


class Renderer:
    """Draws the states of one level in one theme.

    Args:
        dynamics: the level's rules.
        theme: how the level looks.
    """

    def __init__(self, dynamics: Dynamics, theme: Theme) -> None:
        self.dynamics, self.theme = dynamics, theme

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of a frame, [height, width, 3]."""
        width, height, _ = self.dynamics.level.grid.shape
        return TILE * height, TILE * width, 3

    @cached_property
    def _background(self) -> NDArray[np.uint8]:
        """The floor and all objects that never change."""
        frame = self.theme.floor[: self.shape[0], : self.shape[1]].copy()
        for (x, y), kind in np.ndenumerate(self.dynamics.level.grid[:, :, 0]):
            if kind not in (EMPTY, DOOR, KEY):
                self._paint(frame, x, y, int(kind), SHAPES[int(kind)])
        return frame

    def frame(self, state: State) -> NDArray[np.uint8]:
        """Draws a state, uint8 [height, width, 3]; a carried key is not shown."""
        frame = self._background.copy()
        for (x, y), door in zip(self.dynamics.doors, state[4:], strict=True):
            self._paint(frame, x, y, DOOR, DOORS[door])
        if not state[3]:
            for x, y in np.argwhere(self.dynamics.level.grid[:, :, 0] == KEY):
                self._paint(frame, int(x), int(y), KEY, SHAPES[KEY])
        self._paint(frame, state[0], state[1], AGENT, AGENTS[state[2]])
        return frame

    def frames(self, states: Iterable[State]) -> NDArray[np.uint8]:
        """Draws states, uint8 [n, height, width, 3]."""
        return np.stack([self.frame(state) for state in states])

    def _paint(self, frame: NDArray[np.uint8], x: int, y: int, kind: int, shape: NDArray[np.bool_]) -> None:
        frame[TILE * y : TILE * (y + 1), TILE * x : TILE * (x + 1)][shape] = self.theme.colors[kind]
