"""Tables in the paper's layout, from results: the paper's number beside ours."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from pisces.reports.paper import JUMPING, Published
from pisces.reports.statistics import mean_interval, summarize

GRIDS = ("wide", "narrow", "random")


@dataclass(frozen=True)
class Cell:
    """Our runs, and what the paper reports for them."""

    values: tuple[float, ...] = ()
    """One number per run."""
    published: Published | None = None
    """The paper's number."""
    spread: str = "deviation"
    """What stands in parentheses, as in the paper: "deviation" or "error"."""
    confidence: float = 0.95
    """Of the interval that Markdown shows."""
    source: tuple[Any, ...] | None = None
    """The runs behind it, e.g. method, grid, whether with colours, and epsilon."""
    limits: tuple[float, float] = (0.0, 100.0)
    """Smallest and largest possible mean, at which intervals are cut off."""
    digits: int = 1
    """Digits after the point."""
    compared: bool = True
    """Whether the paper's number stands beside ours, be it a dash."""

    def __str__(self) -> str:
        if not self.compared:
            return self.ours()
        if self.published is None or self.digits:
            return f"{self.ours()} / {self.published or '–'}"
        return f"{self.ours()} / {self.published.mean:.0f} ({self.published.deviation:.0f})"

    def ours(self) -> str:
        """Mean, spread, number of seeds and interval."""
        if not self.values:
            return "–"
        told = summarize(self.values)
        interval, digits = self.interval(self.confidence), self.digits
        if interval is None:
            return f"**{told.mean:.{digits}f}**, n={told.count}"
        spread = told.deviation if self.spread == "deviation" else told.error
        ends = f"[{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]"
        return f"**{told.mean:.{digits}f}** ({spread:.{digits}f}), n={told.count} {ends}"

    def interval(self, confidence: float) -> tuple[float, float] | None:
        """Student's interval of the mean, cut off at the limits; None for a single run."""
        return cut_interval(self.values, confidence, self.limits)


@dataclass(frozen=True)
class Table:
    """A table whose cells hold runs."""

    name: str
    """The stem of its files."""
    title: str
    """What it shows."""
    note: str
    """How to read it."""
    header: tuple[str, ...]
    """The columns."""
    rows: tuple[tuple[str | Cell, ...], ...]
    """Labels, then cells."""

    @property
    def filled(self) -> bool:
        """Whether any cell has runs of ours."""
        return any(isinstance(cell, Cell) and cell.values for row in self.rows for cell in row)

    def markdown(self) -> str:
        """The table as Markdown, with title and note."""
        body = markdown(self.header, ([escape_markdown(str(cell)) for cell in row] for row in self.rows))
        return f"## {self.title}\n\n{self.note}\n\n{body}"

    def csv(self) -> str:
        """The table as CSV, one line per cell."""
        labels = [name for name, cell in zip(self.header, self.rows[0], strict=True) if not isinstance(cell, Cell)]
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow([*labels, "column", *CSV_NUMBERS])
        for row in self.rows:
            names = [cell for cell in row if not isinstance(cell, Cell)]
            for column, cell in zip(self.header, row, strict=True):
                if isinstance(cell, Cell):
                    writer.writerow([*names, column, *csv_numbers(cell)])
        return buffer.getvalue()


CSV_NUMBERS = (
    "seeds", "mean", "standard_deviation", "standard_error", "median", "interquartile_mean",
    "low_95", "high_95", "low_99", "high_99", "paper_mean", "paper_spread",
)  # fmt: skip


def csv_numbers(cell: Cell) -> list[str]:
    """A cell's numbers in the order of `CSV_NUMBERS`; what is not known stays empty."""
    published = [cell.published.mean, cell.published.deviation] if cell.published else ["", ""]
    if not cell.values:
        return ["0", *[""] * 9, *map(str, published)]
    told = summarize(cell.values)
    numbers: list[Any] = [told.mean, told.deviation, told.error, told.median, told.interquartile_mean]
    for confidence in (0.95, 0.99):
        numbers += cell.interval(confidence) or ("", "")
    shown = ["" if value != value or value == "" else f"{value:.6g}" for value in numbers]
    return [str(told.count), *shown, *map(str, published)]


def percent_interval(values: Sequence[float], confidence: float) -> tuple[float, float] | None:
    """Student's interval of a mean of percentages, cut off at 0 and 100; None for a single run."""
    return cut_interval(values, confidence, (0.0, 100.0))


def cut_interval(values: Sequence[float], confidence: float, limits: tuple[float, float]) -> tuple[float, float] | None:
    """Student's interval of a mean, cut off at the limits; None for a single run."""
    interval = mean_interval(values, confidence)
    return None if interval is None else (max(interval.low, limits[0]), min(interval.high, limits[1]))


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


def in_order(grids: Iterable[str]) -> list[str]:
    """Grids in the paper's order, then others."""
    return sorted(set(grids), key=lambda grid: (GRIDS.index(grid) if grid in GRIDS else len(GRIDS), grid))


def own_run(config: Mapping[str, Any]) -> bool:
    """Whether a config is a method's own: the paper's preset, white obstacles, nothing changed."""
    return config.get("preset") == "paper" and not config.get("colors") and not config.get("study")


def group_jumping(
    results: Iterable[Mapping[str, Any]], value: str = "test_solved_percent"
) -> dict[tuple[str, str], list[float]]:
    """Collects a value of the methods' own runs (paper preset, white obstacles, nothing changed) by method and grid.

    A seed counts once, even if it was run with several numbers of threads, say.
    """
    cells: dict[tuple[str, str], dict[int, float]] = {}
    for result in results:
        config = result["config"]
        if own_run(config) and value in result:
            cells.setdefault((config["method"], config["grid"]), {})[config["seed"]] = float(result[value])
    return {key: list(seeds.values()) for key, seeds in cells.items()}


def escape_markdown(text: str) -> str:
    """Keeps text from run folders from breaking a Markdown table, or from being markup in it."""
    for character, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|")):
        text = text.replace(character, name)
    return " ".join(text.split())


def _cell(values: Sequence[float] | None, published: Published | None) -> str:
    ours = "–" if not values else summary(values)
    return f"{ours} / {published if published else '–'}"


def summary(values: Sequence[float]) -> str:
    """Mean, standard deviation in parentheses, and the number of seeds."""
    spread = f" ({stdev(values):.1f})" if len(values) > 1 else ""
    return f"**{mean(values):.1f}**{spread}, n={len(values)}"
