"""Keeps the tables in documents equal to the committed results: `python -m pisces.reports.readme results README.md`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from pisces.reports.distracting import (
    alignment_markdown,
    distracting_markdown,
    distracting_train_markdown,
    plain_markdown,
)
from pisces.reports.figures import draw_tiles, draw_training, solved_tiles
from pisces.reports.grid import grid_table
from pisces.reports.jumping_study import SECTIONS
from pisces.reports.lqr import lqr_table
from pisces.reports.lqr_ablation import ablation_table, moments_table, sparsity_table
from pisces.reports.results import read_results
from pisces.reports.tables import jumping_table, own_run

TABLES: Mapping[str, Callable[[tuple[dict[str, Any], ...]], str]] = {
    "jumping": jumping_table,
    "grid": grid_table,
    "lqr": lqr_table,
    "lqr_ablation": ablation_table,
    "lqr_sparsity": sparsity_table,
    "distracting": distracting_markdown,
    "distracting-train": distracting_train_markdown,
    "distracting-alignment": alignment_markdown,
    "distracting-plain": plain_markdown,
    **SECTIONS,
}
MEASURED: Mapping[str, Callable[[Path], str]] = {"lqr_moments": moments_table}
"""Tables of what is not a run: of files somewhere below the results."""

PICTURED = ("randconv", "randconv+pse")
PICTURE = Path("docs/images/jumping.png")


def fill(document: str, results: tuple[dict[str, Any], ...], root: Path = Path("results")) -> str:
    """Replaces what stands between ``<!-- table: NAME -->`` and ``<!-- end -->`` by the table of that name."""

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        text = MEASURED[name](root) if name in MEASURED else TABLES[name](results)
        return f"<!-- table: {name} -->\n{text}<!-- end -->"

    return re.sub(r"<!-- table: ([\w-]+) -->\n.*?<!-- end -->", replace, document, flags=re.DOTALL)


def picture(results: tuple[dict[str, Any], ...], methods: tuple[str, ...] = PICTURED) -> Figure:
    """Draws which tasks most runs of each method solve on the wide grid, one panel per method that has runs."""
    groups = {
        method: [
            r
            for r in results
            if own_run(r["config"]) and (r["config"]["method"], r["config"].get("grid")) == (method, "wide")
        ]
        for method in methods
    }
    shown = {method: members for method, members in groups.items() if members}
    figure = Figure(figsize=(11, 2.8), layout="constrained")
    for axes, (method, members) in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown.items(), strict=True):
        median = np.median([solved_tiles(member, "white") for member in members], axis=0)
        draw_tiles(axes, (median >= 0.5).astype(np.float64))
        draw_training(axes, members[0], "white")
        mean = np.mean([member["test_solved_percent"] for member in members])
        axes.set_title(f"{method}: {mean:.0f} % of unseen tasks solved (mean of {len(members)} seeds)", fontsize=10)
    return figure


def main(arguments: list[str]) -> None:
    """Fills the tables of the documents (all arguments but the first) from the results in a folder (the first)."""
    root = Path(arguments[0])
    results = read_results(root).rows
    picture(results).savefig(PICTURE, dpi=110)
    for name in arguments[1:]:
        path = Path(name)
        path.write_text(fill(path.read_text(), results, root))


if __name__ == "__main__":
    main(sys.argv[1:])
