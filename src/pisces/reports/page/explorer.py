"""The interactive page: what it knows of the runs, and the frame that its scripts fill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from matplotlib.figure import Figure

import pisces
from pisces.experiments.experiment import Experiment, PageSection
from pisces.reports.colors import method_color
from pisces.reports.page import html as page
from pisces.reports.page.bundle import bundle
from pisces.reports.results import StoredRun, StoredRuns
from pisces.reports.statistics import mean_interval, summarize, t_quantile
from pisces.reports.tables import Cell, Table

LIBRARIES = ("vendor/d3.min.js", "vendor/plot.min.js")
FIRST_SCRIPTS = (
    "dom",
    "decode",
    "numbers",
    "text",
    "store",
    "view",
    "source",
    "charts",
    "pairs",
    "matrix",
    "overview",
    "compare",
    "table",
)
LAST_SCRIPTS = ("start",)
"""The page's own scripts; those of the experiments stand between them."""
CONFIDENCE, MOST_SEEDS = 0.95, 200
CLOCKS = ("iteration", "step", "steps")
"""What learning curves are drawn over, whichever the rows of a curve have."""


def page_data(
    runs: StoredRuns, tables: Sequence[Table], sections: Mapping[str, PageSection], note: str = ""
) -> dict[str, Any]:
    """Returns what the page's scripts need, as JSON values; sections have theirs under the experiment's name.

    Args:
        runs: the runs.
        tables: ours vs. paper.
        sections: what experiments add, by name.
        note: how to read the page; shown on request.
    """
    groups = runs.by_setting()
    experiments = {group[0].experiment.name: group[0].experiment for group in groups}
    quantiles = [t_quantile(CONFIDENCE, degrees) for degrees in range(1, MOST_SEEDS)]
    return {
        "note": note,
        "experiments": {name: _packed_experiment(one, groups) for name, one in experiments.items()},
        "settings": [_packed_setting(group) for group in groups],
        "runs": [_packed_run(run, number) for number, group in enumerate(groups) for run in group],
        "tables": [_packed_table(table, groups) for table in tables],
        "t95": [round(value, 4) for value in quantiles],
        **{name: dict(section.data) for name, section in sections.items()},
    }


def _packed_experiment(experiment: Experiment[Any], groups: Sequence[Sequence[StoredRun]]) -> dict[str, Any]:
    own = {number: group for number, group in enumerate(groups) if group[0].experiment.name == experiment.name}
    baseline, method = first_pair(experiment, own)
    story = experiment.story
    return {
        "log": experiment.log_scale,
        "claim": "" if story is None else story.claim,
        "rule": "" if story is None else story.rule,
        "pair": [baseline, method],
    }


def first_pair(experiment: Experiment[Any], groups: Mapping[int, Sequence[StoredRun]]) -> tuple[int, int]:
    """Returns the settings that the page compares first: the story's two methods, trained on the same.

    Settings without changes come before others, and settings with many runs before those with few.
    """

    def rank(number: int) -> tuple[bool, int]:
        run = groups[number][0]
        return experiment.cell(run.config) is None, -len(groups[number])

    order = sorted(groups, key=rank)
    wanted = (experiment.story.baseline, experiment.story.method) if experiment.story else ()
    for first in order:
        place = groups[first][0].config.where
        near = [number for number in order if groups[number][0].config.where == place]
        named = [next((n for n in near if groups[n][0].config.method == method), None) for method in wanted]
        if len(named) == 2 and named[0] is not None and named[1] is not None:
            return named[0], named[1]
    first = order[0]
    near = [n for n in order[1:] if groups[n][0].config.where == groups[first][0].config.where]
    pair = sorted([first, *near[:1]])
    return pair[0], pair[-1]


def _packed_setting(group: Sequence[StoredRun]) -> dict[str, Any]:
    run = group[0]
    config, measure, published = run.config, run.measure, run.experiment.published(run.config)
    return {
        "label": config.label,
        "method": config.method,
        "name": run.experiment.method_names.get(config.method, config.method),
        "color": method_color(config.methods, config.method),
        "where": config.where,
        "changes": ", ".join(filter(None, (config.changes_text, config.seed_group))),
        "own": run.experiment.cell(config) is not None and not config.changes,
        "experiment": run.experiment.name,
        "measure": measure.label,
        "better": measure.better,
        "limits": [limit if abs(limit) < float("inf") else None for limit in measure.limits],
        "config": {name: value for name, value in config.as_dict().items() if name not in config.seed_fields},
        "paper": None if published is None else published.mean,
        "summary": _summary([one.value for one in group], measure.limits),
    }


