"""The jumping task's tables: Tables 1 and 2, the task with colours, suboptimal policies, and aggregates over grids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pisces.experiments.jumping_study import SAME_AS_OPTIMAL, SUBOPTIMAL
from pisces.reports.paper import JUMPING, JUMPING_COLORS
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
from pisces.reports.tables import GRIDS, Cell, Table, escape_markdown, group_jumping, in_order, markdown

ResultRow = Mapping[str, Any]
TableRow = tuple[str | Cell, ...]
TABLE_1 = {
    # The paper's rows: whether data are augmented, and what the paper calls the method.
    "dropout+l2": ("no", "Dropout and l2 reg."),
    "bisimulation-transfer": ("no", "Bisimulation Transfer"),
    "pse": ("no", "PSEs"),
    "randconv": ("yes", "RandConv"),
    "randconv+bisimulation": ("yes", "RandConv + π*-bisimulation"),
    "randconv+pse": ("yes", "RandConv + PSEs"),
}
OUR_ROWS = {
    "pisces-plain": ("no", "our recipe without augmentation, `pisces-plain`"),
    "pisces-plain-5": ("no", "the best of five by validation, `pisces-plain-5`"),
    "pisces": ("yes", "our recipe, `pisces`"),
    "randconv+true": ("yes", "RandConv + true similarity, the ideal metric"),
}
"""Rows that the paper does not have."""
METHOD_NAMES = {method: name.replace("`", "") for method, (_, name) in {**TABLE_1, **OUR_ROWS}.items()}
"""What figures call the methods."""
TABLE_2 = {
    "π*-bisimulation": ("randconv+bisimulation", "randconv+bisimulation-cme"),
    "PSM": ("randconv+psm-l2", "randconv+psm-cme"),
}
COLOR_SPREAD = ("error", 0.99)
"""The paper's table of colours tells standard errors and 99 % intervals."""
COLOR_ROWS = ("randconv", "dropout+l2", "randconv+pse", "pse")
BASELINE = "randconv"
OURS = (
    "Ours / the paper's: mean, in parentheses the {spread} between seeds, n = seeds, in brackets the {percent} % "
    "interval of the mean (Student's, cut off at 0 and 100)."
)


def own_source(config: Mapping[str, Any]) -> tuple[str, str, bool, float] | None:
    """What a run counts for in the tables: method, grid, colours and epsilon; None if anything else was changed."""
    epsilon = float(config.get("epsilon") or 0.0)
    study = f"epsilon={epsilon}" if epsilon else ""
    if config.get("preset") != "paper" or (config.get("study") or "") != study:
        return None
    return config["method"], config["grid"], bool(config.get("colors")), epsilon


def jumping_tables(results: Iterable[ResultRow]) -> list[Table]:
    """All tables that have at least one run of ours."""
    rows = list(results)
    tables = [table_1(rows), table_2(rows), color_table(rows), epsilon_table(rows)]
    return [table for table in tables if table.filled]


def table_1(results: Iterable[ResultRow]) -> Table:
    """Unseen tasks solved by method and grid (Table 1), then methods that the paper does not have."""
    cells = group_jumping(results)
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


def table_2(results: Iterable[ResultRow]) -> Table:
    """The ablation of metric and embedding on the wide grid (Table 2)."""
    cells = group_jumping(results)
    rows: list[TableRow] = []
    for metric, methods in TABLE_2.items():
        rows.append((metric, *(_cell(cells, method, "wide") for method in methods)))
    note = "RandConv and an embedding of a metric, wide grid. " + OURS.format(spread="standard deviation", percent=95)
    header = ("metric / embedding", "l2-embeddings", "CMEs")
    return Table("table2", "Table 2: metrics and embeddings (%)", note, header, tuple(rows))


def _cell(cells: Mapping[tuple[str, str], list[float]], method: str, grid: str) -> Cell:
    published = JUMPING.get(method, {}).get(grid)
    return Cell(tuple(cells.get((method, grid), ())), published, source=(method, grid, False, 0.0))


def color_scores(results: Iterable[ResultRow], color: str, published: bool = False) -> dict[str, tuple[float, ...]]:
    """Unseen tasks of one colour solved by the methods' runs on the wide grid with colours.

    Args:
        results: the results.
        color: the colour.
        published: the runs with the network and kernels of the published code, not the methods' own.
    """
    scores: dict[str, dict[int, float]] = {}
    value = f"{color}_test_solved_percent"
    for result in results:
        config = result["config"]
        method = config["method"]
        wanted = published_study(method) if published else ""
        otherwise_own = own_source({**config, "study": ""}) == (method, "wide", True, 0.0)
        if otherwise_own and (config.get("study") or "") == wanted and value in result:
            scores.setdefault(method, {})[config["seed"]] = float(result[value])
    return {method: tuple(seeds.values()) for method, seeds in scores.items()}


def published_study(method: str) -> str:
    """The study of runs that see coloured frames as the published code does; without RandConv there are no kernels."""
    return "kernels=rows,network=rows" if TABLE_1.get(method, ("",))[0] == "yes" else "network=rows"


