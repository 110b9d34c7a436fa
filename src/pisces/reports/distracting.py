"""Reports of Distracting Control: Table 3 beside the paper's, training beside unseen backgrounds, learning curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from matplotlib.figure import Figure

from pisces.envs.distracting_tasks import PAPER_TASKS
from pisces.experiments.distracting import PRESETS
from pisces.reports.figures import LINE_COLORS, plain_axes, plain_text
from pisces.reports.paper import DISTRACTING
from pisces.reports.result_figures import curve_matrix
from pisces.reports.tables import Cell, Table, escape_markdown, markdown

Result = Mapping[str, Any]
Source = tuple[str, str, str, str, str]
NAMES = {"drq": "DrQ", "drq+pse": "DrQ + PSEs"}
RETURNS = (0.0, 1000.0)
"""An episode of the suite has 1000 steps with rewards between 0 and 1."""
NO_RUNS = "No finished run of Distracting Control lies in the results.\n"
COLUMNS = 3
"""Panels of the figure side by side."""
NOTE = (
    "{presets} The paper: 500,000 steps, frames of 84 pixels, 5 seeds, DAVIS videos. Ours / the paper's: mean, in "
    "parentheses the standard error, n = seeds, in brackets the 95 % interval of the mean."
)


def distracting_source(config: Mapping[str, Any]) -> Source | None:
    """What a run counts for in the tables: preset and videos, initialisation, method, task; None if it was changed."""
    changed = config.get("study") or config.get("variant", "paper") != "paper"
    if changed or "protocol" not in config or config["preset"] not in PRESETS:
        return None
    scene = f"{config['preset']}, DAVIS" if config.get("davis") else str(config["preset"])
    return "distracting", scene, config["init"], config["method"], config["task"]


def group_distracting(results: Iterable[Result]) -> dict[Source, list[Result]]:
    """Collects the methods' own runs by what they count for, one per seed; larger presets first, then random init."""
    groups: dict[Source, dict[int, Result]] = {}
    for result in results:
        source = distracting_source(result["config"]) if "test_return" in result else None
        if source is not None:
            groups.setdefault(source, {}).setdefault(result["config"]["seed"], result)
    return {source: [groups[source][seed] for seed in sorted(groups[source])] for source in sorted(groups, key=_order)}


def _order(source: Source) -> tuple[Any, ...]:
    _, scene, init, method, task = source
    return list(PRESETS).index(scene.partition(",")[0]), scene, init != "random", method, task


def distracting_tables(results: Iterable[Result]) -> list[Table]:
    """Both tables, if there are runs for them."""
    groups = group_distracting(results)
    return [table_3(groups), train_table(groups)] if groups else []


def table_3(groups: Mapping[Source, Sequence[Result]]) -> Table:
    """Return on unseen backgrounds by initialisation, method and task (Table 3)."""
    others = sorted({source[4] for source in groups} - set(PAPER_TASKS))
    rows: list[tuple[str | Cell, ...]] = []
    for scene in dict.fromkeys(source[1] for source in groups):
        for (init, method), published in DISTRACTING.items():
            sources = [("distracting", scene, init, method, task) for task in (*PAPER_TASKS, *others)]
            cells = [_cell(groups, source, "test_return", published) for source in sources]
            rows.append((scene, init, NAMES[method], *cells))
    header = ("preset", "initialisation", "method", *PAPER_TASKS, *others)
    note = NOTE.format(presets=_presets(groups))
    return Table("distracting", "Table 3: return on unseen backgrounds", note, header, tuple(rows))


def _cell(
    groups: Mapping[Source, Sequence[Result]], source: Source, value: str, published: Mapping[str, Any] | None
) -> Cell:
    values = tuple(float(result[value]) for result in groups.get(source, ()))
    paper = (published or {}).get(source[4])
    return Cell(values, paper, "error", source=source, limits=RETURNS, digits=0, compared=published is not None)


def _presets(groups: Mapping[Source, Sequence[Result]]) -> str:
    """Says in how many steps and pixels the runs of each preset differ from the paper's."""
    protocols = {source[1]: results[0]["config"]["protocol"] for source, results in groups.items()}
    told = [f"{name}: {p['steps']:,} steps, frames of {p['frame_size']} pixels" for name, p in protocols.items()]
    return f"Preset {'; '.join(told)}."


def train_table(groups: Mapping[Source, Sequence[Result]]) -> Table:
    """Return on the training backgrounds beside that on unseen ones."""
    rows: list[tuple[str | Cell, ...]] = []
    for source in groups:
        cells = [_cell(groups, source, value, None) for value in ("train_return", "test_return")]
        rows.append((source[1], source[2], NAMES.get(source[3], source[3]), source[4], *cells))
    note = f"{_presets(groups)} Mean, in parentheses the standard error, n = seeds, in brackets the 95 % interval."
    header = ("preset", "initialisation", "method", "task", "training backgrounds", "unseen backgrounds")
    return Table("distracting_train", "Distracting Control: training and unseen backgrounds", note, header, tuple(rows))


