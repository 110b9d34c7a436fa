"""Tables in Markdown, in the paper's layout, from results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from pisces.reports.paper import JUMPING, Published

GRIDS = ("wide", "narrow", "random")


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def jumping_table(results: Iterable[Mapping[str, Any]]) -> str:
    """Unseen tasks solved by every method on every grid, ours beside the paper's (Tables 1 and 2)."""
    cells = group_jumping(results)
    order = [*JUMPING, *sorted({method for method, _ in cells} - set(JUMPING))]
    rows = []
    for method in order:
        if not any((method, grid) in cells for grid in GRIDS):
            continue
        published = JUMPING.get(method, {})
        rows.append([f"`{method}`", *(_cell(cells.get((method, grid)), published.get(grid)) for grid in GRIDS)])
    return markdown(["method", *(f"{grid}: ours / paper (%)" for grid in GRIDS)], rows)


def group_jumping(
    results: Iterable[Mapping[str, Any]], value: str = "test_solved_percent"
) -> dict[tuple[str, str], list[float]]:
    """Collects a value of the methods' own runs (paper preset, white obstacles, nothing changed) by method and grid."""
    cells: dict[tuple[str, str], list[float]] = {}
    for result in results:
        config = result["config"]
        if config.get("preset") == "paper" and not config.get("colors") and not config.get("study") and value in result:
            cells.setdefault((config["method"], config["grid"]), []).append(float(result[value]))
    return cells


def _cell(values: Sequence[float] | None, published: Published | None) -> str:
    ours = "–" if not values else summary(values)
    return f"{ours} / {published if published else '–'}"


def summary(values: Sequence[float]) -> str:
    """Mean, standard deviation in parentheses, and the number of seeds."""
    spread = f" ({stdev(values):.1f})" if len(values) > 1 else ""
    return f"**{mean(values):.1f}**{spread}, n={len(values)}"
