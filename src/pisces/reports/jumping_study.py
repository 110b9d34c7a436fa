"""The jumping task's study as Markdown: every part's table, and the commands that make its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from pisces.experiments.jumping_study import STUDY
from pisces.reports.jumping_tables import color_table, epsilon_table, table_1, table_2
from pisces.reports.tables import Cell, Table, markdown

Row = Mapping[str, Any]
Rows = tuple[dict[str, Any], ...]
Variant = tuple[str, str, str]
"""What a table calls it, the method, and the study that its runs carry."""

COIN: Sequence[Variant] = (
    ("a coin at every call (ours)", "randconv", ""),
    ("one coin per run (the published code)", "randconv", "coin=run"),
    ("always augmented", "randconv", "pass_probability=0.0"),
)
LOSS: Sequence[Variant] = (
    ("Eq. 4, both directions, discount 0.999", "randconv+pse", ""),
    ("without weights", "randconv+pse", "weighted=False"),
    ("one direction", "randconv+pse", "symmetric=False"),
    ("discount 0.99", "randconv+pse", "discount=0.99"),
)
RECIPE: Sequence[Variant] = (
    ("`pisces`: RandConv, shifts, cosine", "pisces", ""),
    ("with the border shifted too", "pisces", "shift_border=0"),
    ("without shifts", "pisces", "shift=0"),
    ("without RandConv", "pisces", "augmentation=none"),
    ("without the cosine", "pisces", "schedule=exponential"),
    ("with PSEs", "pisces", "auxiliary=contrastive,temperature=0.5"),
    ("`pisces-plain`: PSEs, cosine, five agents, no augmentation", "pisces-plain", ""),
    ("a single agent", "pisces-plain", "members=1"),
    ("a single agent without PSEs", "pisces-plain", "auxiliary=none,members=1"),
)
SPEED_PERCENT = 80.0


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


def variant_values(
    results: Iterable[Row], method: str, study: str, value: str, grid: str = "wide", colors: bool = False
) -> tuple[float, ...]:
    """A value of the runs of one method on one grid with one study."""
    return tuple(
        float(result[value])
        for result in results
        if value in result and _kind(result["config"]) == (method, grid, study, colors)
    )


def _kind(config: Mapping[str, Any]) -> tuple[str, str, str, bool] | None:
    if config.get("preset") != "paper":
        return None
    return config["method"], config.get("grid", ""), config.get("study") or "", bool(config.get("colors"))


def variant_table(variants: Sequence[Variant]) -> Callable[[Rows], str]:
    """Unseen tasks, and those that are not validation tasks either, solved by variants of a method."""

    def text(results: Rows) -> str:
        rows = []
        for label, method, study in variants:
            values = [variant_values(results, method, study, f"{part}_solved_percent") for part in ("test", "heldout")]
            rows.append([label, *(Cell(found).ours() for found in values)])
        return markdown(["variant", "unseen tasks solved (%)", "of those, no validation tasks (%)"], rows)

    return text


def recipe_table(results: Rows) -> str:
    """What the recipe solves without each of its ingredients, on the wide grid and on the narrow one."""
    columns = (("test", "wide"), ("heldout", "wide"), ("test", "narrow"))
    rows = []
    for label, method, study in RECIPE:
        found = [variant_values(results, method, study, f"{part}_solved_percent", grid) for part, grid in columns]
        rows.append([label, *(Cell(values).ours() for values in found)])
    header = [
        "variant",
        "wide: unseen tasks solved (%)",
        "wide: of those, no validation tasks (%)",
        "narrow: unseen (%)",
    ]
    return markdown(header, rows)


def color_section(results: Rows) -> str:
    """The task with colours, and PSEs there with the hyperparameters of Table 1."""
    table_1_settings = STUDY["colors"][1].jobs()[0].config.as_dict()["study"]
    rows = []
    for label, study in (("this task's, as above", ""), ("Table 1's", table_1_settings)):
        found = [
            variant_values(results, "pse", study, f"{c}_test_solved_percent", colors=True) for c in ("red", "green")
        ]
        rows.append([label, *(Cell(values, None, "error", 0.99).ours() for values in found)])
    return f"{body(color_table)(results)}\n{markdown(['PSEs with hyperparameters of', 'red', 'green'], rows)}"


def tasks_table(results: Rows) -> str:
    """Unseen tasks solved after training on fewer tasks of the wide grid."""
    rows = []
    for count in (6, 9, 12, 18):
        study = "" if count == 18 else f"training_tasks={count}"
        cells = [
            variant_values(results, method, study, "test_solved_percent") for method in ("randconv", "randconv+pse")
        ]
        rows.append([str(count), *(Cell(values).ours() for values in cells)])
    return markdown(["training tasks", "`randconv` (%)", "`randconv+pse` (%)"], rows)


def speed_table(results: Rows) -> str:
    """Iterations until an evaluation first finds most unseen tasks solved, the median over seeds; by method."""
    rows = []
    for method in sorted({result["config"]["method"] for result in results if "curve" in result}):
        runs = [r for r in results if "curve" in r and _kind(r["config"]) == (method, "wide", "", False)]
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
    "jumping_main": part_section("main", variant_table([(f"`{m}`", m, "") for m in ("randconv", "randconv+pse")])),
    "jumping_2": part_section("table2", body(table_2)),
    "jumping_colors": part_section("colors", color_section),
    "jumping_epsilon": part_section("epsilon", body(epsilon_table)),
    "jumping_recipe": part_section("recipe", recipe_table),
    "jumping_coin": part_section("coin", variant_table(COIN)),
    "jumping_tasks": part_section("tasks", tasks_table),
    "jumping_loss": part_section("loss", variant_table(LOSS)),
    "jumping_speed": speed_table,
}
"""What documents may ask for between markers; see `pisces.reports.readme`."""
