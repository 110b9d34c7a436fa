"""MiniGrid on the report page: levels with the paths of the agents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from pisces.experiments.experiment import PageSection
from pisces.experiments.minigrid.tables import has_usual_settings
from pisces.experiments.minigrid.tasks import Task, make_renderer
from pisces.reports.frames import packed_frames
from pisces.reports.results import StoredRun

ASSETS = files("pisces.experiments.minigrid").joinpath("page_assets")
SHOWN_TASKS = 12
"""Test tasks whose paths are shown; pictures make up most of their size."""


def page_section(runs: Sequence[StoredRun]) -> PageSection:
    """Returns the view of levels; empty for runs that did not record their episodes."""
    recorded: dict[str, list[StoredRun]] = {}
    for run in runs:
        if _is_recorded(run):
            recorded.setdefault(run.config.where, []).append(run)
    if not recorded:
        return PageSection()
    texts = [ASSETS.joinpath(name).read_text(encoding="utf-8") for name in ("levels.html", "levels.js")]
    return PageSection({"places": {where: _place(own) for where, own in recorded.items()}}, texts[0], (texts[1],))


def _is_recorded(run: StoredRun) -> bool:
    episodes = run.result.get("episodes")
    return isinstance(episodes, dict) and bool(episodes["tasks"]) and has_usual_settings(run)


def _place(runs: Sequence[StoredRun]) -> dict[str, Any]:
    """Packs the runs of the seed that most methods have: runs of one seed have the same tasks."""
    counts = Counter(run.config.seed for run in runs)
    seed = min(counts, key=lambda one: (-counts[one], one))
    own = [run for run in runs if run.config.seed == seed]
    family, tasks = own[0].config.family, _tasks(own[0].result["episodes"])
    renderers = [make_renderer(family, task) for task in tasks]
    starts = np.stack([renderer.frame(renderer.dynamics.start) for renderer in renderers])
    return {
        "seed": seed,
        "tasks": [f"level {task.level}, theme {task.theme}" for task in tasks],
        "frames": packed_frames(starts),
        "size": list(renderers[0].dynamics.level.grid.shape[:2]),
        "methods": {run.config.method: _episodes(run.result["episodes"], family, tasks) for run in own},
    }


def _tasks(episodes: Mapping[str, Any]) -> list[Task]:
    return [Task(int(level), int(theme)) for level, theme in episodes["tasks"][:SHOWN_TASKS]]


def _episodes(episodes: Mapping[str, Any], family: str, tasks: Sequence[Task]) -> dict[str, Any]:
    if _tasks(episodes) != list(tasks):
        return {"solved": "", "paths": []}
    paths = [
        path(family, task, actions) for task, actions in zip(tasks, episodes["actions"][: len(tasks)], strict=True)
    ]
    return {"solved": episodes["solved"][: len(tasks)], "paths": paths}


def path(family: str, task: Task, actions: str) -> list[list[int]]:
    """Returns the cells [x, y] that an episode visits, one after the other."""
    dynamics = make_renderer(family, task).dynamics
    state = dynamics.start
    cells = [list(state[:2])]
    for action in actions:
        state = dynamics.step(state, int(action)).state
        if list(state[:2]) != cells[-1]:
            cells.append(list(state[:2]))
    return cells
