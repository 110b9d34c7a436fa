"""The jumping task's study as Markdown: every part's table, and the commands that make its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from jumping_epsilon import EPSILONS
from jumping_study import COLORS_WITH_TABLE_1, STUDY, Batch
from jumping_variants import (
    COLOR_GAINS,
    COLOR_VARIANTS,
    EARLY_GAINS,
    GAINS,
    LOSS,
    MAIN,
    PASSTHROUGH,
    PASSTHROUGH_WITH_PSES,
    RECIPE,
    Variant,
)
from pisces.envs.jumping.tasks import DECISIONS
from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.jumping.paper import JUMPING_COLORS
from pisces.experiments.jumping.report.tables import COLOR_SPREAD, color_table, table_1, table_2
from pisces.reports.results import StoredRun
from pisces.reports.tables import Cell, Table, markdown

Row = Mapping[str, Any]
Runs = Sequence[StoredRun]
SPEED_PERCENT = 80.0
GAIN_HEADER = ("without PSEs (%)", "with PSEs (%)", "difference on the same seeds (percentage points)")


def part_section(part: str, table: Callable[[Runs], str], others: Sequence[Batch] = ()) -> Callable[[Runs], str]:
    """A function of runs that gives a part's table and, under it, the commands behind it and those of other parts."""

    def section(runs: Runs) -> str:
        commands = "\n".join(batch.command() for batch in (*STUDY[part], *others))
        return f"{table(runs)}\n```bash\n{commands}\n```\n"

    return section


def body(make: Callable[[Iterable[StoredRun]], Table]) -> Callable[[Runs], str]:
    """A function of runs that gives a table without its title."""

    def text(runs: Runs) -> str:
        table = make(runs)
        return f"{table.note}\n\n" + table.markdown().partition(f"{table.note}\n\n")[2]

    return text


def variant_values(runs: Iterable[StoredRun], variant: Variant, value: str, colors: bool = False) -> tuple[float, ...]:
    """A value of a variant's runs."""
    return tuple(_seeds_and_values(runs, variant, value, colors).values())


def paired_differences(
    runs: Runs, first: Variant, other: Variant, value: str, colors: bool = False
) -> tuple[float, ...]:
    """How much more the other variant's runs have of a value, on the seeds that both have."""
    before, after = (_seeds_and_values(runs, variant, value, colors) for variant in (first, other))
    return tuple(after[seed] - before[seed] for seed in sorted(before.keys() & after.keys()))


def _seeds_and_values(runs: Iterable[StoredRun], variant: Variant, value: str, colors: bool) -> dict[int, float]:
    found = [run for run in runs if value in run and _is_run_of(run.config, variant, colors)]
    return {run.config.seed: float(run[value]) for run in found}


def _is_run_of(config: JumpingConfig, variant: Variant, colors: bool) -> bool:
    own = (config.method, config.grid, config.colors, config.preset)
    return own == (variant.method, variant.grid, colors, "paper") and config.changes == variant.changes


def variant_table(variants: Sequence[Variant], paired: bool = False) -> Callable[[Runs], str]:
    """Unseen tasks, and those that are not validation tasks either, solved by variants of a method.

    Args:
        variants: the rows.
        paired: whether to compare each row with the first, on the seeds that both have.
    """
    header = ["variant", "unseen tasks solved (%)", "without the validation tasks (%)"]
    header += ["difference to the first row on the same seeds (percentage points)"] if paired else []

    def text(runs: Runs) -> str:
        rows = []
        for variant in variants:
            values = [variant_values(runs, variant, f"{part}_solved_percent") for part in ("test", "heldout")]
            row = [variant.label, *(Cell(found).ours() for found in values)]
            if paired and variant is variants[0]:
                row.append("")
            elif paired:
                more = paired_differences(runs, variants[0], variant, "test_solved_percent")
                row.append(Cell(more, limits=(-100.0, 100.0)).ours())
            rows.append(row)
        return markdown(header, rows)

    return text


def color_section(runs: Runs) -> str:
    """The task with colors, and variants of its methods; those of the published code: ours vs. paper."""
    table_1_changes = COLORS_WITH_TABLE_1.configs()[0].changes
    rows = []
    for variant in (*COLOR_VARIANTS, Variant("PSEs, hyperparameters of Table 1", "pse", table_1_changes)):
        published = JUMPING_COLORS.get(variant.method, {}) if "network" in variant.changes else {}
        cells = []
        for color in ("red", "green"):
            values = variant_values(runs, variant, f"{color}_test_solved_percent", colors=True)
            cells.append(str(Cell(values, published.get(color), *COLOR_SPREAD, compared=bool(published))))
        rows.append([variant.label, *cells])
    return f"{body(color_table)(runs)}\n{markdown(['variant', 'red', 'green'], rows)}"


def passthrough_section(runs: Runs) -> str:
    """RandConv's pass-through sampling at every call and once per run, without and with PSEs."""
    return "\n".join(variant_table(variants, paired=True)(runs) for variants in (PASSTHROUGH, PASSTHROUGH_WITH_PSES))


