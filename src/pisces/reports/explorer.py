"""The interactive page: what it knows of the runs, packed, and the frame that its scripts fill."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import pisces
from pisces.experiments import distracting, grid_transfer, jumping, lqr
from pisces.reports import page
from pisces.reports.diagnosis import NOTE, RunDiagnosis, packed_diagnosis
from pisces.reports.distracting import distracting_source
from pisces.reports.embeddings import HEIGHTS, SHOWN_HEIGHT, Embedding
from pisces.reports.grid import grid_source
from pisces.reports.jumping_tables import own_source
from pisces.reports.lqr import lqr_source
from pisces.reports.paper import DISTRACTING, JUMPING, JUMPING_COLORS, LQR, Published
from pisces.reports.results import HEADLINES, StoredRun, StoredRuns
from pisces.reports.statistics import mean_interval, summarize
from pisces.reports.tables import Cell, Table

SCRIPTS = (
    *("page", "page_table", "page_compare", "page_curves"),
    *("page_bisimulation", "page_metric", "page_embedding", "page_diagnosis", "page_start"),
)
MEASURES: Mapping[str, str] = {
    "test_solved_percent": "unseen tasks solved (%)",
    "red_test_solved_percent": "unseen red tasks solved (%)",
    "error": "error against the oracle",
    "test_return": "return with unseen backgrounds",
    "test_levels_percent": "unseen levels solved (%)",
}
COMMANDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "jumping": jumping.command_of,
    "lqr": lqr.command_of,
    "distracting": distracting.command_of,
    "grid": grid_transfer.command_of,
}
SOURCES: Mapping[str, Callable[[Mapping[str, Any]], tuple[Any, ...] | None]] = {
    "jumping": own_source,
    "lqr": lqr_source,
    "distracting": distracting_source,
    "grid": grid_source,
}
ORDER = list(JUMPING)
EXPERIMENTS = list(dict.fromkeys(HEADLINES.values()))
LONG_NUMBER = re.compile(r"\d+\.\d{10,}(e[-+]?\d+)?")
"""More digits than a table needs, most often what rounding left of a short number: 2.9999999999999997e-05."""


def settings_of(runs: StoredRuns) -> list[list[StoredRun]]:
    """Runs that differ in their seeds alone, together; in the paper's order of methods."""
    groups: dict[tuple[str, str], list[StoredRun]] = {}
    for run in runs.runs:
        groups.setdefault((run.experiment, run.setting), []).append(run)
    return sorted(groups.values(), key=lambda group: _place(group[0]))


def _place(run: StoredRun) -> tuple[Any, ...]:
    method, config = run.config["method"], run.config
    rank = ORDER.index(method) if method in ORDER else len(ORDER)
    own = source_of(run) is None if run.experiment == "jumping" else False
    experiment, size = EXPERIMENTS.index(run.experiment), int(config.get("distractors") or 0)
    return experiment, own, bool(config.get("colors")), rank, method, size, where_of(run), run.setting


def source_of(run: StoredRun) -> tuple[Any, ...] | None:
    """What a run counts for in the tables; None if it departs from its method's own."""
    return SOURCES[run.experiment](run.config)


def label_of(run: StoredRun) -> str:
    """Names a setting in one line."""
    parts = [run.config["method"], where_of(run) or run.experiment, changes_of(run)]
    return ", ".join(part for part in parts if part)


def run_label(run: StoredRun) -> str:
    """Names a single run."""
    return f"{label_of(run)}, seed {run.config['seed']}"


def where_of(run: StoredRun) -> str:
    """Says what a run was trained on: grid, number of distractors, or control task."""
    if "distractors" in run.config:
        return f"{run.config['distractors']} distractors"
    return str(run.config.get("grid") or run.config.get("task") or "")


def changes_of(run: StoredRun) -> str:
    """Says what sets a run apart from its method's own: preset, colours, changed settings."""
    config = run.config
    preset = config.get("preset")
    colors = "colours" if config.get("colors") else ""
    usual = distracting.THREADS if run.experiment == "distracting" else 1
    threads = f"threads={config['threads']}" if config.get("threads", usual) != usual else ""
    scene = [str(config.get("init") or "").replace("random", ""), str(config.get("variant") or "").replace("paper", "")]
    scene += ["DAVIS"] if config.get("davis") else []
    shown = "" if preset in (None, "paper", "standard") else f"preset {preset}"
    study = LONG_NUMBER.sub(lambda found: f"{float(found[0]):g}", str(config.get("study") or ""))
    study = study.replace(",", ", ")  # long ones break into lines
    return " ".join(part for part in [colors, *scene, study, threads, shown] if part)


def page_data(
    runs: StoredRuns,
    tables: Sequence[Table],
    embeddings: Sequence[tuple[StoredRun, Embedding]],
    diagnoses: Sequence[tuple[str, RunDiagnosis]] = (),
) -> dict[str, Any]:
    """All that the page's scripts need, in JSON values; long lists are base64 strings of bits or numbers."""
    groups = settings_of(runs)
    packed = [_packed_run(run, number) for number, group in enumerate(groups) for run in group]
    return {
        "settings": [_packed_setting(group) for group in groups],
        "runs": packed,
        "tables": [_packed_table(table, groups) for table in tables],
        "embeddings": [_packed_embedding(run, embedding) for run, embedding in embeddings],
        "diagnoses": [packed_diagnosis(label, one) for label, one in diagnoses],
    }