def _summary(values: Sequence[float], limits: tuple[float, float]) -> dict[str, Any]:
    found, interval = summarize(values), mean_interval(values, CONFIDENCE)
    low, high = (None, None) if interval is None else (max(interval.low, limits[0]), min(interval.high, limits[1]))
    numbers = {
        "mean": found.mean,
        "std": found.deviation if found.count > 1 else None,
        "low": low,
        "high": high,
        "iqm": found.interquartile_mean,
    }
    return {"count": found.count, **{k: None if v is None else _rounded(v) for k, v in numbers.items()}}


def _rounded(value: float, digits: int = 6) -> float:
    # To significant digits: errors of linear control lie far below one.
    return float(f"{value:.{digits}g}")


def _packed_run(run: StoredRun, setting: int) -> dict[str, Any]:
    return {
        "setting": setting,
        "seed": run.config.seed,
        "folder": "/".join(run.folder.parts[-3:]),
        "value": _rounded(run.value),
        "command": run.config.command(),
        "curve": _packed_curve(run),
        **run.experiment.page_run(run),
    }


def _packed_curve(run: StoredRun) -> dict[str, Any] | None:
    name = run.measure.name
    clock = next((clock for clock in CLOCKS if any(clock in row for row in run.curve)), None)
    rows = [row for row in run.curve if clock in row and name in row]
    if clock is None or not rows:
        return None
    return {"clock": clock, "x": [row[clock] for row in rows], "y": [_rounded(float(row[name]), 4) for row in rows]}


def _packed_table(table: Table, groups: Sequence[Sequence[StoredRun]]) -> dict[str, Any]:
    runs = [group[0] for group in groups]
    cells = [run.experiment.cell(run.config) if run.experiment.name == table.experiment else None for run in runs]

    def packed(cell: str | Cell) -> Any:
        if isinstance(cell, str):
            return cell.replace("`", "")  # Markdown's, which the page is not
        known = bool(cell.values) and cell.source is not None
        behind = [number for number, source in enumerate(cells) if known and source == cell.source]
        return {"text": str(cell).replace("**", ""), "settings": behind}

    rows = [[packed(cell) for cell in row] for row in table.rows]
    return {
        "title": table.title,
        "note": table.note,
        "header": table.header,
        "rows": rows,
        "experiment": table.experiment,
    }


def explorer_page(
    runs: StoredRuns,
    data: Mapping[str, Any],
    sections: Mapping[str, PageSection],
    notes: Sequence[str],
    figures: Mapping[str, tuple[str, Figure | bytes]],
) -> str:
    """Returns the whole page."""
    counts = f"{len(runs.runs)} runs of {len(data['settings'])} configs, read by pisces {pisces.__version__}."
    shown = [one for name, one in figures.items() if not name.startswith("solved_")]
    parts = {
        "COUNTS": escape(counts),
        "NOTES": "".join(f"<li>{escape(note)}</li>" for note in notes),
        "SECTIONS": "".join(_sections(name, section) for name, section in sections.items()),
        "FIGURES": page.row(page.image(figure, caption) for caption, figure in shown),
    }
    body = page.asset("page.html")
    for name, part in parts.items():
        body = body.replace(f"<!-- {name} -->", part)
    modules = [page.asset(f"{name}.js") for name in FIRST_SCRIPTS]
    modules += [script for section in sections.values() for script in section.scripts]
    modules += [page.asset(f"{name}.js") for name in LAST_SCRIPTS]
    libraries = [page.asset(name) for name in LIBRARIES]
    return page.page("pisces: report", [body], data, bundle(modules), page.asset("header.html"), libraries)


def _sections(experiment: str, section: PageSection) -> str:
    return f'<div class="sections" data-experiment="{escape(experiment)}">{section.html}</div>' if section.html else ""
