"""Figures, drawn with matplotlib from results; every function returns a figure that the caller saves or embeds."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from pisces.envs.grids import GRID_HEIGHTS, GRID_POSITIONS

SOLVED, UNSOLVED, TRAINING = "#e3c9a0", "#111111", "#c0392b"
LINE_COLORS = ("#7a7a7a", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Colours that stay apart for colour-blind readers (Okabe and Ito's, grey first for the baseline)."""


def solved_grid(result: Mapping[str, Any], title: str, color: str | None = None) -> Figure:
    """Draws which of the 286 tasks a run solved: beige solved, black not, T on training tasks (Fig. 3 of the paper)."""
    figure = Figure(figsize=(6.2, 2.9), layout="constrained")
    axes = figure.subplots()
    color = color or result["tasks"][0][2]
    draw_tiles(axes, solved_tiles(result, color))
    draw_training(axes, result, color)
    axes.set_title(plain_text(title), fontsize=10)
    return figure


def solved_tiles(result: Mapping[str, Any], color: str) -> NDArray[np.float64]:
    """Which tasks of one colour a run solved, [11 heights, 26 positions]."""
    tiles = np.zeros((len(GRID_HEIGHTS), len(GRID_POSITIONS)))
    for (position, height, task_color), solved in zip(result["tasks"], result["solved"], strict=True):
        if task_color == color:
            tiles[height - GRID_HEIGHTS[0], position - GRID_POSITIONS[0]] = int(solved)
    return tiles


def plain_text(text: str) -> str:
    """Text that matplotlib shows as it is: a dollar sign starts no formula."""
    return text.replace("$", r"\$")


def draw_training(axes: Any, result: Mapping[str, Any], color: str) -> None:
    """Marks a run's training tasks of one colour with T."""
    for task in result["train_tasks"]:
        if task["color"] == color:
            axes.text(
                task["obstacle_position"], task["floor_height"], "T", color=TRAINING, ha="center", va="center",
                fontsize=9, fontweight="bold",
            )  # fmt: skip


def plain_axes(axes: Any) -> None:
    """A light grid, and no frame at the top and right."""
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def draw_tiles(axes: Any, tiles: NDArray[np.float64]) -> None:
    """Draws a grid of tasks, heights upwards and positions to the right, values from 0 (black) to 1 (beige)."""
    extent = (GRID_POSITIONS[0] - 0.5, GRID_POSITIONS[-1] + 0.5, GRID_HEIGHTS[0] - 0.5, GRID_HEIGHTS[-1] + 0.5)
    axes.imshow(tiles, origin="lower", extent=extent, cmap=ListedColormap([UNSOLVED, SOLVED]), vmin=0, vmax=1)
    axes.set_xticks(np.arange(*extent[:2]), minor=True)
    axes.set_yticks(np.arange(*extent[2:]), minor=True)
    axes.grid(which="minor", color="#888888", linewidth=0.4)
    axes.tick_params(which="minor", length=0)
    axes.set_xticks(range(20, 46, 5))
    axes.set_yticks(range(10, 21, 5))
    axes.set_xlabel("obstacle position")
    axes.set_ylabel("floor height")


def learning_curves(curves: Mapping[str, Sequence[Mapping[str, Any]]], value: str, label: str) -> Figure:
    """Draws one line per named run over its iterations."""
    figure = Figure(figsize=(6.2, 3.2), layout="constrained")
    axes = figure.subplots()
    for color, (name, rows) in zip(LINE_COLORS, curves.items(), strict=False):
        axes.plot([row["iteration"] for row in rows], [row[value] for row in rows], color=color, label=name, marker=".")
    axes.set_xlabel("iteration")
    axes.set_ylabel(label)
    axes.set_ylim(0, 100)
    axes.legend(frameon=False, fontsize=9)
    plain_axes(axes)
    return figure


def heat_map(distance: ArrayLike, title: str, label_x: str, label_y: str, unit: str = "distance") -> Figure:
    """Draws a distance matrix, rows downwards; light is near."""
    figure = Figure(figsize=(4.4, 3.9), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(np.asarray(distance), cmap="magma_r", aspect="auto", interpolation="nearest")
    axes.set_title(title, fontsize=10)
    axes.set_ylabel(label_x)
    axes.set_xlabel(label_y)
    figure.colorbar(image, ax=axes, label=unit, shrink=0.9)
    return figure


def frames_strip(frames: Sequence[NDArray[Any]], titles: Sequence[str]) -> Figure:
    """Draws frames side by side."""
    figure = Figure(figsize=(1.9 * len(frames), 2.2), layout="constrained")
    for axes, frame, title in zip(figure.subplots(1, len(frames), squeeze=False)[0], frames, titles, strict=True):
        axes.imshow(frame, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        axes.set_title(title, fontsize=9)
        axes.set_axis_off()
    return figure


def data_uri(figure: Figure) -> str:
    """Returns a figure as a PNG that a page can embed."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
