"""Do PSEs add to short shifts with few training tasks? ``python studies/jumping_shift_pse.py --out results``.

With 18 tasks and shifts of up to 10 pixels, `randconv+shift` solves all tasks and nothing is left to gain. Here it has
2, 4 or 6 training tasks and shifts of 2 or 5 pixels, less than the distance of the training tasks. The weight of the
PSEs is chosen on validation tasks with two seeds that are not reported, then ten seeds are trained without and with
PSEs. About 4 hours on one core; rerun the command to resume.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import tyro

from jumping_study import SHIFT_COEFFICIENTS, SHIFT_TASKS, SHIFTS, shift_batch, study_configs
from jumping_tables import paired_differences, variant_values
from jumping_variants import Variant
from pisces.cli.sweep import SweepOptions, run_sweep
from pisces.experiments.jumping.experiment import Jumping
from pisces.experiments.registry import all_experiments
from pisces.reports.results import StoredRun, read_runs
from pisces.reports.tables import Cell, markdown

SCORE = "validation_solved_percent"


@dataclass(frozen=True)
class Setting:
    """Where PSEs are added."""

    tasks: int
    """Number of training tasks."""
    shift: int
    """Largest shift, in pixels."""

    def variant(self, coefficient: float) -> Variant:
        """Runs with a weight of the PSEs; 0 is without PSEs."""
        changes = shift_batch(self.tasks, self.shift, coefficient, "0").configs()[0].changes
        return Variant("", "randconv+shift", changes)


SETTINGS = tuple(Setting(tasks, shift) for tasks in SHIFT_TASKS for shift in SHIFTS)


def chosen_coefficient(runs: Sequence[StoredRun], setting: Setting, first_seed: int = 1000) -> float | None:
    """The weight with the most validation tasks solved by the seeds for choosing; None if a run is missing."""
    tuning = [run for run in runs if run.config.seed >= first_seed]
    scores: dict[float, Sequence[float]] = {
        coefficient: variant_values(tuning, setting.variant(coefficient), SCORE) for coefficient in SHIFT_COEFFICIENTS
    }
    if any(len(values) < 2 for values in scores.values()):
        return None
    return max(scores, key=lambda coefficient: fmean(scores[coefficient]))


def shift_table(runs: Sequence[StoredRun]) -> str:
    """Unseen tasks solved without and with PSEs, the weight chosen on validation tasks."""
    rows = []
    for setting in SETTINGS:
        coefficient = chosen_coefficient(runs, setting)
        reported = [run for run in runs if run.config.seed < 1000]
        pair = [setting.variant(0.0), setting.variant(coefficient or SHIFT_COEFFICIENTS[0])]
        cells = [Cell(variant_values(reported, variant, "heldout_solved_percent")) for variant in pair]
        if coefficient is None:
            cells[1] = Cell(())
        more = paired_differences(reported, pair[0], pair[1], "heldout_solved_percent") if coefficient else ()
        shown = [cell.ours() for cell in (*cells, Cell(more, limits=(-100.0, 100.0)))]
        rows.append([str(setting.tasks), str(setting.shift), f"{coefficient:g}" if coefficient else "–", *shown])
    header = ["training tasks", "shift", "weight of PSEs", "without PSEs (%)", "with PSEs (%)"]
    return markdown([*header, "difference on the same seeds (percentage points)"], rows)


def main(
    seeds: str = "0-9",
    common: Annotated[SweepOptions, tyro.conf.arg(name="")] = SweepOptions(out=Path("results")),  # noqa: B008 (frozen)
) -> None:
    """Choose the weight of PSEs beside short shifts on validation tasks, then train without and with them.

    Args:
        seeds: Seeds to report.
        common: Where and how the runs are done.
    """
    run_sweep(Jumping(), study_configs(["shift-pse"]), common)
    runs = read_runs([common.out / "jumping" / "randconv+shift"], all_experiments()).of("jumping")
    configs: list[Any] = []
    for setting in SETTINGS:
        coefficient = chosen_coefficient(runs, setting)
        for weight in (0.0, coefficient) if coefficient else ():
            configs += shift_batch(setting.tasks, setting.shift, weight, seeds).configs()
    run_sweep(Jumping(), configs, common)


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
