"""Figures of the jumping task's runs: solved-task grids, learning curves, suboptimality, colors, profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.jumping.paper import JUMPING_COLORS
from pisces.experiments.jumping.report.tables import in_order
from pisces.experiments.jumping.report.tiles import draw_tiles, draw_training, solved_tiles
from pisces.reports.colors import PALETTE, method_color, method_style
from pisces.reports.figures import curve_matrix, plain_axes, plain_text
from pisces.reports.results import StoredRun
from pisces.reports.statistics import Scores, performance_profile, summarize
from pisces.reports.tables import percent_interval

FloatArray = NDArray[np.float64]
HATCHES = ("", "////")
"""Fill of bars of one method, one for each network."""
AXES = (0.09, 0.17, 0.89, 0.73)
"""Left, bottom, width and height of the axes in pictures of tasks."""


def share_grid(runs: Sequence[StoredRun], title: str, color: str) -> Figure:
    """Draws the share of runs that solve each task: beige all, black none, T on training tasks (Fig. 4).

    Runs on the random grid have different training tasks, so one run stands for all: the one in the middle.
    """
    shown = runs
    if runs[0].config.grid == "random" and len(runs) > 1:
        shown = [middle_run(runs, color)]
        title += f"; seed {shown[0].config.seed}, the run in the middle"
    figure = Figure(figsize=(6.2, 2.9))
    axes = figure.add_axes(AXES)  # not a layout engine's, which takes longer than drawing
    draw_tiles(axes, np.mean([solved_tiles(run, color) for run in shown], axis=0))
    draw_training(axes, shown[0], color)
    axes.set_title(plain_text(title), fontsize=10)
    return figure


def middle_run(runs: Sequence[StoredRun], color: str) -> StoredRun:
    """The run whose number of solved tasks is in the middle."""
    order = sorted(runs, key=lambda run: (solved_tiles(run, color).sum(), run.config.seed))
    return order[(len(order) - 1) // 2]


def banded_curves(groups: Mapping[str, Sequence[StoredRun]], value: str, title: str) -> Figure:
    """Draws the median over runs during training, with a band from the 25th to the 75th percentile (App. F)."""
    figure = Figure(figsize=(8.6, 3.4), layout="constrained")
    axes = figure.subplots()
    for name, runs in groups.items():
        style = method_style(JumpingConfig.methods, runs[0].config.method)
        iterations, rows = curve_matrix(runs, value)
        low, middle, high = np.percentile(rows, [25, 50, 75], axis=0)
        axes.fill_between(iterations, low, high, color=style["color"], alpha=0.2, linewidth=0)
        label = plain_text(f"{name} (n={len(rows)})")
        axes.plot(iterations, middle, marker=".", label=label, **style)
    axes.set_ylim(0, 100)
    axes.set_xlabel("iteration")
    axes.set_ylabel("unseen tasks solved (%)")
    axes.set_title(plain_text(title), fontsize=10)
    figure.legend(frameon=False, fontsize=8, loc="outside right upper")
    plain_axes(axes)
    return figure


def epsilon_curve(scores: Mapping[tuple[str, float], Sequence[float]]) -> Figure:
    """Draws unseen tasks solved over the suboptimality of the metric's policies; bars are one standard deviation."""
    figure = Figure(figsize=(4.6, 3.2), layout="constrained")
    axes = figure.subplots()
    for method in sorted({method for method, _ in scores}):
        points = sorted(epsilon for name, epsilon in scores if name == method)
        summaries = [summarize(scores[method, epsilon]) for epsilon in points]
        bars = np.nan_to_num([summary.deviation for summary in summaries])
        color = method_color(JumpingConfig.methods, method)
        counts = sorted({summary.count for summary in summaries})
        label = f"{method} (n={counts[0]}{f' to {counts[-1]}' if len(counts) > 1 else ''})"
        means = [summary.mean for summary in summaries]
        axes.errorbar(points, means, yerr=bars, color=color, marker="o", capsize=3, label=plain_text(label))
    axes.set_ylim(0, 105)
    axes.set_xlabel("ε, suboptimality of the metric's policies")
    axes.set_ylabel("unseen tasks solved (%)")
    axes.legend(frameon=False, fontsize=8, loc="lower left")
    plain_axes(axes)
    return figure


