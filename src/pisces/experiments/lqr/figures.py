"""Figures of linear-quadratic control."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import mean

import numpy as np
from matplotlib.figure import Figure

from pisces.experiments.lqr.config import SIZES, LQRConfig
from pisces.experiments.lqr.paper import LQR
from pisces.experiments.lqr.tables import errors_of, seeds_by_cell
from pisces.reports.colors import method_color
from pisces.reports.results import StoredRun
from pisces.reports.statistics import mean_interval

LEAST = 1e-3
"""Where a bar's interval is cut off, as a share of the mean."""


def _reach(values: Sequence[float]) -> tuple[float, float]:
    """How far the 99 % interval of the mean reaches down (not to zero, for a logarithmic axis) and up."""
    interval = mean_interval(values, 0.99) if values and math.isfinite(sum(values)) else None
    if interval is None:
        return 0.0, 0.0
    middle = mean(values)
    return middle - max(interval.low, LEAST * middle), interval.high - middle


def error_bars(runs: Iterable[StoredRun]) -> Figure:
    """Bars of the mean error with 99 % intervals, the paper's means as lines (its figure "LQR generalization")."""
    cells = seeds_by_cell(runs)
    figure = Figure(figsize=(6.6, 3.6), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(LQR)
    for index, (method, published) in enumerate(LQR.items()):
        places = np.arange(len(SIZES)) + (index - (len(LQR) - 1) / 2) * width
        errors = [errors_of(cells.get((method, size), [])) for size in SIZES]
        means = [mean(values) if values else np.nan for values in errors]
        reach = [_reach(values) for values in errors]
        color = method_color(LQRConfig.methods, method)
        axes.bar(places, means, 0.9 * width, yerr=np.transpose(reach), color=color, label=method, capsize=3)
        paper = [published[size].mean for size in SIZES]
        axes.hlines(paper, places - width / 2, places + width / 2, color="black", linewidth=1.2, zorder=3)
    axes.plot([], [], color="black", linewidth=1.2, label="paper")
    axes.set_yscale("log")
    axes.set_xticks(range(len(SIZES)), [str(size) for size in SIZES])
    axes.set_xlabel("distractors")
    axes.set_ylabel("error of the cost, unseen environment")
    axes.legend(frameon=False, fontsize=8, ncols=len(LQR) + 1, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def weight_columns(runs: Iterable[StoredRun], distractors: int = SIZES[0]) -> Figure:
    """Norm of each column of K, first seed of every method: the state's columns left, the distractors' right."""
    cells = seeds_by_cell(runs)
    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    grid = figure.subplots(len(LQR), 2, width_ratios=(1, 3), sharey="row", squeeze=False)
    for method, (left, right) in zip(LQR, grid, strict=True):
        row = next((row for row in cells.get((method, distractors), []) if "column_norms" in row), None)
        if row is not None:
            norms = np.array(row["column_norms"])
            states = len(norms) - distractors
            left.bar(range(states), norms[:states], width=1.0, color="#0072b2")
            right.bar(range(distractors), norms[states:], width=1.0, color="#d55e00")
            left.set_title(f"{method}: state, |K| = {row['state_norm']:.2g}", fontsize=8)
            right.set_title(f"distractors, |K| = {row['distractor_norm']:.2g}", fontsize=8)
        for axes in (left, right):
            axes.tick_params(labelsize=7)
            axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("column of K (entry of the observation)", fontsize=9)
    figure.supylabel("norm of the column", fontsize=9)
    return figure
