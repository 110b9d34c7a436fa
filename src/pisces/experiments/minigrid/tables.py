"""Tables of MiniGrid: tasks solved by method, and gains over the agent without a loss."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping

from pisces.experiments.minigrid.config import METHODS
from pisces.reports.results import StoredRun
from pisces.reports.tables import Cell, Table, paired_difference

Found = Mapping[tuple[str, str], Mapping[int, StoredRun]]
Counted = Callable[[StoredRun], bool]
"""Tells which runs a table counts."""
SOLVED_NOTE = (
    "Unseen tasks solved, in percent: mean, in parentheses the standard deviation between seeds, n = seeds, in "
    "brackets the 95 % CI of the mean. Columns: family of levels, and what differs between training and evaluation."
)
GAINS_NOTE = (
    "Difference to the method without the last part of the name (`bc+pse` to `bc`, `bc+colors+pse` to `bc+colors`) on "
    "the same seeds, in points, with its 95 % CI."
)
MATCHES_NOTE = (
    "Matched: share of the expert's states in unseen tasks that have a state in training with the same future actions. "
    "Room: percent of unseen tasks that `bc` does not solve. Gain: on the same seeds, with its 95 % CI."
)
AGREEMENT_NOTE = (
    "Cosine distances of features against the policy similarity metric, expert's states of unseen tasks to those of "
    "training tasks: Spearman's correlation, and the share of states whose nearest neighbor is a nearest by the metric."
)
PREDICTED = ("bc+pse", "bc+pse-states")
"""Methods whose gains stand beside what is known without them."""
MEASURE, MATCHED = "test_solved_percent", "test_matched_share"
AGREEMENT = ("test_rank_correlation", "test_neighbor_agreement")


def has_usual_settings(run: StoredRun) -> bool:
    """Whether a run has its method's settings."""
    return run.experiment.cell(run.config) is not None


def solved_table(runs: Iterable[StoredRun], counted: Counted = has_usual_settings) -> Table:
    """Unseen tasks solved, by method and shift."""
    found, columns = by_cell(runs, counted)
    rows: list[tuple[str | Cell, ...]] = []
    for method in _methods(found):
        cells = []
        for column in columns:
            own = found.get((method, column), {})
            values = tuple(float(own[seed][MEASURE]) for seed in sorted(own))
            cells.append(Cell(values, source=(method, column), compared=False))
        rows.append((f"`{method}`", *cells))
    return Table("minigrid", "MiniGrid: unseen tasks solved", SOLVED_NOTE, ("method", *columns), tuple(rows))


def gains_table(runs: Iterable[StoredRun], counted: Counted = has_usual_settings) -> Table:
    """Gains over the same agent without a loss, seed by seed."""
    found, columns = by_cell(runs, counted)
    rows: list[tuple[str | Cell, ...]] = []
    for method in _methods(found):
        base = base_method(method)
        if method != base:
            cells = [
                paired_difference(paired_gains(found, method, base, column), (-100.0, 100.0)) for column in columns
            ]
            rows.append((f"`{method}`", *cells))
    return Table("minigrid_gains", "MiniGrid: gains", GAINS_NOTE, ("method", *columns), tuple(rows))


def matches_table(runs: Iterable[StoredRun]) -> Table:
    """What is known before training with PSEs, the share of matched states and the room, beside the gain."""
    found, columns = by_cell(runs)
    rows: list[tuple[str | Cell, ...]] = []
    for column in columns:
        plain = found.get(("bc", column), {})
        shares = tuple(100 * float(run[MATCHED]) for run in plain.values() if MATCHED in run)
        room = tuple(100 - float(run[MEASURE]) for run in plain.values())
        gains = [paired_difference(paired_gains(found, method, "bc", column), (-100.0, 100.0)) for method in PREDICTED]
        if plain:
            rows.append((column, Cell(shares, compared=False), Cell(room, compared=False), *gains))
    names = (f"gain of `{method}` (points)" for method in PREDICTED)
    header = ("levels, shift", "matched states (%)", "room of `bc` (points)", *names)
    return Table("minigrid_matches", "MiniGrid: matches, room and gain", MATCHES_NOTE, header, tuple(rows))


def agreement_table(runs: Iterable[StoredRun], counted: Counted = has_usual_settings) -> Table:
    """How well each method's features agree with the metric on unseen tasks, beside the tasks that it solves."""
    found, columns = by_cell(runs, counted)
    rows: list[tuple[str | Cell, ...]] = []
    for column, method in itertools.product(columns, _methods(found)):
        own = [run for run in found.get((method, column), {}).values() if AGREEMENT[0] in run]
        if own:
            shares = [tuple(float(run[name]) for run in own) for name in AGREEMENT]
            limits = ((-1.0, 1.0), (0.0, 1.0))
            pairs = zip(shares, limits, strict=True)
            cells = [Cell(values, compared=False, digits=2, limits=limit) for values, limit in pairs]
            solved = Cell(tuple(float(run[MEASURE]) for run in own), compared=False)
            rows.append((f"`{method}`, {column}", *cells, solved))
    header = ("method, levels, shift", "rank correlation", "neighbor agreement", "unseen tasks solved (%)")
    return Table("minigrid_agreement", "MiniGrid: agreement with the metric", AGREEMENT_NOTE, header, tuple(rows))


def paired_gains(found: Found, method: str, base: str, column: str) -> list[float]:
    """Differences of two methods in one column, seed by seed."""
    own, other = found.get((method, column), {}), found.get((base, column), {})
    return [float(own[seed][MEASURE]) - float(other[seed][MEASURE]) for seed in sorted(own.keys() & other.keys())]


def base_method(method: str) -> str:
    """The method without the last part of its name: `bc` for `bc+pse` and `bc-unnormalized`."""
    return method.rpartition("+")[0] or method.partition("-")[0]


def _methods(found: Found) -> list[str]:
    return [method for method in METHODS if any(name == method for name, _ in found)]


def by_cell(
    runs: Iterable[StoredRun], counted: Counted = has_usual_settings
) -> tuple[dict[tuple[str, str], dict[int, StoredRun]], list[str]]:
    """The runs by method and column, then by seed, and the columns."""
    found: dict[tuple[str, str], dict[int, StoredRun]] = {}
    for run in runs:
        if counted(run):
            found.setdefault((run.config.method, run.config.where), {})[run.config.seed] = run
    return found, sorted({column for _, column in found})
