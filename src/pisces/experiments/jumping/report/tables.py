"""The jumping task's tables: Tables 1 and 2, the task with colors, suboptimal policies, and aggregates over grids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pisces.experiments.jumping.config import METHODS, JumpingConfig
from pisces.experiments.jumping.paper import JUMPING, JUMPING_COLORS
from pisces.reports.results import StoredRun
from pisces.reports.statistics import (
    Interval,
    Scores,
    bootstrap_interval,
    improvement_interval,
    interquartile_mean,
    mean,
    median,
    probability_of_improvement,
)
from pisces.reports.tables import Cell, Table, escape_markdown, markdown, summary

Cells = dict[tuple[str, str], list[float]]
GRIDS = ("wide", "narrow", "random")
TableRow = tuple[str | Cell, ...]
TABLE_1 = {
    # The paper's rows: whether data are augmented, and what the paper calls the method.
    "dropout+l2": ("no", "Dropout and l2 reg."),
    "bisimulation-transfer": ("no", "Bisimulation Transfer"),
    "pse": ("no", "PSEs"),
    "randconv": ("yes", "RandConv"),
    "randconv+pi-bisimulation": ("yes", "RandConv + π*-bisimulation"),
    "randconv+pse": ("yes", "RandConv + PSEs"),
}
OUR_ROWS = {
    "pse-tuned": ("no", "PSEs, our settings, `pse-tuned`"),
    "pse-tuned-5": ("no", "best of five restarts by validation, `pse-tuned-5`"),
    "randconv+shift": ("yes", "RandConv + random shifts, `randconv+shift`"),
    "randconv+true": ("yes", "RandConv + true similarity, the ideal metric"),
}
"""Rows that the paper does not have."""
METHOD_NAMES = {method: name.replace("`", "") for method, (_, name) in {**TABLE_1, **OUR_ROWS}.items()}
"""What figures call the methods."""
TABLE_2 = {
    "π*-bisimulation": ("randconv+pi-bisimulation", "randconv+pi-bisimulation-cme"),
    "PSM": ("randconv+psm-l2", "randconv+psm-cme"),
}
COLOR_SPREAD = ("error", 0.99)
"""The paper's table of colors tells standard errors and 99 % intervals."""
COLOR_ROWS = ("randconv", "dropout+l2", "randconv+pse", "pse")
BASELINE = "randconv"
OURS = (
    "Ours / the paper's: mean, in parentheses the {spread} between seeds, n = seeds, in brackets the {percent} % "
    "CI of the mean (t, cut off at 0 and 100)."
)


def cell_of(config: JumpingConfig) -> tuple[str, str, bool, float] | None:
    """Returns what a run counts for in the tables: method, grid, colors and epsilon; None if it overrides more."""
    if config.preset != "paper" or set(config.changes) - {"epsilon"}:
        return None
    return config.method, config.grid, config.colors, config.epsilon


def by_method_and_grid(runs: Iterable[StoredRun], value: str = "test_solved_percent") -> Cells:
    """Returns a value of the methods' own runs (paper preset, white obstacles, no overrides) by method and grid.

    A seed counts once, even if it was run with several numbers of threads.
    """
    cells: dict[tuple[str, str], dict[int, float]] = {}
    for run in runs:
        cell = cell_of(run.config)
        if cell is not None and cell[2:] == (False, 0.0) and value in run:
            cells.setdefault(cell[:2], {})[run.config.seed] = float(run[value])
    return {key: list(seeds.values()) for key, seeds in cells.items()}


def in_order(grids: Iterable[str]) -> list[str]:
    """Returns grids in the paper's order, then others."""
    return sorted(set(grids), key=lambda grid: (GRIDS.index(grid) if grid in GRIDS else len(GRIDS), grid))


def summary_table(runs: Iterable[StoredRun], methods: Sequence[str] = ()) -> str:
    """Unseen tasks solved by method and grid, ours vs. paper, as Markdown.

    Args:
        runs: the runs.
        methods: the rows; all methods that have runs if empty.
    """
    cells = by_method_and_grid(runs)
    rows = []
    for method in methods or [*JUMPING, *sorted({method for method, _ in cells} - set(JUMPING))]:
        if any((method, grid) in cells for grid in GRIDS):
            published = [JUMPING.get(method, {}).get(grid) for grid in GRIDS]
            ours = [summary(cells.get((method, grid), [])) for grid in GRIDS]
            rows.append([f"`{method}`", *(f"{a} / {b or '–'}" for a, b in zip(ours, published, strict=True))])
    return markdown(["method", *(f"{grid}: ours / paper (%)" for grid in GRIDS)], rows)


