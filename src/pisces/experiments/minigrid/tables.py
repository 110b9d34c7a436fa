"""Tables of MiniGrid: tasks solved by method, and gains over the agent without a loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pisces.experiments.minigrid.config import METHODS
from pisces.reports.results import StoredRun
from pisces.reports.tables import Cell, Table, paired_difference

Found = Mapping[tuple[str, str], Mapping[int, StoredRun]]
SOLVED_NOTE = (
    "Unseen tasks solved, in percent: mean, in parentheses the standard deviation between seeds, n = seeds, in "
    "brackets the 95 % CI of the mean. Columns: family of levels, and what differs between training and evaluation."
)
GAINS_NOTE = "Difference to `bc` or `ppo` on the same seeds, in points, with its 95 % CI."
MEASURE = "test_solved_percent"


def solved_table(runs: Iterable[StoredRun]) -> Table:
    """Unseen tasks solved, by method and shift."""
    found, columns = _by_cell(runs)
    rows: list[tuple[str | Cell, ...]] = []
    for method in _methods(found):
        cells = []
        for column in columns:
            own = found.get((method, column), {})
            values = tuple(float(own[seed][MEASURE]) for seed in sorted(own))
            cells.append(Cell(values, source=(method, column), compared=False))
        rows.append((f"`{method}`", *cells))
    return Table("minigrid", "MiniGrid: unseen tasks solved", SOLVED_NOTE, ("method", *columns), tuple(rows))


def gains_table(runs: Iterable[StoredRun]) -> Table:
    """Gains over the same agent without a loss, seed by seed."""
    found, columns = _by_cell(runs)
    rows: list[tuple[str | Cell, ...]] = []
    for method in _methods(found):
        base = method.partition("+")[0]
        if method != base:
            cells = [paired_difference(_gains(found, method, base, column), (-100.0, 100.0)) for column in columns]
            rows.append((f"`{method}`", *cells))
    return Table("minigrid_gains", "MiniGrid: gains", GAINS_NOTE, ("method", *columns), tuple(rows))


def _gains(found: Found, method: str, base: str, column: str) -> list[float]:
    own, other = found.get((method, column), {}), found.get((base, column), {})
    return [float(own[seed][MEASURE]) - float(other[seed][MEASURE]) for seed in sorted(own.keys() & other.keys())]


def _methods(found: Found) -> list[str]:
    return [method for method in METHODS if any(name == method for name, _ in found)]


def _by_cell(runs: Iterable[StoredRun]) -> tuple[dict[tuple[str, str], dict[int, StoredRun]], list[str]]:
    """The runs by method and column, then by seed, and the columns."""
    found: dict[tuple[str, str], dict[int, StoredRun]] = {}
    for run in runs:
        if run.experiment.cell(run.config) is not None:
            found.setdefault((run.config.method, run.config.where), {})[run.config.seed] = run
    return found, sorted({column for _, column in found})
