"""Tables of runs, ours vs. paper."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from pisces.experiments.published import Published
from pisces.reports.statistics import mean_interval, summarize


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
    """The runs behind it, e.g. method, grid, whether with colors, and epsilon."""
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
        stats = summarize(self.values)
        interval, digits = self.interval(self.confidence), self.digits
        if interval is None:
            return f"**{stats.mean:.{digits}f}**, n={stats.count}"
        spread = stats.deviation if self.spread == "deviation" else stats.error
        ends = f"[{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]"
        return f"**{stats.mean:.{digits}f}** ({spread:.{digits}f}), n={stats.count} {ends}"

    def interval(self, confidence: float) -> tuple[float, float] | None:
        """Confidence interval (t) of the mean, cut off at the limits; None for a single run."""
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
    experiment: str = ""
    """The experiment whose runs it shows."""

    @property
    def filled(self) -> bool:
        """Whether any cell has runs of ours."""
        return any(isinstance(cell, Cell) and cell.values for row in self.rows for cell in row)

    def markdown(self) -> str:
        """The table as Markdown, with title and note."""
        return f"## {self.title}\n\n{self.note}\n\n{self.body()}"

    def body(self) -> str:
        """The table as Markdown, without title and note."""
        return markdown(self.header, ([escape_markdown(str(cell)) for cell in row] for row in self.rows))

    def csv(self) -> str:
        """The table as CSV, one line per cell."""
        labels = [name for name, cell in zip(self.header, self.rows[0], strict=True) if not isinstance(cell, Cell)]
        lines: list[Sequence[Any]] = [[*labels, "column", *CSV_NUMBERS]]
        for row in self.rows:
            names = [cell.replace("`", "") for cell in row if not isinstance(cell, Cell)]  # Markdown's
            for column, cell in zip(self.header, row, strict=True):
                if isinstance(cell, Cell):
                    lines.append([*names, column, *csv_numbers(cell)])
        return csv_text(lines)


CSV_NUMBERS = (
    "seeds", "mean", "standard_deviation", "standard_error", "median", "interquartile_mean",
    "low_95", "high_95", "low_99", "high_99", "paper_mean", "paper_spread",
)  # fmt: skip


def csv_numbers(cell: Cell) -> list[str]:
    """A cell's numbers in the order of `CSV_NUMBERS`; what is not known stays empty."""
    published = [cell.published.mean, cell.published.deviation] if cell.published else ["", ""]
    if not cell.values:
        return ["0", *[""] * 9, *map(str, published)]
    stats = summarize(cell.values)
    numbers: list[Any] = [stats.mean, stats.deviation, stats.error, stats.median, stats.interquartile_mean]
    for confidence in (0.95, 0.99):
        numbers += cell.interval(confidence) or ("", "")
    shown = ["" if value != value or value == "" else f"{value:.6g}" for value in numbers]
    return [str(stats.count), *shown, *map(str, published)]


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Rows as CSV; text that a spreadsheet would run as a formula gets an apostrophe in front."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([_csv_cell(value) for value in row] for row in rows)
    return buffer.getvalue()


def _csv_cell(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value  # a negative number


def percent_interval(values: Sequence[float], confidence: float) -> tuple[float, float] | None:
    """Confidence interval (t) of a mean of percentages, cut off at 0 and 100; None for a single run."""
    return cut_interval(values, confidence, (0.0, 100.0))


def cut_interval(values: Sequence[float], confidence: float, limits: tuple[float, float]) -> tuple[float, float] | None:
    """Confidence interval (t) of a mean, cut off at the limits; None for a single run."""
    interval = mean_interval(values, confidence)
    return None if interval is None else (max(interval.low, limits[0]), min(interval.high, limits[1]))


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def escape_markdown(text: str) -> str:
    """Keeps text from run folders from breaking a Markdown table, or from being markup in it."""
    for character, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|")):
        text = text.replace(character, name)
    return " ".join(text.split())


def summary(values: Sequence[float], digits: int = 1) -> str:
    """Mean, standard deviation in parentheses, and the number of seeds; a dash without values."""
    if not values:
        return "–"
    spread = f" ({stdev(values):.{digits}f})" if len(values) > 1 and math.isfinite(mean(values)) else ""
    return f"**{mean(values):.{digits}f}**{spread}, n={len(values)}"


def paired_difference(values: Sequence[float], limits: tuple[float, float]) -> Cell:
    """The cell of differences on the same seeds."""
    return Cell(tuple(values), limits=limits, compared=False)
