"""The interactive page: what it knows of the runs, and the frame that its scripts fill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from matplotlib.figure import Figure

import pisces
from pisces.experiments.experiment import PageSection
from pisces.reports.page import html as page
from pisces.reports.results import StoredRun, StoredRuns
from pisces.reports.statistics import mean_interval, summarize
from pisces.reports.tables import Cell, Table

FIRST_SCRIPTS, LAST_SCRIPTS = ("page", "table"), ("start",)
"""The page's own scripts; those of the experiments run between them."""


def page_data(runs: StoredRuns, tables: Sequence[Table], sections: Mapping[str, PageSection]) -> dict[str, Any]:
    """Returns what the page's scripts need, as JSON values; sections have theirs under the experiment's name."""
    groups = runs.by_setting()
    return {
        "settings": [_packed_setting(group) for group in groups],
        "runs": [_packed_run(run, number) for number, group in enumerate(groups) for run in group],
        "tables": [_packed_table(table, groups) for table in tables],
        **{name: dict(section.data) for name, section in sections.items()},
    }


def _packed_setting(group: Sequence[StoredRun]) -> dict[str, Any]:
    run = group[0]
    config, measure, published = run.config, run.measure, run.experiment.published(run.config)
    return {
        "label": config.label,
        "method": config.method,
        "where": config.where,
        "changes": config.changes_text,
        "experiment": run.experiment.name,
        "measure": measure.label,
        "better": measure.better,
        "config": {name: value for name, value in config.as_dict().items() if name not in config.seed_fields},
        "paper": None if published is None else published.mean,
        "summary": _summary([one.value for one in group], measure.limits),
    }


def _summary(values: Sequence[float], limits: tuple[float, float]) -> dict[str, Any]:
    found, interval = summarize(values), mean_interval(values)
    low, high = (None, None) if interval is None else (max(interval.low, limits[0]), min(interval.high, limits[1]))
    numbers = {
        "mean": found.mean,
        "std": found.deviation if found.count > 1 else None,
        "low": low,
        "high": high,
        "iqm": found.interquartile_mean,
    }
    return {"count": found.count, **{k: None if v is None else round(v, 4) for k, v in numbers.items()}}


def _packed_run(run: StoredRun, setting: int) -> dict[str, Any]:
    return {
        "setting": setting,
        "seed": run.config.seed,
        "folder": "/".join(run.folder.parts[-3:]),
        "value": round(run.value, 4),
        "command": run.config.command(),
        **run.experiment.page_run(run),
    }


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
    return {"title": table.title, "note": table.note, "header": table.header, "rows": rows}


def explorer_page(
    runs: StoredRuns,
    data: Mapping[str, Any],
    sections: Mapping[str, PageSection],
    notes: Sequence[str],
    figures: Mapping[str, tuple[str, Figure]],
) -> str:
    """Returns the whole page."""
    counts = f"{len(runs.runs)} runs of {len(data['settings'])} configs, read by pisces {pisces.__version__}."
    shown = [one for name, one in figures.items() if not name.startswith("solved_")]
    parts = {
        "COUNTS": escape(counts),
        "NOTES": "".join(f"<li>{escape(note)}</li>" for note in notes),
        "SECTIONS": "".join(section.html for section in sections.values()),
        "FIGURES": page.row(page.image(figure, caption) for caption, figure in shown),
    }
    body = page.asset("page.html")
    for name, part in parts.items():
        body = body.replace(f"<!-- {name} -->", part)
    scripts = [page.asset(f"{name}.js") for name in FIRST_SCRIPTS]
    scripts += [script for section in sections.values() for script in section.scripts]
    scripts += [page.asset(f"{name}.js") for name in LAST_SCRIPTS]
    script = "'use strict';\n(() => {\n" + "\n".join(scripts) + "\n})();\n"
    return page.page("pisces: report", [body], data, script)
