"""The jumping task's study as Markdown: every part's table, and the commands that make its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from pisces.experiments.jumping_study import COLORS_WITH_TABLE_1, STUDY
from pisces.reports.jumping_tables import COLOR_SPREAD, color_table, epsilon_table, table_1, table_2
from pisces.reports.jumping_variants import (
    COIN,
    COIN_WITH_PSES,
    COLOR_GAINS,
    COLOR_VARIANTS,
    EARLY_GAINS,
    GAINS,
    LOSS,
    MAIN,
    RECIPE,
    Variant,
)
from pisces.reports.paper import JUMPING_COLORS
from pisces.reports.tables import Cell, Table, markdown

Row = Mapping[str, Any]
Rows = tuple[dict[str, Any], ...]
SPEED_PERCENT = 80.0
GAIN_HEADER = ("without PSEs (%)", "with PSEs (%)", "difference on the same seeds (percentage points)")


def part_section(part: str, table: Callable[[Rows], str]) -> Callable[[Rows], str]:
    """A function of results that gives a part's table and, under it, the commands behind it."""

    def section(results: Rows) -> str:
        commands = "\n".join(batch.command() for batch in STUDY[part])
        ours = tuple(result for result in results if "grid" in result["config"])
        return f"{table(ours)}\n```bash\n{commands}\n```\n"

    return section


def body(make: Callable[[Iterable[Row]], Table]) -> Callable[[Rows], str]:
    """A function of results that gives a table without its title."""

    def text(results: Rows) -> str:
        table = make(results)
        return f"{table.note}\n\n" + table.markdown().partition(f"{table.note}\n\n")[2]

    return text


def variant_values(results: Iterable[Row], variant: Variant, value: str, colors: bool = False) -> tuple[float, ...]:
    """A value of a variant's runs."""
    return tuple(number for _, number in _seeds_and_values(results, variant, value, colors))


def paired_differences(
    results: Rows, first: Variant, other: Variant, value: str, colors: bool = False
) -> tuple[float, ...]:
    """How much more the other variant's runs have of a value, on the seeds that both have."""
    before, after = (dict(_seeds_and_values(results, variant, value, colors)) for variant in (first, other))
    return tuple(after[seed] - before[seed] for seed in sorted(before.keys() & after.keys()))


def _seeds_and_values(results: Iterable[Row], variant: Variant, value: str, colors: bool) -> list[tuple[int, float]]:
    wanted = (variant.method, variant.grid, variant.study, colors)
    found = [result for result in results if value in result and _kind(result["config"]) == wanted]
    return list({result["config"]["seed"]: float(result[value]) for result in found}.items())


def _kind(config: Mapping[str, Any]) -> tuple[str, str, str, bool] | None:
    if config.get("preset") != "paper":
        return None
    return config["method"], config.get("grid", ""), config.get("study") or "", bool(config.get("colors"))


def variant_table(variants: Sequence[Variant], paired: bool = False) -> Callable[[Rows], str]:
    """Unseen tasks, and those that are not validation tasks either, solved by variants of a method.

    Args:
        variants: the rows.
        paired: whether to compare each row with the first, on the seeds that both have.
    """
    header = ["variant", "unseen tasks solved (%)", "without the validation tasks (%)"]
    header += ["difference to the first row on the same seeds (percentage points)"] if paired else []

    def text(results: Rows) -> str:
        rows = []
        for variant in variants:
            values = [variant_values(results, variant, f"{part}_solved_percent") for part in ("test", "heldout")]
            row = [variant.label, *(Cell(found).ours() for found in values)]
            if paired and variant is variants[0]:
                row.append("")
            elif paired:
                more = paired_differences(results, variants[0], variant, "test_solved_percent")
                row.append(Cell(more, limits=(-100.0, 100.0)).ours())
            rows.append(row)
        return markdown(header, rows)

    return text


def color_section(results: Rows) -> str:
    """The task with colours, and variants of its methods; the published code's stand beside the paper's numbers."""
    (table_1_study,) = {str(job.config.as_dict()["study"]) for job in COLORS_WITH_TABLE_1.jobs()}
    rows = []
    for variant in (*COLOR_VARIANTS, Variant("PSEs, hyperparameters of Table 1", "pse", table_1_study)):
        published = JUMPING_COLORS.get(variant.method, {}) if "network=rows" in variant.study else {}
        cells = []
        for color in ("red", "green"):
            values = variant_values(results, variant, f"{color}_test_solved_percent", colors=True)
            cells.append(str(Cell(values, published.get(color), *COLOR_SPREAD, compared=bool(published))))
        rows.append([variant.label, *cells])
    return f"{body(color_table)(results)}\n{markdown(['variant', 'red', 'green'], rows)}"