def _packed_setting(group: Sequence[StoredRun]) -> dict[str, Any]:
    run = group[0]
    values = [float(one.result[one.headline]) for one in group]
    told, interval = summarize(values), mean_interval(values)
    jumps, percent = run.experiment == "jumping", run.headline.endswith("percent")
    ends = (None, None) if interval is None else (interval.low, interval.high)
    if percent and interval is not None:
        ends = (max(interval.low, 0.0), min(interval.high, 100.0))
    config = json.loads(run.setting)
    return {
        "label": label_of(run),
        "method": config["method"],
        "grid": where_of(run),
        "changes": changes_of(run),
        "experiment": run.experiment,
        "measure": MEASURES[run.headline],
        "colors": bool(config.get("colors")),
        "grids": jumps,
        "config": config,
        "paper": _paper(run),
        "summary": {
            "count": told.count,
            "mean": round(told.mean, 4),
            "deviation": None if told.count < 2 else round(told.deviation, 4),
            "low": None if ends[0] is None else round(ends[0], 4),
            "high": None if ends[1] is None else round(ends[1], 4),
            "iqm": round(told.interquartile_mean, 4),
        },
    }


def _paper(run: StoredRun) -> float | None:
    source = source_of(run)
    if source is None or run.experiment == "grid":  # the grid is ours, not the paper's
        return None
    if run.experiment != "jumping":
        linear = run.experiment == "lqr"
        row = LQR.get(source[1], {}) if linear else DISTRACTING.get((source[2], source[3]), {})
        known: Published | None = dict(row).get(source[-1])
        return None if known is None else known.mean
    method, grid, colors, epsilon = source
    if epsilon:
        return None
    published = JUMPING_COLORS.get(method, {}).get("red") if colors else JUMPING.get(method, {}).get(grid)
    return None if published is None or (colors and grid != "wide") else published.mean


def _packed_run(run: StoredRun, setting: int) -> dict[str, Any]:
    packed = {
        "setting": setting,
        "seed": run.config["seed"],
        "folder": "/".join(run.folder.parts[-3:]),
        "value": round(float(run.result[run.headline]), 4),
        "command": command_of(run),
    }
    return packed | _packed_jumping(run) if run.experiment == "jumping" else packed


def command_of(run: StoredRun) -> str:
    """The command that repeats a run; empty if its config, of another version, does not tell."""
    try:
        return COMMANDS[run.experiment](run.config)
    except (KeyError, TypeError):
        return ""


def _packed_jumping(run: StoredRun) -> dict[str, Any]:
    result, colors = run.result, (("red", "green") if run.config.get("colors") else ("white",))
    prefix = "red_" if run.config.get("colors") else ""
    trained = {(task["obstacle_position"], task["floor_height"], task["color"]) for task in result["train_tasks"]}
    named = {
        f"{part}_percent": result.get(f"{prefix}{part}_solved_percent") for part in ("train", "validation", "heldout")
    }
    values = {color: f"{color}_test_solved_percent" if prefix else "test_solved_percent" for color in colors}
    return {
        **{name: None if value is None else round(float(value), 3) for name, value in named.items()},
        "solved": _bits(result["solved"]),
        "actions": _bits("".join(result["actions"])),
        "train": _bits("".join(str(int(tuple(task) in trained)) for task in result["tasks"])),
        "values": {color: round(float(result[name]), 3) for color, name in values.items() if name in result},
        "curves": {color: _curve(result.get("curve", ()), name) for color, name in values.items()},
    }


def _curve(rows: Sequence[Mapping[str, Any]], name: str) -> dict[str, list[Any]]:
    kept = [row for row in rows if name in row and "iteration" in row]
    return {"iterations": [row["iteration"] for row in kept], "values": [round(float(row[name]), 2) for row in kept]}


def _packed_table(table: Table, groups: Sequence[Sequence[StoredRun]]) -> dict[str, Any]:
    sources = [source_of(group[0]) for group in groups]

    def packed(cell: str | Cell) -> Any:
        if isinstance(cell, str):
            return cell.replace("`", "")  # Markdown's, which the page is not
        known = bool(cell.values) and cell.source is not None
        behind = [number for number, source in enumerate(sources) if known and source == cell.source]
        return {"text": str(cell).replace("**", ""), "settings": behind}

    rows = [[packed(cell) for cell in row] for row in table.rows]
    return {"title": table.title, "note": table.note, "header": table.header, "rows": rows}


def _packed_embedding(run: StoredRun, embedding: Embedding) -> dict[str, Any]:
    return {
        "label": run_label(run),
        "color": embedding.tasks[0].color,
        "heights": list(HEIGHTS),
        "size": embedding.directions.shape[2],
        "directions": base64.b64encode(embedding.directions.tobytes()).decode(),
        "points": base64.b64encode(embedding.points.astype("<f4").tobytes()).decode(),
        "positions": [task.obstacle_position for task in embedding.drawn],
        "drawn_height": SHOWN_HEIGHT,
        "projection": embedding.projection,
    }


def _bits(text: str) -> str:
    flags = np.frombuffer(text.encode(), dtype=np.uint8) == ord("1")
    return base64.b64encode(np.packbits(flags).tobytes()).decode()


def explorer_page(
    runs: StoredRuns, data: Mapping[str, Any], notes: Sequence[str], figures: Mapping[str, Figure]
) -> str:
    """The whole page."""
    counts = f"{len(runs.runs)} runs of {len(data['settings'])} settings, read by pisces {pisces.__version__}."
    told = "".join(f"<li>{escape(note)}</li>" for note in notes)
    gallery = page.row(page.image(figure, caption) for caption, figure in figures.items())
    body = page.asset("page.html")
    for name, part in {"COUNTS": escape(counts), "NOTES": told, "DIAGNOSIS": escape(NOTE), "FIGURES": gallery}.items():
        body = body.replace(f"<!-- {name} -->", part)
    script = "'use strict';\n(() => {\n" + "\n".join(page.asset(f"{name}.js") for name in SCRIPTS) + "\n})();\n"
    return page.page("pisces: report", [body], data, script)
