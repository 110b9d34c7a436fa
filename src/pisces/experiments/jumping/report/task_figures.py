"""Figures of the jumping task itself: episodes, metrics, augmentation, validation tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray

from pisces.augment import apply_kernel, random_kernel
from pisces.envs.jumping import (
    Color,
    JumpingTask,
    decode_frames,
    optimal_frames,
    optimal_heights,
    render_frames,
    split_tasks,
)
from pisces.envs.jumping.grids import GRID_HEIGHTS, GRID_POSITIONS
from pisces.envs.jumping.tasks import DECISIONS
from pisces.experiments.jumping.data import task_metrics
from pisces.experiments.jumping.mdp import episode_bisimulation
from pisces.experiments.jumping.report.tiles import TRAINING, draw_tiles

FloatArray = NDArray[np.float64]
TaskMetric = Callable[[JumpingTask, JumpingTask, float], FloatArray]
TASK_X, TASK_Y = JumpingTask(25, 10), JumpingTask(45, 10)
FIGURE_DISCOUNT = 0.99
COLORS: tuple[Color, ...] = ("white", "red", "green")


def _trajectory_metric(name: str) -> TaskMetric:
    return lambda x, y, discount: task_metrics([(x, y)], name, discount)[0]


METRICS: Mapping[str, TaskMetric] = {
    "Policy similarity metric": _trajectory_metric("psm"),
    "Bisimulation": episode_bisimulation,
    "π*-bisimulation": _trajectory_metric("pi-bisimulation"),
    "True similarity": lambda x, y, discount: (task_metrics([(x, y)], "true", discount)[0] != 0).astype(np.float64),
}
"""Distances between the states of two optimal episodes; each is a panel of the figure."""


def metric_maps(
    task_x: JumpingTask = TASK_X, task_y: JumpingTask = TASK_Y, discount: float = FIGURE_DISCOUNT
) -> Figure:
    """Draws each metric between the states of two optimal episodes; light is near (App. F)."""
    figure = Figure(figsize=(3.6 * len(METRICS), 3.3), layout="constrained")
    panels = figure.subplots(1, len(METRICS), squeeze=False)[0]
    for axes, (name, metric) in zip(panels, METRICS.items(), strict=True):
        image = axes.imshow(metric(task_x, task_y, discount), cmap="magma_r", interpolation="nearest")
        axes.set_title(name, fontsize=10)
        axes.set_xlabel(f"step, obstacle at {task_y.obstacle_position}")
        axes.set_ylabel(f"step, obstacle at {task_x.obstacle_position}")
        figure.colorbar(image, ax=axes, shrink=0.8)
    return figure


def randconv_samples(seed: int = 0, samples: int = 5) -> Figure:
    """Draws frames with a white, red and green obstacle, and RandConv's output, one kernel per column."""
    rng = np.random.default_rng(seed)
    figure = Figure(figsize=(1.5 * (samples + 1), 4.8), layout="constrained")
    grid = figure.subplots(len(COLORS), samples + 1)
    kernels = {channels: [random_kernel(rng, channels, 0.0) for _ in range(samples)] for channels in (1, 3)}
    for row, color in zip(grid, COLORS, strict=True):
        frame = decode_frames(optimal_frames(JumpingTask(30, 10, color))[20])
        image = torch.from_numpy(np.atleast_3d(frame)).permute(2, 0, 1)[None]
        drawn = [image, *(apply_kernel(image, kernel) for kernel in kernels[image.shape[1]])]
        for axes, pixels in zip(row, drawn, strict=True):
            axes.imshow(_displayable(pixels[0]), cmap="gray", interpolation="nearest")
            axes.set_axis_off()
        row[0].set_title(f"{color}, original", fontsize=9)
        row[1].set_title("with RandConv", fontsize=9)
    return figure


def _displayable(pixels: torch.Tensor) -> NDArray[np.float32]:
    """Stretches the values of an image to [0, 1]."""
    values = pixels.permute(1, 2, 0).numpy()
    low, high = values.min(), values.max()
    stretched = (values - low) / max(high - low, 1e-6)
    return np.asarray(stretched if stretched.shape[2] == 3 else stretched[..., 0], dtype=np.float32)


def trajectories(tasks: tuple[JumpingTask, ...] = (TASK_X, TASK_Y), every: int = 6) -> Figure:
    """Draws optimal episodes in one image each; early positions are darker (Fig. 1)."""
    figure = Figure(figsize=(3.1 * len(tasks), 3.3), layout="constrained")
    for axes, task in zip(figure.subplots(1, len(tasks), squeeze=False)[0], tasks, strict=True):
        steps = np.arange(0, DECISIONS, every)
        frames = decode_frames(render_frames(task, steps, optimal_heights(task)[steps]))
        background = decode_frames(render_frames(task, np.array([-10]), np.array([0]))[0])
        weights = np.linspace(0.15, 1.0, len(steps))[:, None, None]
        blocks = np.where(frames > background, frames * weights, 0.0).max(axis=0)
        axes.imshow(np.maximum(background, blocks), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        axes.set_title(f"obstacle at {task.obstacle_position}: jump at step {task.jump_step}", fontsize=10)
        axes.set_axis_off()
    return figure


def validation_map() -> Figure:
    """Draws the wide grid's training tasks (T) and validation tasks (V), as in App. F."""
    figure = Figure(figsize=(6.2, 2.9), layout="constrained")
    axes = figure.subplots()
    draw_tiles(axes, np.ones((len(GRID_HEIGHTS), len(GRID_POSITIONS))))
    split = split_tasks("wide")
    for letter, tasks, color in (("T", split.train, "#222222"), ("V", split.validation, TRAINING)):
        for task in tasks:
            place = (task.obstacle_position, task.floor_height)
            axes.text(*place, letter, color=color, ha="center", va="center", fontsize=8)
    axes.set_title(f"{len(split.train)} training (T) and {len(split.validation)} validation tasks (V)", fontsize=10)
    return figure