def coin_section(results: Rows) -> str:
    """RandConv's coin at every call and once per run, without and with PSEs."""
    return "\n".join(variant_table(variants, paired=True)(results) for variants in (COIN, COIN_WITH_PSES))


def tasks_table(results: Rows) -> str:
    """Unseen tasks solved after training on fewer tasks of the wide grid."""
    rows = []
    for count in (6, 9, 12, 18):
        study = "" if count == 18 else f"training_tasks={count}"
        variants = [Variant(str(count), method, study) for method in ("randconv", "randconv+pse")]
        cells = [variant_values(results, variant, "test_solved_percent") for variant in variants]
        rows.append([str(count), *(Cell(values).ours() for values in cells)])
    return markdown(["training tasks", "`randconv` (%)", "`randconv+pse` (%)"], rows)


def gain_table(results: Rows) -> str:
    """Unseen tasks solved without and with PSEs, wherever the study has both."""
    rows = [[pair[0].label, *_gain(results, pair, "test_solved_percent")] for pair in GAINS]
    rows += [[pair[0].label, *_gain(results, pair, "red_test_solved_percent", colors=True)] for pair in COLOR_GAINS]
    return markdown(["", *GAIN_HEADER], rows)


def early_table(results: Rows) -> str:
    """Tasks that are neither trained on nor for validation, solved by the last agents and by those stopped early."""
    rows = []
    early = stopped_early(results)
    for pair in EARLY_GAINS:
        for agents, found in (("last", results), ("stopped early", early)):
            rows.append([pair[0].label, agents, *_gain(found, pair, "heldout_solved_percent")])
    return markdown(["", "agents", *GAIN_HEADER], rows)


def stopped_early(results: Rows) -> Rows:
    """The results as they were at the first evaluation at which most validation tasks were solved.

    Without colours; results whose curve does not tell are left out.
    """
    value = "validation_solved_percent"
    early = []
    for result in results:
        told = [row for row in result.get("curve", ()) if value in row]
        if told:
            early.append({**result, **max(told, key=lambda row: row[value])})  # the first of equals
    return tuple(early)


def _gain(results: Rows, pair: tuple[Variant, Variant], value: str, colors: bool = False) -> list[str]:
    cells = [Cell(variant_values(results, variant, value, colors)) for variant in pair]
    more = Cell(paired_differences(results, *pair, value, colors), limits=(-100.0, 100.0))
    return [cell.ours() for cell in (*cells, more)]


def speed_table(results: Rows) -> str:
    """Iterations until an evaluation first finds most unseen tasks solved, the median over seeds; by method."""
    rows = []
    for method in sorted({result["config"]["method"] for result in results if "curve" in result}):
        own = [r for r in results if "curve" in r and _kind(r["config"]) == (method, "wide", "", False)]
        runs = list({run["config"]["seed"]: run for run in own}.values())
        # The curve of several starts is that of agents one after another, most of which were dropped.
        runs = [run for run in runs if run["config"]["settings"].get("restarts", 1) == 1]
        first = [_first_above(run["curve"]) for run in runs]
        if any(iteration is not None for iteration in first):
            reached = [iteration for iteration in first if iteration is not None]
            rows.append([f"`{method}`", f"{median(reached):g}", f"{len(reached)} of {len(runs)}"])
    header = [
        "method",
        f"iterations until {SPEED_PERCENT:.0f} % (median of those that get there)",
        "runs that get there",
    ]
    return markdown(header, rows)


def _first_above(curve: Iterable[Row]) -> int | None:
    reached = [row["iteration"] for row in curve if row.get("test_solved_percent", 0.0) >= SPEED_PERCENT]
    return int(reached[0]) if reached else None


SECTIONS: Mapping[str, Callable[[Rows], str]] = {
    "jumping_1": part_section("table1", body(table_1)),
    "jumping_main": part_section("main", variant_table(MAIN, paired=True)),
    "jumping_2": part_section("table2", body(table_2)),
    "jumping_colors": part_section("colors", color_section),
    "jumping_epsilon": part_section("epsilon", body(epsilon_table)),
    "jumping_recipe": part_section("recipe", variant_table(RECIPE)),
    "jumping_coin": part_section("coin", coin_section),
    "jumping_tasks": part_section("tasks", tasks_table),
    "jumping_loss": part_section("loss", variant_table(LOSS, paired=True)),
    "jumping_gains": gain_table,
    "jumping_early": early_table,
    "jumping_speed": speed_table,
}
"""What documents may ask for between markers; see `pisces.reports.readme`."""