def color_series(results: Iterable[ResultRow]) -> dict[str, dict[str, tuple[float, ...]]]:
    """What the figure of colours shows: unseen red tasks solved, by network and method; empty ones left out."""
    rows = list(results)
    series = {
        "our network and kernels": color_scores(rows, "red"),
        "network and kernels of the published code": color_scores(rows, "red", published=True),
    }
    return {name: scores for name, scores in series.items() if scores}


def color_table(results: Iterable[ResultRow]) -> Table:
    """Unseen red and green tasks solved after training on both (App. F)."""
    results = list(results)
    scores = {color: color_scores(results, color) for color in ("red", "green")}
    methods = [*COLOR_ROWS, *sorted(set(scores["red"]) - set(COLOR_ROWS))]
    rows: list[TableRow] = []
    for method in methods:
        name = {**TABLE_1, **OUR_ROWS}.get(method, ("", method))[1]
        published, source = JUMPING_COLORS.get(method, {}), (method, "wide", True, 0.0)
        row = [Cell(scores[c].get(method, ()), published.get(c), *COLOR_SPREAD, source) for c in ("red", "green")]
        rows.append((name, *row))
    note = "Wide grid, red and green obstacles together. " + OURS.format(spread="standard error", percent=99)
    header = ("method", "red", "green")
    return Table("colors", "The task with colours: unseen tasks solved (%)", note, header, tuple(rows))


def epsilon_scores(results: Iterable[ResultRow]) -> dict[tuple[str, float], tuple[float, ...]]:
    """Unseen tasks solved on the wide grid, by method and suboptimality; only of methods with epsilon above zero.

    Where the training is that of optimal policies bit for bit, runs with those count too.
    """
    scores: dict[tuple[str, float], dict[int, float]] = {}
    for result in results:
        config = result["config"]
        epsilon = float(config.get("epsilon") or 0.0)
        if own_source(config) == (config["method"], "wide", False, epsilon) and "test_solved_percent" in result:
            seeds = scores.setdefault((config["method"], epsilon), {})
            seeds[config["seed"]] = float(result["test_solved_percent"])
    studied = {method for method, epsilon in scores if epsilon > 0}
    if optimal := scores.get((SUBOPTIMAL, 0.0)):
        same = {(SUBOPTIMAL, epsilon) for epsilon in SAME_AS_OPTIMAL}
        scores |= {key: optimal | scores.get(key, {}) for key in same}
    return {key: tuple(scores[key].values()) for key in sorted(scores) if key[0] in studied}


def epsilon_table(results: Iterable[ResultRow]) -> Table:
    """PSEs from suboptimal policies; the paper shows these numbers as a figure only."""
    rows: list[TableRow] = []
    for (method, epsilon), values in epsilon_scores(results).items():
        same = method == SUBOPTIMAL and epsilon in SAME_AS_OPTIMAL
        source = (method, "wide", False, 0.0 if same else epsilon)
        rows.append((method, f"{epsilon:g}{', same as 0' if same else ''}", Cell(values, source=source)))
    note = "PSM of policies that take the other action with probability ε; the paper shows a figure only. "
    note += "Rows marked as same have the training of ε = 0 bit for bit, so its runs are theirs. "
    note += OURS.format(spread="standard deviation", percent=95)
    header = ("method", "ε", "wide")
    return Table("epsilon", "Suboptimal policies: unseen tasks solved (%)", note, header, tuple(rows))


def grid_scores(results: Iterable[ResultRow]) -> dict[str, Scores]:
    """The methods that have at least two runs on every grid that any of them has, as scores by grid."""
    cells = {key: values for key, values in group_jumping(results).items() if len(values) > 1}
    grids = in_order(grid for _, grid in cells)
    methods = sorted({method for method, _ in cells if all((method, grid) in cells for grid in grids)})
    return {method: Scores({grid: tuple(cells[method, grid]) for grid in grids}) for method in methods}


def aggregate_table(results: Iterable[ResultRow]) -> str:
    """Aggregates over grids with stratified bootstrap intervals, as Markdown; empty without methods to aggregate."""
    scores = grid_scores(results)
    if not scores:
        return ""
    rows = []
    for method, runs in scores.items():
        cells = [f"{f(runs):.1f} {_interval(bootstrap_interval(runs, f))}" for f in (mean, median, interquartile_mean)]
        better = "–"
        if BASELINE in scores and method != BASELINE:
            interval = improvement_interval(runs, scores[BASELINE])
            better = f"{probability_of_improvement(runs, scores[BASELINE]):.2f} {_interval(interval, 2)}"
        counts = ", ".join(f"{grid} {len(values)}" for grid, values in runs.runs.items())
        rows.append([escape_markdown(method), counts, *cells, better])
    note = "In brackets 95 % bootstrap intervals; runs are drawn anew within each grid."
    header = [
        "method",
        "runs",
        "mean",
        "median of all runs",
        "interquartile mean",
        f"probability of beating `{BASELINE}`",
    ]
    return f"## Aggregates over grids: unseen tasks solved (%)\n\n{note}\n\n{markdown(header, rows)}"


def _interval(interval: Interval, digits: int = 1) -> str:
    return f"[{interval.low:.{digits}f}, {interval.high:.{digits}f}]"
