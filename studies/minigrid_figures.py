"""Picture of MiniGrid's study: ``python studies/minigrid_figures.py results docs/images``.

Agreement of each method's features with the exact metric, and the unseen tasks that the method solves.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from minigrid_tuning import tuned_runs
from pisces.experiments.minigrid.tables import AGREEMENT, MEASURE
from pisces.experiments.registry import all_experiments
from pisces.reports.results import StoredRun, StoredRuns, read_runs

PICTURE = "minigrid_agreement.png"
PLACES = [(x, y) for distance in (1, 2, 3) for y in (4, -10, 14, -20) for x in (5 * distance, -5 * distance)]
"""Offsets of a label from its point, in points; the first without an overlap is taken."""


def agreement_figure(runs: StoredRuns, root: Path) -> Figure | None:
    """Draws a panel per family of levels; None without runs."""
    families = tuned_runs(runs, root)
    if not families:
        return None
    figure = Figure(figsize=(6.4 * len(families), 4.4), layout="constrained")
    panels = figure.subplots(1, len(families), squeeze=False)[0]
    means = [_draw_methods(axes, groups) for axes, groups in zip(panels, families.values(), strict=True)]
    for axes, family in zip(panels, families, strict=True):
        axes.set_title(family, fontsize=10)
        axes.margins(x=0.12)
        axes.set_xlabel("nearest neighbor by features is one by the exact metric (share)")
        axes.set_ylabel("unseen tasks solved (%)")
        axes.spines[["top", "right"]].set_visible(False)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # labels are placed in pixels, so the layout must be known
    for axes, points in zip(panels, means, strict=True):
        _label(axes, points, canvas.get_renderer())
    return figure


def _draw_methods(axes: Axes, groups: Mapping[str, Sequence[StoredRun]]) -> dict[str, NDArray[np.float64]]:
    """Draws a point per method, means over seeds with standard errors; returns the means."""
    means: dict[str, NDArray[np.float64]] = {}
    for method, own in groups.items():
        values = np.array([(run[AGREEMENT[1]], run[MEASURE]) for run in own], dtype=float)
        means[method] = values.mean(axis=0)
        error = values.std(axis=0, ddof=min(1, len(own) - 1)) / np.sqrt(len(own))
        style = {"color": _color(method), "fmt": "o", "capsize": 2, "markersize": 4, "elinewidth": 0.8}
        axes.errorbar(*means[method], xerr=error[0], yerr=error[1], **style)
    return means


def _label(axes: Axes, points: Mapping[str, NDArray[np.float64]], renderer: RendererAgg) -> None:
    """Writes each method's name beside its point, where it covers no other name and no point."""
    pixels = axes.transData.transform(np.array(list(points.values())))
    taken = [Bbox.from_bounds(x - 4, y - 4, 8, 8) for x, y in pixels]
    for method, point in points.items():
        for shift in PLACES:
            side = "left" if shift[0] > 0 else "right"
            text = axes.annotate(
                method, point, xytext=shift, textcoords="offset points", ha=side, fontsize=8, color=_color(method)
            )
            box = text.get_window_extent(renderer)
            if shift == PLACES[-1] or not box.count_overlaps(taken):
                taken.append(box)
                break
            text.remove()


def _color(method: str) -> str:
    return "tab:blue" if "pse" in method else "0.45"


def main(root: Path, images: Path) -> None:
    """Draws the picture from the results in a folder."""
    figure = agreement_figure(read_runs([root / "minigrid"], all_experiments()), root)
    if figure is not None:
        figure.savefig(images / PICTURE, dpi=110)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
