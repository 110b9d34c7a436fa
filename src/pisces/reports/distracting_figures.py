"""Draws the figure of Distracting Control: `python -m pisces.reports.distracting_figures results docs/images`."""

from __future__ import annotations

import sys
from pathlib import Path

from pisces.experiments.distracting import EXPERIMENT
from pisces.reports.distracting import NO_RUNS, curve_figures
from pisces.reports.results import read_results

FIGURE = "distracting_curves.png"


def main(arguments: list[str]) -> None:
    """Draws the learning curves of the largest preset in a folder of results (the first argument) into another."""
    figures = curve_figures(read_results(Path(arguments[0]) / EXPERIMENT).rows)
    if not figures:
        print(NO_RUNS.strip())
        return
    folder = Path(arguments[1])
    folder.mkdir(parents=True, exist_ok=True)
    _, figure = next(iter(figures.values()))
    figure.savefig(folder / FIGURE, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1:])