def jumping_tables(runs: Iterable[StoredRun]) -> list[Table]:
    """All tables that have at least one run of ours."""
    rows = list(runs)
    tables = [table_1(rows), table_2(rows), color_table(rows), epsilon_table(rows)]
    return [table for table in tables if table.filled]


def table_1(runs: Iterable[StoredRun]) -> Table:
    """Unseen tasks solved by method and grid (Table 1), then methods that the paper does not have."""
    cells = by_method_and_grid(runs)
    ablation = {method for pair in TABLE_2.values() for method in pair} - set(TABLE_1)
    others = {method for method, _ in cells} - set(TABLE_1) - ablation
    ordered = [*(method for method in OUR_ROWS if method in others), *sorted(others - set(OUR_ROWS))]
    rows: list[TableRow] = []
    for method in [*TABLE_1, *ordered]:
        augmented, name = TABLE_1.get(method) or OUR_ROWS.get(method, ("", method))
        row = [_cell(cells, method, grid) for grid in GRIDS]
        rows.append((augmented, name, *row))
    note = OURS.format(spread="standard deviation", percent=95)
    header = ("data augmentation", "method", *GRIDS)
    return Table("table1", "Table 1: unseen jumping tasks solved (%)", note, header, tuple(rows))


def table_2(runs: Iterable[StoredRun]) -> Table:
    """The ablation of metric and embedding on the wide grid (Table 2)."""
    cells = by_method_and_grid(runs)
    rows: list[TableRow] = []
    for metric, methods in TABLE_2.items():
        rows.append((metric, *(_cell(cells, method, "wide") for method in methods)))
    note = "RandConv and an embedding of a metric, wide grid. " + OURS.format(spread="standard deviation", percent=95)
    header = ("metric / embedding", "l2-embeddings", "CMEs")
    return Table("table2", "Table 2: metrics and embeddings (%)", note, header, tuple(rows))


def _cell(cells: Mapping[tuple[str, str], list[float]], method: str, grid: str) -> Cell:
    published = JUMPING.get(method, {}).get(grid)
    return Cell(tuple(cells.get((method, grid), ())), published, source=(method, grid, False, 0.0))


def color_scores(runs: Iterable[StoredRun], color: str, published: bool = False) -> dict[str, tuple[float, ...]]:
    """Returns the percentages of unseen tasks of one color solved on the wide grid with colors, by method.

    Args:
        runs: the runs.
        color: the color.
        published: whether to take the runs with the network and kernels of the published code.
    """
    scores: dict[str, dict[int, float]] = {}
    value = f"{color}_test_solved_percent"
    for run in runs:
        config = run.config
        wanted = published_changes(config.method) if published else {}
        usual = config.preset == "paper" and config.grid == "wide" and config.colors
        if usual and config.changes == wanted and value in run:
            scores.setdefault(config.method, {})[config.seed] = float(run[value])
    return {method: tuple(seeds.values()) for method, seeds in scores.items()}


def published_changes(method: str) -> dict[str, Any]:
    """Returns the overrides of runs that see frames with colors as the published code does."""
    rows = {"network": "rows"}
    return {"kernels": "rows", **rows} if TABLE_1.get(method, ("",))[0] == "yes" else rows


def color_series(runs: Iterable[StoredRun]) -> dict[str, dict[str, tuple[float, ...]]]:
    """Returns the unseen red tasks solved, by network and method, for the figure of colors."""
    stored = list(runs)
    series = {
        "our network and kernels": color_scores(stored, "red"),
        "network and kernels of the published code": color_scores(stored, "red", published=True),
    }
    return {name: scores for name, scores in series.items() if scores}


