"""Draws frames of the environments for the docs: ``python studies/environment_pictures.py docs/images``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, get_args

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from pisces.envs.jumping import JumpingTask, decode_frames, optimal_frames
from pisces.envs.lqr import DistractorLQREnv
from pisces.experiments.minigrid.config import Family
from pisces.experiments.minigrid.tasks import Task, make_renderer

STEPS = (0, 11, 18, 30)
"""Steps of the jumping task that are drawn."""
THEMES = (0, 51, 52, 53)
"""Themes of MiniGrid that are drawn; 0 is MiniGrid's own."""


def show(axes: Any, image: NDArray[Any], title: str = "") -> None:
    """Draws one frame."""
    axes.imshow(image, cmap="gray", interpolation="nearest")
    axes.set_title(title, fontsize=9)
    axes.set_xticks([])
    axes.set_yticks([])


def jumping() -> Figure:
    """Two tasks whose obstacles stand at different places: the same behavior at different steps."""
    figure = Figure(figsize=(7.6, 4.1), layout="constrained")
    for row, position in zip(figure.subplots(2, len(STEPS)), (25, 45), strict=True):
        task = JumpingTask(position, 10)
        for axes, step in zip(row, STEPS, strict=True):
            shown = step + position - 25
            jump = ": jump" if shown == task.jump_step else ""
            show(axes, decode_frames(optimal_frames(task)[shown]), f"obstacle at {position}, step {shown}{jump}")
    return figure


def minigrid() -> Figure:
    """One level of each family in four themes."""
    families = get_args(Family)
    figure = Figure(figsize=(8.2, 6.8), layout="constrained")
    grid = figure.subplots(len(THEMES), len(families))
    for row, theme in zip(grid, THEMES, strict=True):
        for axes, family in zip(row, families, strict=True):
            renderer = make_renderer(family, Task(3, theme))
            show(axes, renderer.frame(renderer.dynamics.start), family if theme == THEMES[0] else "")
    for row, theme in zip(grid, THEMES, strict=True):
        row[0].set_ylabel("own colors" if theme == 0 else f"theme {theme}", fontsize=9)
    return figure


def lqr(steps: int = 24, shown: int = 60) -> Figure:
    """Observations of two environments: the state is the same, the distractors are not."""
    figure = Figure(figsize=(7.6, 3.0), layout="constrained")
    for axes, number in zip(figure.subplots(1, 2, sharey=True), (0, 1), strict=True):
        env = DistractorLQREnv(distractors=500, index=number)
        rows = [env.reset(seed=0)[0]]
        rows += [env.step(np.zeros(env.action_space.shape))[0] for _ in range(steps - 1)]
        image = axes.imshow(np.array(rows)[:, :shown], cmap="RdBu", aspect="auto", vmin=-3, vmax=3)
        axes.axvline(19.5, color="black", linewidth=1.2)
        axes.set_title(f"environment {number}: the state | distractors", fontsize=9)
        axes.set_xlabel("entry of the observation")
    figure.axes[0].set_ylabel("step")
    figure.colorbar(image, ax=figure.axes, shrink=0.8)
    return figure


def main(out: Path) -> None:
    """Writes the pictures."""
    for name, draw in (("jumping", jumping), ("minigrid", minigrid), ("lqr", lqr)):
        draw().savefig(out / f"environment_{name}.png", dpi=110)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
