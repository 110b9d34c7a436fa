"""Tables of linear-quadratic control: ours vs. paper."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

from pisces.experiments.lqr.config import FIRST_TUNING_SEED, SIZES, LQRConfig
from pisces.experiments.lqr.paper import LQR
from pisces.reports.results import StoredRun
from pisces.reports.tables import Cell, Table, markdown, summary

Cells = dict[tuple[str, int], list[dict[str, Any]]]


def is_reported(config: LQRConfig) -> bool:
    """Whether a run counts for the table: paper preset, no overrides, no seed that settings were chosen on."""
    return config.preset == "paper" and not config.changes and config.seed < FIRST_TUNING_SEED


def seeds_by_cell(runs: Iterable[StoredRun]) -> Cells:
    """Returns the rows of the reported seeds by method and number of distractors."""
    cells: dict[tuple[str, int], dict[int, dict[str, Any]]] = {}
    for run in runs:
        if is_reported(run.config):
            cells.setdefault((run.config.method, run.config.distractors), {})[run.config.seed] = run.result
    return {cell: [rows[seed] for seed in sorted(rows)] for cell, rows in cells.items()}


def errors_of(rows: Iterable[Mapping[str, Any]]) -> list[float]:
    """The test errors of a cell, all finite: reading results leaves out unstable seeds and reports them."""
    return [float(row["error"]) for row in rows]


def summary_table(runs: Iterable[StoredRun]) -> str:
    """Error of the cost in an unseen environment, ours vs. paper."""
    cells = seeds_by_cell(runs)
    rows = []
    for method, published in LQR.items():
        if any((method, size) in cells for size in SIZES):
            parts = [f"{_ours(cells.get((method, size), []))} / {published[size]}" for size in SIZES]
            rows.append([f"`{method}`", *parts])
    return markdown(["method", *(f"{size} distractors: ours / paper" for size in SIZES)], rows)


def report_table(runs: Iterable[StoredRun]) -> Table:
    """The same table with all that a report tells of a cell."""
    cells = seeds_by_cell(runs)

    def cell(method: str, size: int) -> Cell:
        errors = tuple(errors_of(cells.get((method, size), [])))
        digits = 4 if errors and mean(errors) < 0.1 else 1
        limits = (0.0, math.inf)
        return Cell(errors, LQR[method][size], source=("lqr", method, size), limits=limits, digits=digits)

    rows: list[tuple[str | Cell, ...]] = [(method, *(cell(method, size) for size in SIZES)) for method in LQR]
    note = (
        "Error of the cost against the oracle's. Ours / the paper's: mean, in parentheses the standard deviation "
        "between seeds, n = seeds, in brackets the 95 % CI of the mean. Seeds whose closed loop is unstable in the "
        "unseen environment have no finite error and are left out."
    )
    header = ("method", *(f"{size} distractors" for size in SIZES))
    return Table("lqr", "Linear control with distractors: error in an unseen environment", note, header, tuple(rows))


def _ours(rows: Sequence[Mapping[str, Any]]) -> str:
    errors = errors_of(rows)
    return summary(errors, 1 if not errors or mean(errors) >= 0.1 else 4)
