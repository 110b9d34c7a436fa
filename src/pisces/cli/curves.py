"""Learning curves in the terminal, drawn while runs train."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from rich.console import Console, Group
from rich.text import Text

from pisces.cli.displays import LiveTable
from pisces.runs.progress import Progress

Points = Sequence[tuple[float, float]]
"""Places and values of a curve."""
WIDTH, HEIGHT = 56, 11
STYLES, MARKS = ("dark_orange3", "dodger_blue2"), ("o", "+")


def curve_rows(
    curves: Sequence[Points], total: float, width: int = WIDTH, height: int = HEIGHT
) -> list[list[int | None]]:
    """Places curves of percentages on a grid of characters.

    Returns:
        Rows from the top; a cell is the number of the curve that is drawn there, the last one where several meet.
    """
    rows: list[list[int | None]] = [[None] * width for _ in range(height)]
    for number, points in enumerate(curves):
        for place, value in points:
            column = round(min(max(place / total, 0.0), 1.0) * (width - 1))
            row = round((1 - min(max(value, 0.0), 100.0) / 100) * (height - 1))
            rows[row][column] = number
    return rows


class CurveDisplay(LiveTable):
    """Learning curves of some groups of runs, as they grow; where there is no terminal, one line per evaluation.

    Args:
        names: the groups' names.
        groups: the group of each run.
        value: the percentage in an evaluation.
        console: where to draw.
    """

    def __init__(
        self, names: Sequence[str], groups: Sequence[int], value: Callable[[Mapping[str, Any]], float], console: Console
    ) -> None:
        super().__init__(console)
        self._names, self._groups, self._value = names, groups, value
        self._points: list[dict[int, float]] = [{} for _ in groups]
        self._shares = [0.0] * len(groups)
        self._total = 1

    def update(self, index: int, progress: Progress) -> None:
        """Shows the progress of one run."""
        self._total = progress.total
        self._shares[index] = progress.iteration / progress.total
        row = progress.evaluation
        if row is not None and row["iteration"] not in self._points[index]:
            self._points[index][row["iteration"]] = self._value(row)
            if not self._console.is_terminal:
                name = self._names[self._groups[index]]
                text = f"{name}: iteration {row['iteration']}: {self._value(row):.1f} % of unseen tasks solved"
                self._console.print(text, soft_wrap=True)
        self.show(self.picture)

    def curve(self, group: int) -> Points:
        """Returns the mean over a group's runs, where any was evaluated."""
        own = [points for points, number in zip(self._points, self._groups, strict=True) if number == group]
        places = sorted({place for points in own for place in points})
        return [(place, fmean(points[place] for points in own if place in points)) for place in places]

    def picture(self) -> Group:
        """Draws the curves with axes and a legend."""
        curves = [self.curve(group) for group in range(len(self._names))]
        lines = [Text("unseen tasks solved (%)")]
        for number, row in enumerate(curve_rows(curves, self._total)):
            level = f"{round(100 * (1 - number / (HEIGHT - 1))):4d} " if number % 5 == 0 else "     "
            line = Text(f"{level}|")
            for cell in row:
                line.append(" " if cell is None else MARKS[cell % 2], "" if cell is None else STYLES[cell % 2])
            lines.append(line)
        lines.append(Text(f"     +{'-' * WIDTH}"))
        lines.append(Text(f"      0{f'{self._total} iterations':>{WIDTH - 1}}"))
        for group, name in enumerate(self._names):
            lines.append(self._legend(group, name, curves[group]))
        return Group(*lines)

    def _legend(self, group: int, name: str, curve: Points) -> Text:
        shares = [share for share, number in zip(self._shares, self._groups, strict=True) if number == group]
        newest = f"{curve[-1][1]:5.1f} %" if curve else "    –  "
        line = Text(f"  {MARKS[group % 2]} ", STYLES[group % 2])
        return line.append(f"{name:<16} {newest}   {100 * fmean(shares):3.0f} % trained", "default")
