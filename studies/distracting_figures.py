"""Figure of Distracting Control: ``python studies/distracting_figures.py results docs/images``."""

from __future__ import annotations

import sys
from pathlib import Path

from pisces.experiments.distracting.figures import curve_figures
from pisces.experiments.distracting.tables import NO_RUNS
from pisces.experiments.registry import all_experiments
from pisces.reports.results import read_runs

FIGURE = "distracting_curves.png"


def main(results: Path, images: Path) -> None:
    """Draws the learning curves of the largest preset in a folder of results into another folder."""
    figures = curve_figures(read_runs([results], all_experiments()).of("distracting"))
    if not figures:
        print(NO_RUNS.strip())
        return
    images.mkdir(parents=True, exist_ok=True)
    _, figure = next(iter(figures.values()))
    figure.savefig(images / FIGURE, dpi=110)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
