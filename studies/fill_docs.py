"""Fills the tables of README and docs from results: ``python studies/fill_docs.py results README.md docs/*.md``.

What stands between ``<!-- table: NAME -->`` and ``<!-- end -->`` is replaced by the table of that name.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from claims import COMBINED
from distracting_ablation import ablation_table as distracting_ablation
from distracting_gradients import gradient_table
from distracting_longer import longer_table
from distracting_paper_size import paper_size_table
from jumping_color_tuning import tuned_table
from jumping_epsilon import epsilon_metric_table
from jumping_meta import meta_table
from jumping_random_grid import random_grid_table
from jumping_shift_pse import shift_table
from jumping_tables import SECTIONS
from lqr_curves import ipo_table
from lqr_tables import ablation_table, moments_table, sparsity_table
from metric_examples import aggregation_table, benchmark_cases
from minigrid_tables import headline_table, levels_table, other_rule_table, overhead_table, ppo_table, trials_table
from minigrid_tuning import TABLES as TUNED
from minigrid_tuning import settings_table as minigrid_settings
from pisces.experiments.distracting.tables import (
    alignment_markdown,
    cost_markdown,
    distracting_markdown,
    plain_markdown,
)
from pisces.experiments.jumping.report.tables import cell_of, summary_table
from pisces.experiments.jumping.report.tiles import draw_tiles, draw_training, solved_tiles
from pisces.experiments.lqr.tables import summary_table as lqr_table
from pisces.experiments.minigrid.tables import agreement_table, gains_table, matches_table, solved_table
from pisces.experiments.registry import all_experiments
from pisces.reports.results import StoredRun, StoredRuns, read_runs
from readme_animation import caption
from robustness_tables import crash_table, fuzz_table

NO_LEVELS = "Not run yet.\n"
MAIN_METHODS = ("dropout+l2", "bisimulation-transfer", "pse", "randconv", "randconv+pi-bisimulation", "randconv+pse")
"""The rows of the README's table."""
TABLES: Mapping[str, tuple[str, Callable[[Sequence[StoredRun]], str]]] = {
    "jumping": ("jumping", lambda runs: summary_table(runs, MAIN_METHODS)),
    "jumping_all": ("jumping", summary_table),
    "episodes_caption": ("jumping", caption),
    "jumping_shift_pse": ("jumping", shift_table),
    "minigrid": ("minigrid", lambda runs: solved_table(runs).body() if runs else NO_LEVELS),
    "minigrid-matches": ("minigrid", lambda runs: matches_table(runs).body() if runs else NO_LEVELS),
    "minigrid-agreement": ("minigrid", lambda runs: agreement_table(runs).body() if runs else NO_LEVELS),
    "minigrid-ppo": ("minigrid", ppo_table),
    "minigrid-headline": ("minigrid", headline_table),
    "minigrid-levels": ("minigrid", levels_table),
    "minigrid-gains": ("minigrid", lambda runs: gains_table(runs).body() if runs else NO_LEVELS),
    "lqr": ("lqr", lqr_table),
    "lqr_ablation": ("lqr", ablation_table),
    "lqr_sparsity": ("lqr", sparsity_table),
    "distracting": ("distracting", distracting_markdown),
    "distracting-train": ("distracting", lambda runs: distracting_markdown(runs, "distracting_train")),
    "distracting-gains": ("distracting", lambda runs: distracting_markdown(runs, "distracting_gains")),
    "distracting-ablation": ("distracting", distracting_ablation),
    "distracting-longer": ("distracting", longer_table),
    "distracting-alignment": ("distracting", alignment_markdown),
    "distracting-plain": ("distracting", plain_markdown),
    "distracting-cost": ("distracting", cost_markdown),
    "distracting-paper-size": ("distracting", paper_size_table),
    **{name: ("jumping", section) for name, section in SECTIONS.items()},
}
"""Name -> experiment and function of its runs."""
MEASURED: Mapping[str, Callable[[Path], str]] = {
    "distracting-gradients": gradient_table,
    "aggregation": aggregation_table,
    "markov_cases": benchmark_cases,
    "lqr_ipo": ipo_table,
    "lqr_moments": moments_table,
    "jumping_colors_tuned": tuned_table,
    "jumping_meta": meta_table,
    "jumping_epsilon_metric": epsilon_metric_table,
    "jumping_random_grid": random_grid_table,
    "fuzz": fuzz_table,
    "crash": crash_table,
    "minigrid-trials": trials_table,
    "minigrid-settings": minigrid_settings,
    "minigrid-other-rule": other_rule_table,
    "sb3-overhead": overhead_table,
}
"""Tables of what is not a run: of files below the results."""

OF_ALL_RUNS: Mapping[str, Callable[[StoredRuns, Path], str]] = {**COMBINED, **TUNED}
"""Tables of all runs and of files below the results."""
PICTURED = ("randconv", "randconv+pse")
PICTURE = Path("docs/images/jumping.png")


def fill(document: str, runs: StoredRuns, root: Path) -> str:
    """Replaces the tables of a document."""

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        if name in OF_ALL_RUNS:
            text = OF_ALL_RUNS[name](runs, root)
        elif name in MEASURED:
            text = MEASURED[name](root)
        else:
            experiment, table = TABLES[name]
            text = table(runs.of(experiment))
        return f"<!-- table: {name} -->\n{text}<!-- end -->"

    return re.sub(r"<!-- table: ([\w-]+) -->\n.*?<!-- end -->", replace, document, flags=re.DOTALL)


def picture(runs: Sequence[StoredRun], methods: Sequence[str] = PICTURED) -> Figure:
    """Draws the share of runs that solve each task of the wide grid, one panel per method that has runs."""
    groups = {
        method: [run for run in runs if cell_of(run.config) == (method, "wide", False, 0.0)] for method in methods
    }
    shown = {method: own for method, own in groups.items() if own}
    figure = Figure(figsize=(11, 2.8), layout="constrained")
    for axes, (method, own) in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown.items(), strict=True):
        draw_tiles(axes, np.mean([solved_tiles(run, "white") for run in own], axis=0))
        draw_training(axes, own[0], "white")
        mean = np.mean([run["test_solved_percent"] for run in own])
        axes.set_title(f"{method}: {mean:.0f} % of unseen tasks solved ({len(own)} seeds)", fontsize=10)
    return figure


def main(root: Path, documents: Sequence[Path]) -> None:
    """Fills documents from the results in a folder."""
    runs = read_runs([root], all_experiments())
    for line in runs.skipped:
        print(f"left out: {line}", file=sys.stderr)
    picture(runs.of("jumping")).savefig(PICTURE, dpi=110)
    for path in documents:
        path.write_text(fill(path.read_text(), runs, root))


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
