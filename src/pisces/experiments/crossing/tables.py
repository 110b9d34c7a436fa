"""The table of the crossing."""

from __future__ import annotations

from collections.abc import Iterable

from pisces.experiments.crossing.config import METHODS
from pisces.reports.results import StoredRun
from pisces.reports.tables import Cell, Table, paired_difference

COLUMNS = {
    "train_levels_percent": "training levels solved (%)",
    "validation_levels_percent": "validation levels solved (%)",
    "test_levels_percent": "unseen levels solved (%)",
}
NOTE = (
    "Mean, in parentheses the standard deviation between seeds, n = seeds, in brackets the 95 % CI of the mean. "
    "The last row has differences of `ppo+pse` to `ppo` on the same seeds."
)


def crossing_table(runs: Iterable[StoredRun]) -> Table:
    """Levels solved by each method, and the gain of `ppo+pse` over `ppo` seed by seed."""
    found: dict[str, dict[int, StoredRun]] = {method: {} for method in METHODS}
    for run in runs:
        if run.experiment.cell(run.config) is not None:
            found[run.config.method][run.config.seed] = run
    rows: list[tuple[str | Cell, ...]] = []
    for method, own in found.items():
        source = (method, "crossing")
        values = [tuple(float(own[seed][column]) for seed in sorted(own)) for column in COLUMNS]
        rows.append((f"`{method}`", *(Cell(numbers, source=source, compared=False) for numbers in values)))
    seeds = sorted(found["ppo"].keys() & found["ppo+pse"].keys())
    gains = [[found["ppo+pse"][s][column] - found["ppo"][s][column] for s in seeds] for column in COLUMNS]
    rows.append(("gain, same seeds", *(paired_difference(numbers, (-100.0, 100.0)) for numbers in gains)))
    header = ("method", *COLUMNS.values())
    return Table("crossing", "Crossing: levels solved", NOTE, header, tuple(rows))
