"""Reports of the LQR study: the table beside the paper's, its bar chart, and what the policies look at."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console

from pisces.experiments.lqr import EXPERIMENT, SIZES, LQRConfig
from pisces.experiments.store import RESULT
from pisces.reports.figures import LINE_COLORS
from pisces.reports.paper import LQR
from pisces.reports.statistics import mean_interval
from pisces.reports.tables import Cell, Table, markdown

LEAST = 1e-3
"""Where a bar's interval is cut off, as a share of the mean."""

Cells = dict[tuple[str, int], list[dict[str, Any]]]


def group_lqr(results: Iterable[Mapping[str, Any]]) -> Cells:
    """Collects the seeds of the methods' own runs (paper preset, nothing changed) by method and distractors."""
    cells: dict[tuple[str, int], dict[int, dict[str, Any]]] = {}
    for result in results:
        config = result["config"]
        if "distractors" in config and config.get("preset") == "paper" and not config.get("study"):
            rows = cells.setdefault((config["method"], config["distractors"]), {})
            rows |= {row["seed"]: row for row in result["runs"]}
    return {cell: [rows[seed] for seed in sorted(rows)] for cell, rows in cells.items()}


def errors_of(rows: Iterable[Mapping[str, Any]]) -> list[float]:
    """The test errors of a cell; infinite where the closed loop was unstable."""
    return [math.inf if row["error"] is None else float(row["error"]) for row in rows]


def lqr_table(results: Iterable[Mapping[str, Any]]) -> str:
    """Error of the cost in an unseen environment, ours beside the paper's."""
    cells = group_lqr(results)
    rows = []
    for method, published in LQR.items():
        if any((method, size) in cells for size in SIZES):
            parts = [f"{_summary(errors_of(cells.get((method, size), [])))} / {published[size]}" for size in SIZES]
            rows.append([f"`{method}`", *parts])
    return markdown(["method", *(f"{size} distractors: ours / paper" for size in SIZES)], rows)


def _summary(errors: Sequence[float]) -> str:
    if not errors:
        return "–"
    digits = 1 if mean(errors) >= 0.1 else 4
    spread = f" ({stdev(errors):.{digits}f})" if len(errors) > 1 and math.isfinite(mean(errors)) else ""
    return f"**{mean(errors):.{digits}f}**{spread}, n={len(errors)}"


def lqr_source(config: Mapping[str, Any]) -> tuple[str, str, int] | None:
    """What a run counts for in the table: method and distractors; None if anything was changed."""
    own = "distractors" in config and config.get("preset") == "paper" and not config.get("study")
    return (EXPERIMENT, config["method"], config["distractors"]) if own else None


def lqr_report_table(results: Iterable[Mapping[str, Any]]) -> Table:
    """The same table with all that a report tells of a cell."""
    cells = group_lqr(results)

    def cell(method: str, size: int) -> Cell:
        errors = tuple(error for error in errors_of(cells.get((method, size), [])) if math.isfinite(error))
        digits = 4 if errors and mean(errors) < 0.1 else 1
        limits = (0.0, math.inf)
        return Cell(errors, LQR[method][size], source=(EXPERIMENT, method, size), limits=limits, digits=digits)

    rows: list[tuple[str | Cell, ...]] = [(method, *(cell(method, size) for size in SIZES)) for method in LQR]
    note = (
        "Error of the cost against the oracle's. Ours / the paper's: mean, in parentheses the standard deviation "
        "between seeds, n = seeds, in brackets the 95 % interval of the mean."
    )
    header = ("method", *(f"{size} distractors" for size in SIZES))
    return Table("lqr", "Linear control with distractors: error in an unseen environment", note, header, tuple(rows))


def _reach(values: Sequence[float]) -> tuple[float, float]:
    """How far the 99 % interval of the mean reaches down (not to zero, for a logarithmic axis) and up."""
    interval = mean_interval(values, 0.99) if values and math.isfinite(sum(values)) else None
    if interval is None:
        return 0.0, 0.0
    middle = mean(values)
    return middle - max(interval.low, LEAST * middle), interval.high - middle


def error_bars(results: Iterable[Mapping[str, Any]]) -> Figure:
    """Bars of the mean error with 99 % intervals, the paper's means as lines (its figure "LQR generalization")."""
    cells = group_lqr(results)
    figure = Figure(figsize=(6.6, 3.6), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(LQR)
    for index, (method, published) in enumerate(LQR.items()):
        places = np.arange(len(SIZES)) + (index - (len(LQR) - 1) / 2) * width
        errors = [errors_of(cells.get((method, size), [])) for size in SIZES]
        means = [mean(values) if values else np.nan for values in errors]
        reach = [_reach(values) for values in errors]
        axes.bar(
            places, means, 0.9 * width, yerr=np.transpose(reach), color=LINE_COLORS[index], label=method, capsize=3
        )
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


def weight_columns(results: Iterable[Mapping[str, Any]], distractors: int = SIZES[0]) -> Figure:
    """Norm of each column of K, first seed of every method: the state's columns left, the distractors' right."""
    cells = group_lqr(results)
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


def train_with_display(config: LQRConfig, out: Path, threads: int, console: Console) -> str:
    """Trains one config with a live line of its progress; returns the sentence that tells its outcome."""
    from pisces.experiments.lqr_run import run

    with console.status(f"{config.method}, {config.distractors} distractors") as status:

        def report(step: int, left: int, cost: float) -> None:
            if step % 10 == 0:
                status.update(f"{config.method}: step {step} of at most {config.settings.max_steps}, cost {cost:.4f}")

        folder = run(config, out, threads, report)
    row = folder.read_json(RESULT)["runs"][0]
    return f"{outcome(row)}; run folder: {folder.path}"


def outcome(row: Mapping[str, Any]) -> str:
    """Says how a seed ended."""
    if row["cost"] is None:
        return f"unstable in the unseen environment (infinite cost, oracle {row['oracle_cost']:.3f})"
    return f"cost {row['cost']:.4f} in the unseen environment, {row['error']:.4f} above the oracle's"
