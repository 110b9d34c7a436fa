"""Draws the jumping study's figures: `python -m pisces.reports.jumping_figures results docs/images [RUNS ...]`.

The embeddings need trained agents, which results/ does not hold: they are drawn only from further folders of runs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from pisces.experiments.jumping import EXPERIMENT
from pisces.reports.embeddings import embed_run, embedding_figure
from pisces.reports.figures import draw_tiles, draw_training, solved_tiles
from pisces.reports.jumping_tables import METHOD_NAMES, color_series, epsilon_scores, own_source
from pisces.reports.result_figures import banded_curves, by_grid, color_bars, epsilon_curve, middle_run
from pisces.reports.results import read_results, read_runs
from pisces.reports.tables import GRIDS
from pisces.reports.task_figures import metric_maps, randconv_samples

Result = Mapping[str, Any]
Groups = Mapping[tuple[str, str], Sequence[Result]]
CURVES = ("dropout+l2", "pse", "randconv", "randconv+bisimulation", "randconv+pse", "pisces-plain", "pisces")
"""Not pisces-plain-5, whose curve is that of five agents one after another."""
SOLVED_ROWS = (*CURVES[:-1], "pisces-plain-5", "pisces")
EMBEDDED = ("randconv+pse", "randconv+psm-l2", "randconv+bisimulation-cme")
"""PSEs, then one with the other embedding and one with the other metric (Fig. 4)."""


def study_groups(results: Sequence[Result]) -> Groups:
    """The methods' own runs with white obstacles that learned, by method and grid."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        source = own_source(result["config"]) if "grid" in result["config"] else None
        if source is not None and source[2:] == (False, 0.0) and result.get("curve"):
            groups.setdefault(source[:2], []).append(result)
    return groups


def solved_matrix(groups: Groups) -> Figure:
    """Which tasks each method solves on each grid: the run in the middle, with its training tasks (Fig. 3)."""
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


def study_figures(results: Sequence[Result]) -> dict[str, Figure]:
    """The figures that need no trained agents and whose runs are there: file stem -> figure."""
    groups = study_groups(results)
    figures = {"jumping_metrics": metric_maps(), "jumping_randconv": randconv_samples()}
    if not groups:
        return figures
    figures["jumping_solved"] = solved_matrix(groups)
    for grid, curves in by_grid(groups).items():
        named = {METHOD_NAMES[method]: curves[method] for method in CURVES if method in curves}
        figures[f"jumping_curves_{grid}"] = banded_curves(named, "test_solved_percent", f"{grid} grid")
    if epsilons := epsilon_scores(results):
        figures["jumping_epsilon"] = epsilon_curve(epsilons)
    if colors := color_series(results):
        figures["jumping_colors"] = color_bars(colors, METHOD_NAMES)
    return figures


def agents_figure(roots: Sequence[Path]) -> Figure | None:
    """How three agents embed the states of optimal episodes (Fig. 4); None if one of them is not there."""
    runs = read_runs(roots).of(EXPERIMENT)
    chosen = []
    for method in EMBEDDED:
        own = [run for run in runs if own_source(run.config) == (method, "wide", False, 0.0) and run.has_checkpoint]
        if not own:
            return None
        chosen.append((f"{method}, seed {own[0].config['seed']}", embed_run(own[0], "umap")))
    return embedding_figure(chosen)


def main(arguments: list[str]) -> None:
    """Draws from the results in a folder (the first argument) into another (the second)."""
    rows = [row for row in read_results(Path(arguments[0]) / EXPERIMENT).rows if "solved" in row]
    figures = study_figures(rows)
    if len(arguments) > 2:
        agents = agents_figure([Path(name) for name in arguments[2:]])
        if agents is None:
            print(f"no embeddings drawn: that takes trained agents of {', '.join(EMBEDDED)} in the folders of runs")
        else:
            figures["jumping_embeddings"] = agents
    folder = Path(arguments[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=90)


if __name__ == "__main__":
    main(sys.argv[1:])