def color_bars(series: Mapping[str, Mapping[str, Sequence[float]]], names: Mapping[str, str]) -> Figure:
    """Draws unseen red tasks solved, with 99 % intervals of the mean; a line marks the paper's mean.

    Args:
        series: bars of one fill by their name: method -> one number per run.
        names: what the figure calls the methods.
    """
    methods = list(dict.fromkeys(method for scores in series.values() for method in scores))
    width = 0.8 / len(series)
    figure = Figure(figsize=(max(5.2, 1.5 * len(methods)), 3.2), layout="constrained")
    axes = figure.subplots()
    fills: list[Artist] = []
    for number, (name, scores) in enumerate(series.items()):
        places = [methods.index(method) + (number - (len(series) - 1) / 2) * width for method in scores]
        means = [summarize(values).mean for values in scores.values()]
        colors = [method_color(JumpingConfig.methods, method) for method in scores]
        hatch = HATCHES[number % len(HATCHES)]
        axes.bar(places, means, color=colors, width=0.9 * width, hatch=hatch, edgecolor="white")
        fills.append(Patch(facecolor=PALETTE[0], hatch=hatch, edgecolor="white", label=plain_text(name)))
        for place, mean, values in zip(places, means, scores.values(), strict=True):
            axes.text(place, 1, f"n={len(values)}", ha="center", va="bottom", fontsize=7, color="white")
            interval = percent_interval(values, 0.99)
            if interval is not None:
                reach = [[mean - interval[0]], [interval[1] - mean]]
                axes.errorbar(place, mean, yerr=reach, color="#222222", capsize=4)
    published = {place: JUMPING_COLORS[m]["red"].mean for place, m in enumerate(methods) if m in JUMPING_COLORS}
    if published:
        left, right = ([place + side for place in published] for side in (-0.45, 0.45))
        fills.append(
            axes.hlines(list(published.values()), left, right, color="#222222", linestyle=":", label="the paper")
        )
    axes.set_xticks(
        range(len(methods)), [plain_text(fill(names.get(method, method), 18)) for method in methods], fontsize=8
    )
    axes.set_ylabel("unseen red tasks solved (%)")
    axes.set_ylim(0, 105)
    axes.legend(handles=fills, frameon=False, fontsize=8)
    plain_axes(axes)
    return figure


def profiles(scores: Mapping[str, Scores]) -> Figure:
    """Draws which share of the runs solves more than each percentage of unseen tasks, with 95 % bands."""
    figure = Figure(figsize=(5.2, 3.2), layout="constrained")
    axes = figure.subplots()
    for method, runs in scores.items():
        profile = performance_profile(runs, np.linspace(0, 100, 101))
        style = method_style(JumpingConfig.methods, method)
        axes.fill_between(profile.thresholds, profile.low, profile.high, color=style["color"], alpha=0.2, linewidth=0)
        axes.plot(profile.thresholds, profile.share, label=plain_text(method), **style)
    axes.set_xlabel("unseen tasks solved (%)")
    axes.set_ylabel("share of runs above")
    axes.legend(frameon=False, fontsize=8)
    plain_axes(axes)
    return figure


def by_grid(groups: Mapping[tuple[str, str], Sequence[StoredRun]]) -> dict[str, dict[str, Sequence[StoredRun]]]:
    """Sorts runs by grid, then method."""
    grids = in_order(grid for _, grid in groups)
    return {grid: {method: runs for (method, name), runs in groups.items() if name == grid} for grid in grids}
