"""Figures of linear control: ``python studies/lqr_figures.py results docs/images``."""

from __future__ import annotations

import sys
from pathlib import Path

from lqr_curves import norm_figure, read_curves
from lqr_tables import ablation_figure
from pisces.experiments.lqr.figures import error_bars, weight_columns
from pisces.experiments.registry import all_experiments
from pisces.reports.results import read_runs

DRAWINGS = {"lqr_errors": error_bars, "lqr_weights": weight_columns, "lqr_ablation": ablation_figure}


def main(results: Path, images: Path) -> None:
    """Draws the figures from the results in a folder into another."""
    runs = read_runs([results], all_experiments()).of("lqr")
    images.mkdir(parents=True, exist_ok=True)
    for name, draw in DRAWINGS.items():
        draw(runs).savefig(images / f"{name}.png", dpi=110)
    if read_curves(results):
        norm_figure(results).savefig(images / "lqr_norms.png", dpi=110)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
