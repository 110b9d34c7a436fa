"""Picture of MiniGrid's study: ``python studies/minigrid_figures.py results docs/images``.

Agreement of each method's features with the exact metric, and the unseen tasks that the method solves.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from minigrid_tuning import tuned_runs
from pisces.experiments.minigrid.tables import AGREEMENT, MEASURE
from pisces.experiments.registry import all_experiments
from pisces.reports.results import StoredRun, StoredRuns, read_runs

PICTURE = "minigrid_agreement.png"
NEAR = np.array([0.04, 2.6])
"""Labels of points that are nearer than this, in share and percent, would overlap."""


def agreement_figure(runs: StoredRuns, root: Path) -> Figure | None:
    """Draws a panel per family of levels; None without runs."""
    families = tuned_runs(runs, root)
    if not families:
        return None
    figure = Figure(figsize=(6.4 * len(families), 4.4), layout="constrained")
    for axes, (family, groups) in zip(
        figure.subplots(1, len(families), squeeze=False)[0], families.items(), strict=True
    ):
        _draw_methods(axes, groups)
        axes.set_title(family, fontsize=10)
    return figure


def _draw_methods(axes: Axes, groups: Mapping[str, Sequence[StoredRun]]) -> None:
    """Draws a point per method, means over seeds with standard errors."""
    placed: list[NDArray[np.float64]] = []
    for method, own in groups.items():
        values = np.array([(run[AGREEMENT[1]], run[MEASURE]) for run in own], dtype=float)
        mean, error = values.mean(axis=0), values.std(axis=0, ddof=min(1, len(own) - 1)) / np.sqrt(len(own))
        color = "tab:blue" if "pse" in method else "0.45"
        axes.errorbar(*mean, xerr=error[0], yerr=error[1], fmt="o", color=color, capsize=2, markersize=4)
        # Beside a point whose label is on its right, a label goes to the left.
        crowded = any((np.abs(mean - other) < NEAR).all() for other in placed)
        shift, side = ((-5, -10), "right") if crowded else ((5, 4), "left")
        axes.annotate(method, mean, xytext=shift, textcoords="offset points", ha=side, fontsize=8, color=color)
        placed += [] if crowded else [mean]
    axes.margins(x=0.12)
    axes.set_xlabel("nearest neighbor by features is one by the exact metric (share)")
    axes.set_ylabel("unseen tasks solved (%)")
    axes.spines[["top", "right"]].set_visible(False)


def main(root: Path, images: Path) -> None:
    """Draws the picture from the results in a folder."""
    figure = agreement_figure(read_runs([root / "minigrid"], all_experiments()), root)
    if figure is not None:
        figure.savefig(images / PICTURE, dpi=110)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
