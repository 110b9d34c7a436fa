"""Levels of a family, numbered without duplicates, and which of them are for training, validation and test."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from pisces.envs.minigrid.families import FAMILIES, Family
from pisces.errors import UserError, import_extra, unknown_name
from pisces.validation import freeze

VALIDATION_LEVELS = range(50)
"""Levels that settings are chosen on."""
TEST_LEVELS = range(50, 150)
"""Levels that results are reported on."""
TRAINING_LEVELS = range(150, 350)
"""Levels that training levels are drawn from."""
LEVELS = 350
"""The number of levels of each family."""
MOST_SEEDS = 20_000
"""Seeds of the package that are tried for new levels."""


@dataclass(frozen=True, eq=False)
class Level:
    """One level: its grid, and where the agent starts."""

    family: Family
    """The family of the level."""
    number: int
    """Number of the level within its family."""
    seed: int
    """Seed with which the package `minigrid` generates the level."""
    grid: NDArray[np.uint8]
    """Object, color and state of each cell in MiniGrid's encoding, [width, height, 3], without the agent; read-only."""
    start: tuple[int, int, int]
    """Column, row and direction of the agent; direction 0 is right, 1 down, 2 left, 3 up."""

    def __post_init__(self) -> None:
        freeze(self, ("grid",))

    def __deepcopy__(self, memo: dict[int, Any]) -> Level:
        return self  # it never changes

    @property
    def encoded(self) -> bytes:
        """What tells levels apart: the grid and the start."""
        return self.grid.tobytes() + bytes(self.start)


def make_level(family: str, number: int) -> Level:
    """Returns a level by its number.

    Levels are numbered in the order of the package's seeds 0, 1, ...; a seed whose level is known already is skipped.

    Args:
        family: name of the family, see `FAMILIES`.
        number: 0 to 349.
    """
    if family not in FAMILIES:
        raise unknown_name("family", family, FAMILIES)
    if not (isinstance(number, int | np.integer) and 0 <= number < LEVELS):
        raise UserError(f"level must be an integer in 0..{LEVELS - 1}, got {number!r}")
    return all_levels(family)[int(number)]


@functools.cache
def all_levels(family: str) -> tuple[Level, ...]:
    """Generates all levels of a family, which takes a few tenths of a second."""
    import_extra("minigrid", "minigrid")  # registers its environments
    source: Any = gym.make(FAMILIES[family].source, disable_env_checker=True).unwrapped
    found: dict[bytes, Level] = {}
    for seed in range(MOST_SEEDS):
        source.reset(seed=seed)
        start = (int(source.agent_pos[0]), int(source.agent_pos[1]), int(source.agent_dir))
        level = Level(FAMILIES[family], len(found), seed, source.grid.encode(), start)
        found.setdefault(level.encoded, level)
        if len(found) == LEVELS:
            return tuple(found.values())
    raise UserError(f"{FAMILIES[family].source} has only {len(found)} different levels, expected {LEVELS}")