def color_table(runs: Iterable[StoredRun]) -> Table:
    """Unseen red and green tasks solved after training on both (App. F)."""
    runs = list(runs)
    scores = {color: color_scores(runs, color) for color in ("red", "green")}
    methods = [*COLOR_ROWS, *sorted(set(scores["red"]) - set(COLOR_ROWS))]
    rows: list[TableRow] = []
    for method in methods:
        name = {**TABLE_1, **OUR_ROWS}.get(method, ("", method))[1]
        published, source = JUMPING_COLORS.get(method, {}), (method, "wide", True, 0.0)
        row = [Cell(scores[c].get(method, ()), published.get(c), *COLOR_SPREAD, source) for c in ("red", "green")]
        rows.append((name, *row))
    note = "Wide grid, red and green obstacles together. " + OURS.format(spread="standard error", percent=99)
    header = ("method", "red", "green")
    return Table("colors", "The task with colors: unseen tasks solved (%)", note, header, tuple(rows))


def epsilon_scores(runs: Iterable[StoredRun]) -> dict[tuple[str, float], tuple[float, ...]]:
    """Returns the unseen tasks solved on the wide grid by method and epsilon, of methods with epsilon above zero."""
    scores: dict[tuple[str, float], dict[int, float]] = {}
    for run in runs:
        cell = cell_of(run.config)
        if cell is None or not run.config.has_policies:  # epsilon changes nothing in methods without policies
            continue
        if cell[1:3] == ("wide", False) and "test_solved_percent" in run:
            seeds = scores.setdefault((cell[0], cell[3]), {})
            seeds[run.config.seed] = float(run["test_solved_percent"])
    studied = {method for method, epsilon in scores if epsilon > 0}
    return {key: tuple(scores[key].values()) for key in sorted(scores) if key[0] in studied}


def epsilon_table(runs: Iterable[StoredRun]) -> Table:
    """PSEs from suboptimal policies; the paper shows these numbers as a figure only."""
    rows: list[TableRow] = []
    scores = epsilon_scores(runs)
    for (method, epsilon), values in scores.items():
        rows.append((method, f"{epsilon:g}", Cell(values, source=(method, "wide", False, epsilon))))
    note = "PSM of policies that take the other action with probability ε; the paper shows a figure only. "
    # Other losses use the distances themselves.
    if all(getattr(METHODS[method], "auxiliary", "") == "contrastive" for method, _ in scores):
        note += "For ε up to 0.4, training is that of ε = 0 bit for bit. "
    note += OURS.format(spread="standard deviation", percent=95)
    header = ("method", "ε", "wide")
    return Table("epsilon", "Suboptimal policies: unseen tasks solved (%)", note, header, tuple(rows))


def grid_scores(runs: Iterable[StoredRun]) -> dict[str, Scores]:
    """The methods that have at least two runs on every grid that any of them has, as scores by grid."""
    cells = {key: values for key, values in by_method_and_grid(runs).items() if len(values) > 1}
    grids = in_order(grid for _, grid in cells)
    methods = sorted({method for method, _ in cells if all((method, grid) in cells for grid in grids)})
    return {method: Scores({grid: tuple(cells[method, grid]) for grid in grids}) for method in methods}


def aggregate_table(runs: Iterable[StoredRun]) -> str:
    """Aggregates over grids with stratified bootstrap intervals, as Markdown; empty without methods to aggregate."""
    scores = grid_scores(runs)
    if not scores:
        return ""
    rows = []
    for method, own in scores.items():
        cells = [f"{f(own):.1f} {_interval(bootstrap_interval(own, f))}" for f in (mean, median, interquartile_mean)]
        better = "–"
        if BASELINE in scores and method != BASELINE:
            interval = improvement_interval(own, scores[BASELINE])
            better = f"{probability_of_improvement(own, scores[BASELINE]):.2f} {_interval(interval, 2)}"
        counts = ", ".join(f"{grid} {len(values)}" for grid, values in own.runs.items())
        rows.append([escape_markdown(method), counts, *cells, better])
    note = "Every grid weighs the same. In brackets 95 % bootstrap intervals; runs are resampled within each grid."
    header = [
        "method",
        "runs",
        "mean",
        "median",
        "interquartile mean",
        f"probability of beating `{BASELINE}`",
    ]
    return f"## Aggregates over grids: unseen tasks solved (%)\n\n{note}\n\n{markdown(header, rows)}"


def _interval(interval: Interval, digits: int = 1) -> str:
    return f"[{interval.low:.{digits}f}, {interval.high:.{digits}f}]"