def distracting_markdown(results: Iterable[Result], number: int = 0) -> str:
    """One of the tables for a document, in Markdown, or a line that says that there are no runs."""
    tables = distracting_tables(results)
    if not tables:
        return NO_RUNS
    table = tables[number]
    rows = ([escape_markdown(str(cell)) for cell in row] for row in table.rows)
    return f"{table.note}\n\n{markdown(table.header, rows)}"


def distracting_train_markdown(results: Iterable[Result]) -> str:
    """The second table for a document."""
    return distracting_markdown(results, 1)


def plain_markdown(results: Iterable[Result]) -> str:
    """The undistracted task along training and at the end, every second evaluation: what the agent can do at best."""
    rows = []
    for result in results:
        config = result["config"]
        if config.get("variant") == "plain" and not config.get("study") and result.get("curve"):
            along = ", ".join(f"{row['step']:,}: {row['test_return']:.0f}" for row in result["curve"][1::2])
            name = NAMES.get(config["method"], config["method"])
            rows.append([config["preset"], name, config["task"], str(config["seed"]), along, result["test_return"]])
    header = ["preset", "method", "task", "seed", "return after so many steps", "at the end"]
    told = [[*map(escape_markdown, row[:-1]), f"**{row[-1]:.0f}**"] for row in rows]
    return markdown(header, told) if rows else NO_RUNS


def alignment_markdown(results: Iterable[Result]) -> str:
    """What explains the returns: the policy behind the pairs, the loss, and whether agents see through backgrounds."""
    rows = []
    for source, runs in group_distracting(results).items():
        measured = [run["alignment"] for run in runs if "alignment" in run]
        if not measured:
            continue
        found = [fmean(m[videos]["found_percent"] for m in measured) for videos in ("train", "test")]
        differ = [fmean(m[videos]["action_difference"] for m in measured) for videos in ("train", "test")]
        losses = [[row["auxiliary_loss"] for row in run["curve"] if "auxiliary_loss" in row] for run in runs]
        told = [curve for curve in losses if curve]
        loss = f"{fmean(c[0] for c in told):.2f} → {fmean(c[-1] for c in told):.2f}" if told else "–"
        pairs = [run["pair_return"] for run in runs if "pair_return" in run]
        name = NAMES.get(source[3], source[3])
        rows.append(
            [source[1], source[2], name, source[4], str(len(measured)), f"{fmean(pairs):.0f}" if pairs else "–", loss,
             f"{found[0]:.0f} / {found[1]:.0f}", f"{differ[0]:.2f} / {differ[1]:.2f}"]
        )  # fmt: skip
    header = [
        *("preset", "initialisation", "method", "task", "seeds", "return of the pairs' policy"),
        *("loss, first → last tenth of training", "same state found (%)", "actions differ by"),
    ]
    return markdown(header, [list(map(escape_markdown, row)) for row in rows]) if rows else NO_RUNS


def learning_curves(groups: Mapping[Source, Sequence[Result]], scene: str) -> Figure:
    """Draws the return by environment step, a panel per task: lines are means, bands reach from the worst to the best
    seed; solid on unseen backgrounds, dashed on those of training."""
    shown = {source: results for source, results in groups.items() if source[1] == scene}
    tasks = sorted({source[4] for source in shown}, key=lambda task: (task not in PAPER_TASKS, task))
    columns = min(len(tasks), COLUMNS)
    rows = -(-len(tasks) // columns)
    figure = Figure(figsize=(max(4.2 * columns, 5.2), 3.3 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in panels[len(tasks) :]:
        axes.set_visible(False)
    for axes, task in zip(panels, tasks, strict=False):
        for source, results in shown.items():
            if source[4] == task:
                _draw_curves(axes, source, results)
        axes.set_title(plain_text(task), fontsize=10)
        axes.set_xlabel("environment step")
        axes.set_ylabel("return")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, fontsize=7)
        plain_axes(axes)
    return figure


def _draw_curves(axes: Any, source: Source, results: Sequence[Result]) -> None:
    place = (
        list(DISTRACTING).index((source[2], source[3])) if (source[2], source[3]) in DISTRACTING else len(DISTRACTING)
    )
    name = f"{NAMES.get(source[3], source[3])}{'' if source[2] == 'random' else ', ' + source[2]} (n={len(results)})"
    for value, style, label in (("test_return", "-", plain_text(name)), ("train_return", "--", None)):
        steps, returns = curve_matrix(results, value, "step")
        color = LINE_COLORS[place % len(LINE_COLORS)]
        axes.plot(steps, returns.mean(axis=0), style, color=color, label=label, marker=".", markersize=4)
        if value == "test_return":
            axes.fill_between(steps, returns.min(axis=0), returns.max(axis=0), color=color, alpha=0.2, linewidth=0)


def curve_figures(results: Iterable[Result]) -> dict[str, tuple[str, Figure]]:
    """The learning curves of every preset that has runs with curves: file stem -> caption and figure."""
    groups = group_distracting(result for result in results if result.get("curve"))
    figures = {}
    for scene in dict.fromkeys(source[1] for source in groups):
        stem = f"distracting_curves_{scene.replace(', ', '_').lower()}"
        caption = (
            f"Distracting Control, preset {scene}: solid lines are unseen backgrounds, with bands from the worst to "
            "the best seed; dashed ones training backgrounds"
        )
        figures[stem] = (caption, learning_curves(groups, scene))
    return figures
