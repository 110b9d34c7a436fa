"""Draws the figures of the LQR study: `python -m pisces.reports.lqr_figures results docs/images`."""

from __future__ import annotations

import sys
from pathlib import Path

from pisces.experiments.lqr import EXPERIMENT
from pisces.reports.lqr import error_bars, weight_columns
from pisces.reports.lqr_ablation import ablation_figure
from pisces.reports.results import read_results

DRAWINGS = {"lqr_errors": error_bars, "lqr_weights": weight_columns, "lqr_ablation": ablation_figure}


def main(arguments: list[str]) -> None:
    """Draws from the results in a folder (the first argument) into another (the second)."""
    results = read_results(Path(arguments[0]) / EXPERIMENT).rows
    folder = Path(arguments[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in DRAWINGS.items():
        draw(results).savefig(folder / f"{name}.png", dpi=110)


if __name__ == "__main__":
    main(sys.argv[1:])