def tasks_table(runs: Runs) -> str:
    """Unseen tasks solved after training on fewer tasks of the wide grid."""
    rows = []
    for count in (6, 9, 12, 18):
        changes = {} if count == 18 else {"training_tasks": count}
        variants = [Variant(str(count), method, changes) for method in ("randconv", "randconv+pse")]
        cells = [variant_values(runs, variant, "test_solved_percent") for variant in variants]
        rows.append([str(count), f"{_iterations(count):,}", *(Cell(values).ours() for values in cells)])
    return markdown(["training tasks", "iterations", "`randconv` (%)", "`randconv+pse` (%)"], rows)


def _iterations(tasks: int) -> int:
    """Training iterations with so many tasks: an epoch is a pass over their optimal episodes."""
    settings = JumpingConfig.make("randconv", "paper").imitation
    return settings.epochs * (tasks * DECISIONS // settings.batch_size + 1)


def epsilon_table(runs: Runs) -> str:
    """Unseen tasks solved by the suboptimality of the metric's policies, for both definitions of the metric."""
    rows = []
    for epsilon in EPSILONS:
        own = {"epsilon": epsilon} if epsilon else {}
        variants = [Variant("", "randconv+pse", own | changes) for changes in ({}, {"metric": "psm-mdp"})]
        cells = [variant_values(runs, variant, "test_solved_percent") for variant in variants]
        rows.append([f"{epsilon:g}", *(Cell(values).ours() for values in cells)])
    return markdown(["ε", "metric along optimal episodes (%)", "with the policies' own transitions (%)"], rows)


def gain_table(runs: Runs) -> str:
    """Unseen tasks solved without and with PSEs, wherever the study has both."""
    rows = [[pair[0].label, *_gain(runs, pair, "test_solved_percent")] for pair in GAINS]
    rows += [[pair[0].label, *_gain(runs, pair, "red_test_solved_percent", colors=True)] for pair in COLOR_GAINS]
    return markdown(["", *GAIN_HEADER], rows)


def early_table(runs: Runs) -> str:
    """Tasks that are neither trained on nor for validation, solved by the last agents and by those stopped early."""
    rows = []
    early = stopped_early(runs)
    for pair in EARLY_GAINS:
        for agents, found in (("last", runs), ("stopped early", early)):
            rows.append([pair[0].label, agents, *_gain(found, pair, "heldout_solved_percent")])
    return markdown(["", "agents", *GAIN_HEADER], rows)


def stopped_early(runs: Runs) -> Runs:
    """Returns the runs as they were at the first evaluation at which most validation tasks were solved.

    Without colors; runs without such a curve are left out.
    """
    value = "validation_solved_percent"
    early = []
    for run in runs:
        rows = [row for row in run.curve if value in row]
        if rows:
            best = max(rows, key=lambda row: row[value])  # the first of equals
            early.append(replace(run, result={**run.result, **best}))
    return tuple(early)


def _gain(runs: Runs, pair: tuple[Variant, Variant], value: str, colors: bool = False) -> list[str]:
    cells = [Cell(variant_values(runs, variant, value, colors)) for variant in pair]
    more = Cell(paired_differences(runs, *pair, value, colors), limits=(-100.0, 100.0))
    return [cell.ours() for cell in (*cells, more)]


def speed_table(runs: Runs) -> str:
    """Iterations until an evaluation first finds most unseen tasks solved, the median over seeds; by method."""
    rows = []
    for method in sorted({run.config.method for run in runs if run.curve}):
        own = [run for run in runs if run.curve and _is_run_of(run.config, Variant("", method), colors=False)]
        # The curve of a run with restarts shows agents one after another, most of which were dropped.
        single = {run.config.seed: run for run in own if run.config.settings.restarts == 1}
        stored = list(single.values())
        first = [_first_above(run.curve) for run in stored]
        if any(iteration is not None for iteration in first):
            reached = [iteration for iteration in first if iteration is not None]
            rows.append([f"`{method}`", f"{median(reached):g}", f"{len(reached)} of {len(stored)}"])
    header = [
        "method",
        f"iterations until {SPEED_PERCENT:.0f} % (median of those that get there)",
        "runs that get there",
    ]
    return markdown(header, rows)


def _first_above(curve: Iterable[Row]) -> int | None:
    reached = [row["iteration"] for row in curve if row.get("test_solved_percent", 0.0) >= SPEED_PERCENT]
    return int(reached[0]) if reached else None


SECTIONS: Mapping[str, Callable[[Runs], str]] = {
    "jumping_1": part_section("table1", body(table_1), (*STUDY["main"], STUDY["recipe"][0])),
    "jumping_main": part_section("main", variant_table(MAIN, paired=True)),
    "jumping_2": part_section("table2", body(table_2)),
    "jumping_colors": part_section("colors", color_section),
    "jumping_epsilon": part_section("epsilon", epsilon_table),
    "jumping_recipe": part_section("recipe", variant_table(RECIPE)),
    "jumping_passthrough": part_section("passthrough", passthrough_section),
    "jumping_tasks": part_section("tasks", tasks_table),
    "jumping_loss": part_section("loss", variant_table(LOSS, paired=True)),
    "jumping_gains": gain_table,
    "jumping_early": early_table,
    "jumping_speed": speed_table,
}
"""What documents may ask for between markers; see `fill_docs.py`."""
