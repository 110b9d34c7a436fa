"""Themes: the texture of the floor and the colors of objects."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pisces.envs.minigrid.dynamics import DOOR, GOAL, KEY, LAVA, WALL
from pisces.errors import UserError

AGENT = 10
"""The agent in MiniGrid's encoding."""
PLAIN = 0
"""Number of the theme with MiniGrid's colors on a black floor."""
CANVAS = 100
"""Width and height of textures in pixels: those of the largest levels."""
THEME_SEED = 11
"""Seed of the themes, used together with their number."""
WAVES = 3
"""Number of waves that a texture is the sum of."""
BRIGHTEST_FLOOR = 150
"""No channel of the floor is brighter; each object has at least one channel that is."""
_PLAIN_COLORS: Mapping[int, tuple[int, int, int]] = {
    WALL: (100, 100, 100),
    DOOR: (255, 255, 0),
    KEY: (255, 255, 0),
    GOAL: (0, 255, 0),
    LAVA: (255, 128, 0),
    AGENT: (255, 0, 0),
}


@dataclass(frozen=True, eq=False)
class Theme:
    """How levels look."""

    floor: NDArray[np.uint8]
    """The floor, [100, 100, 3]; levels take its upper left part."""
    colors: Mapping[int, tuple[int, ...]]
    """The color of each kind of object."""


@functools.cache
def make_theme(number: int) -> Theme:
    """Returns a theme by its number; 0 is `PLAIN`.

    Other themes have a floor of random waves and noise, and a random bright color for each kind of object.

    Args:
        number: at least 0; each theme has its own random generator.
    """
    if not (isinstance(number, int | np.integer) and number >= 0):
        raise UserError(f"theme must be an integer >= 0, got {number!r}")
    if number == PLAIN:
        return Theme(np.zeros((CANVAS, CANVAS, 3), dtype=np.uint8), _PLAIN_COLORS)
    rng = np.random.default_rng([THEME_SEED, int(number)])
    return Theme(_texture(rng), {kind: _bright_color(rng) for kind in _PLAIN_COLORS})


def _texture(rng: np.random.Generator) -> NDArray[np.uint8]:
    """Sums waves of random direction, length and color, with noise, and scales the sum to the floor's range."""
    rows, columns = np.mgrid[:CANVAS, :CANVAS]
    total = rng.normal(0.0, 0.3, (CANVAS, CANVAS, 3))
    for _ in range(WAVES):
        angle, length, phase = rng.uniform(0, np.pi), rng.uniform(3, 20), rng.uniform(0, 2 * np.pi)
        wave = np.sin(2 * np.pi * (np.cos(angle) * columns + np.sin(angle) * rows) / length + phase)
        total += wave[:, :, None] * rng.normal(0.0, 1.0, 3)
    low, high = total.min(axis=(0, 1)), total.max(axis=(0, 1))
    darkest, brightest = np.sort(rng.uniform(0, BRIGHTEST_FLOOR, (2, 3)), axis=0)
    return np.asarray(darkest + (brightest - darkest) * (total - low) / (high - low), dtype=np.uint8)


def _bright_color(rng: np.random.Generator) -> tuple[int, ...]:
    color = rng.integers(0, 256, 3)
    color[rng.integers(3)] = rng.integers(200, 256)
    return tuple(color.tolist())
