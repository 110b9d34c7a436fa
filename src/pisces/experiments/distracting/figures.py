"""Figures of Distracting Control."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from pisces.envs.distracting.tasks import PAPER_TASKS
from pisces.experiments.distracting.config import DistractingConfig
from pisces.experiments.distracting.tables import NAMES, Source, by_cell
from pisces.reports.colors import method_color
from pisces.reports.figures import curve_matrix, plain_axes, plain_text
from pisces.reports.results import StoredRun

COLUMNS = 3
"""Panels of the figure side by side."""


def learning_curves(groups: Mapping[Source, Sequence[StoredRun]], scene: str) -> Figure:
    """Draws the return by environment step, a panel per task: lines are means, bands reach from the worst to the best
    seed; solid on unseen backgrounds, dashed on those of training."""
    shown = {source: runs for source, runs in groups.items() if source[1] == scene}
    tasks = sorted({source[4] for source in shown}, key=lambda task: (task not in PAPER_TASKS, task))
    columns = min(len(tasks), COLUMNS)
    rows = -(-len(tasks) // columns)
    figure = Figure(figsize=(max(4.2 * columns, 5.2), 3.3 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in panels[len(tasks) :]:
        axes.set_visible(False)
    for axes, task in zip(panels, tasks, strict=False):
        for source, runs in shown.items():
            if source[4] == task:
                _draw_curves(axes, source, runs)
        axes.set_title(plain_text(task), fontsize=10)
        axes.set_xlabel("environment step")
        axes.set_ylabel("return")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, fontsize=7)
        plain_axes(axes)
    return figure


def _draw_curves(axes: Any, source: Source, runs: Sequence[StoredRun]) -> None:
    color = method_color(DistractingConfig.methods, source[3])
    marker = "." if source[2] == "random" else "x"
    name = f"{NAMES.get(source[3], source[3])}{'' if source[2] == 'random' else ', ' + source[2]} (n={len(runs)})"
    for value, style, label in (("test_return", "-", plain_text(name)), ("train_return", "--", None)):
        steps, returns = curve_matrix(runs, value, "step")
        axes.plot(steps, returns.mean(axis=0), style, color=color, label=label, marker=marker, markersize=4)
        if value == "test_return":
            axes.fill_between(steps, returns.min(axis=0), returns.max(axis=0), color=color, alpha=0.2, linewidth=0)


def curve_figures(runs: Iterable[StoredRun]) -> dict[str, tuple[str, Figure]]:
    """The learning curves of every preset that has runs with curves: file stem -> caption and figure."""
    groups = by_cell(run for run in runs if run.curve)
    figures = {}
    for scene in dict.fromkeys(source[1] for source in groups):
        stem = f"distracting_curves_{scene.replace(', ', '_').lower()}"
        caption = (
            f"Distracting Control, preset {scene}: solid lines are unseen backgrounds, with bands from the worst to "
            "the best seed; dashed ones training backgrounds"
        )
        figures[stem] = (caption, learning_curves(groups, scene))
    return figures
