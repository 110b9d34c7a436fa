"""Figures of the jumping study: ``python studies/jumping_figures.py results docs/images``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill

import numpy as np
from matplotlib.figure import Figure

from jumping_embeddings import embeddings_figure
from pisces.experiments.jumping.report.embeddings import has_umap
from pisces.experiments.jumping.report.figures import banded_curves, by_grid, color_bars, epsilon_curve, middle_run
from pisces.experiments.jumping.report.tables import GRIDS, METHOD_NAMES, cell_of, color_series, epsilon_scores
from pisces.experiments.jumping.report.task_figures import metric_maps, randconv_samples, trajectories, validation_map
from pisces.experiments.jumping.report.tiles import draw_tiles, draw_training, solved_tiles
from pisces.experiments.registry import all_experiments
from pisces.reports.results import StoredRun, read_runs

Groups = Mapping[tuple[str, str], Sequence[StoredRun]]
CURVES = ("dropout+l2", "pse", "randconv", "randconv+pi-bisimulation", "randconv+pse", "pse-tuned", "randconv+shift")
"""Not pse-tuned-5, whose curve is that of five agents one after another."""
SOLVED_ROWS = (*CURVES[:-1], "pse-tuned-5", "randconv+shift")


def study_groups(runs: Sequence[StoredRun]) -> Groups:
    """Returns the methods' own runs with white obstacles that learned, by method and grid."""
    groups: dict[tuple[str, str], list[StoredRun]] = {}
    for run in runs:
        cell = cell_of(run.config)
        if cell is not None and cell[2:] == (False, 0.0) and run.curve:
            groups.setdefault(cell[:2], []).append(run)
    return groups


def solved_matrix(groups: Groups) -> Figure:
    """Which tasks each method solves on each grid: the run in the middle, with its training tasks (Fig. 4)."""
    methods = [method for method in SOLVED_ROWS if any(name == method for name, _ in groups)]
    figure = Figure(figsize=(4.2 * len(GRIDS), 2.15 * len(methods)), layout="constrained")
    panels = figure.subplots(len(methods), len(GRIDS), squeeze=False)
    for method, row in zip(methods, panels, strict=True):
        for grid, axes in zip(GRIDS, row, strict=True):
            runs = groups.get((method, grid), ())
            if not runs:
                axes.set_axis_off()
                continue
            middle = middle_run(runs, "white")
            draw_tiles(axes, solved_tiles(middle, "white"))
            draw_training(axes, middle, "white")
            mean = np.mean([run["test_solved_percent"] for run in runs])
            axes.set_title(fill(f"{METHOD_NAMES[method]}, {grid}: {mean:.0f} % (n={len(runs)})", 48), fontsize=9)
            axes.set_xlabel("obstacle position" if method == methods[-1] else "")
    return figure


def study_figures(runs: Sequence[StoredRun]) -> dict[str, Figure]:
    """The figures that need no trained agents and whose runs are there: file stem -> figure."""
    groups = study_groups(runs)
    figures = {"jumping_metrics": metric_maps(), "jumping_randconv": randconv_samples()}
    figures |= {"jumping_trajectories": trajectories(), "jumping_validation": validation_map()}
    if not groups:
        return figures
    figures["jumping_solved"] = solved_matrix(groups)
    for grid, curves in by_grid(groups).items():
        named = {METHOD_NAMES[method]: curves[method] for method in CURVES if method in curves}
        figures[f"jumping_curves_{grid}"] = banded_curves(named, "test_solved_percent", f"{grid} grid")
    if epsilons := epsilon_scores(runs):
        figures["jumping_epsilon"] = epsilon_curve(epsilons)
    if colors := color_series(runs):
        figures["jumping_colors"] = color_bars(colors, METHOD_NAMES)
    return figures


def main(results: Path, images: Path) -> None:
    """Draws from the results in a folder into another."""
    figures = study_figures(read_runs([results], all_experiments()).of("jumping"))
    if not has_umap():
        print("no embeddings drawn: that needs an extra, pip install '.[report]'")
    elif embeddings := embeddings_figure(results):
        figures["jumping_embeddings"] = embeddings
    images.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        figure.savefig(images / f"{name}.png", dpi=90)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
