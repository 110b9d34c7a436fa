"""Grids of jumping tasks as pictures: which tasks are solved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from numpy.typing import NDArray

from pisces.envs.jumping.grids import GRID_HEIGHTS, GRID_POSITIONS
from pisces.reports.results import StoredRun

SOLVED, UNSOLVED, TRAINING = "#e3c9a0", "#111111", "#c0392b"
SHARES = LinearSegmentedColormap.from_list("shares", [UNSOLVED, SOLVED])
Result = Mapping[str, Any] | StoredRun


def solved_tiles(result: Result, color: str) -> NDArray[np.float64]:
    """Which tasks of one color a run solved, [11 heights, 26 positions]."""
    tiles = np.zeros((len(GRID_HEIGHTS), len(GRID_POSITIONS)))
    solved = [
        (height - GRID_HEIGHTS[0], position - GRID_POSITIONS[0])
        for (position, height, task_color), flag in zip(result["tasks"], result["solved"], strict=True)
        if flag == "1" and task_color == color
    ]
    if solved:
        tiles[tuple(np.transpose(solved))] = 1
    return tiles


def draw_training(axes: Any, result: Result, color: str) -> None:
    """Marks a run's training tasks of one color with T."""
    places = [
        (task["obstacle_position"], task["floor_height"]) for task in result["train_tasks"] if task["color"] == color
    ]
    # Markers, because as many texts take longer than the rest of the picture.
    if places:
        axes.scatter(*zip(*places, strict=True), marker=r"$\mathbf{T}$", s=45, color=TRAINING, linewidths=0.3)


def draw_tiles(axes: Any, tiles: NDArray[np.float64]) -> None:
    """Draws a grid of tasks, heights upwards and positions to the right, values from 0 (black) to 1 (beige)."""
    extent = (GRID_POSITIONS[0] - 0.5, GRID_POSITIONS[-1] + 0.5, GRID_HEIGHTS[0] - 0.5, GRID_HEIGHTS[-1] + 0.5)
    axes.imshow(tiles, origin="lower", extent=extent, cmap=SHARES, vmin=0, vmax=1)
    # Lines, because a grid of minor ticks takes ten times as long.
    axes.vlines(np.arange(*extent[:2]), *extent[2:], color="#888888", linewidth=0.4)
    axes.hlines(np.arange(*extent[2:]), *extent[:2], color="#888888", linewidth=0.4)
    axes.set_xlim(*extent[:2])
    axes.set_ylim(*extent[2:])
    axes.set_xticks(range(20, 46, 5))
    axes.set_yticks(range(10, 21, 5))
    axes.set_xlabel("obstacle position")
    axes.set_ylabel("floor height")
