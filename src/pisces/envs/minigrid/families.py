"""Families of MiniGrid levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LEFT, RIGHT, FORWARD, PICKUP, TOGGLE = 0, 1, 2, 3, 5
"""MiniGrid's numbers of the actions that can be needed; 4 (drop) and 6 (done) never are."""


@dataclass(frozen=True)
class Family:
    """Levels that one environment of the package `minigrid` generates."""

    name: str
    """Name on the command line and in Gymnasium ids."""
    source: str
    """Id of the environment in the package `minigrid`."""
    actions: tuple[int, ...]
    """MiniGrid's numbers of the actions; action i of a level is `actions[i]`."""


FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        Family("crossing", "MiniGrid-SimpleCrossingS9N2-v0", (LEFT, RIGHT, FORWARD)),
        Family("lava", "MiniGrid-LavaCrossingS9N2-v0", (LEFT, RIGHT, FORWARD)),
        Family("rooms", "MiniGrid-FourRooms-v0", (LEFT, RIGHT, FORWARD)),
        Family("doorkey", "MiniGrid-DoorKey-6x6-v0", (LEFT, RIGHT, FORWARD, PICKUP, TOGGLE)),
        Family("multiroom", "MiniGrid-MultiRoom-N4-S5-v1", (LEFT, RIGHT, FORWARD, TOGGLE)),
    )
}
"""The families by name."""
