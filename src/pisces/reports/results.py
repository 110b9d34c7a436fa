"""Results of finished runs, wherever they lie below some folders."""

from __future__ import annotations

import gc
import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, get_type_hints

import orjson

from pisces.envs.grids import all_tasks
from pisces.envs.jumping import AGENT_WIDTH
from pisces.errors import UserError
from pisces.experiments.distracting import DistractingConfig
from pisces.experiments.grid_transfer import GridConfig
from pisces.experiments.jumping import JumpingConfig
from pisces.experiments.lqr import LQRConfig
from pisces.experiments.store import CHECKPOINT, RESULT, RUN_INFO

HEADLINES: Mapping[str, str] = {
    "test_solved_percent": "jumping",
    "red_test_solved_percent": "jumping",
    "error": "lqr",
    "test_return": "distracting",
    "test_levels_percent": "grid",
}
"""The number that a result is judged by, and the experiment that it tells of."""
CONFIGS: Mapping[str, type] = {
    "jumping": JumpingConfig,
    "lqr": LQRConfig,
    "distracting": DistractingConfig,
    "grid": GridConfig,
}
GRID_NUMBERS = ("train_levels_percent", "validation_levels_percent", "test_levels_percent")
TASK_KEYS = {"obstacle_position", "floor_height", "color"}


@dataclass(frozen=True)
class Results:
    """What a folder holds."""

    rows: tuple[dict[str, Any], ...]
    """The results, in the order of their paths."""
    damaged: tuple[Path, ...]
    """Result files that could not be read; they are left alone."""


@dataclass(frozen=True)
class StoredRun:
    """One finished run."""

    folder: Path
    """Its run folder."""
    result: dict[str, Any]
    """Its result file."""

    @property
    def config(self) -> dict[str, Any]:
        """Its config."""
        config: dict[str, Any] = self.result["config"]
        return config

    @property
    def headline(self) -> str:
        """The name of the number that it is judged by."""
        return next(name for name in HEADLINES if name in self.result)

    @property
    def experiment(self) -> str:
        """The experiment's name."""
        return HEADLINES[self.headline]

    @cached_property
    def setting(self) -> str:
        """The config without the seed, as canonical JSON: runs that agree in it differ by chance alone.

        Settings that were not there yet when a run was made have the defaults that keep it what it was.
        """
        rest = {name: value for name, value in self.config.items() if name not in ("seed", "seeds")}
        return json.dumps(_with_defaults(rest, CONFIGS[self.experiment]), sort_keys=True)

    @property
    def has_checkpoint(self) -> bool:
        """Whether the trained agent is there."""
        return (self.folder / CHECKPOINT).exists()

    @cached_property
    def version(self) -> str | None:
        """The version of pisces that ran it, if it was written down."""
        try:
            info = json.loads((self.folder / RUN_INFO).read_text())
        except (OSError, ValueError):
            return None
        return str(info["pisces"]) if isinstance(info, dict) and "pisces" in info else None


@dataclass(frozen=True)
class StoredRuns:
    """The runs below some folders."""

    runs: tuple[StoredRun, ...]
    """The finished runs, each config once, sorted by setting and seed."""
    skipped: tuple[str, ...] = ()
    """One line per result file that was left out: its path and why."""

    def of(self, experiment: str) -> list[StoredRun]:
        """The runs of one experiment."""
        return [run for run in self.runs if run.experiment == experiment]

    def versions(self) -> dict[str, int]:
        """How many runs each version of pisces made, as far as it is known."""
        return dict(sorted(Counter(run.version for run in self.runs if run.version is not None).items()))


def read_results(*roots: Path) -> Results:
    """Reads all result files below the given folders."""
    contents = _read_all(_result_files(roots))
    rows = tuple(content for content in contents.values() if content is not None)
    return Results(rows, tuple(path for path, content in contents.items() if content is None))


def read_runs(roots: Sequence[Path]) -> StoredRuns:
    """Reads all finished runs below the given folders; a run that lies in several of them counts once.

    Files that can't be used are named and left alone.
    """
    for root in roots:
        if not root.is_dir():
            raise UserError(f"expected a folder of runs, got {str(root)!r}, which is not a folder")
    chosen: dict[tuple[str, str, str], StoredRun] = {}
    skipped = []
    for path, content in _read_all(_result_files(roots)).items():
        for result in [None] if content is None else _single_runs(content):
            problem = "not a readable result" if result is None else _problem(result)
            if result is None or problem is not None:
                skipped.append(f"{path}: {problem}")
                continue
            run = StoredRun(path.parent, result)
            key = (run.experiment, run.setting, str(run.config["seed"]))
            if key not in chosen or (run.has_checkpoint and not chosen[key].has_checkpoint):
                chosen[key] = run
    order = sorted(chosen.values(), key=lambda run: (run.experiment, run.setting, int(run.config["seed"])))
    return StoredRuns(tuple(order), tuple(skipped))


def _with_defaults(stored: Mapping[str, Any], kind: type) -> dict[str, Any]:
    """A stored config with the entries of its class, and of the classes within it, that it lacks."""
    plain, nested = _defaults(kind)
    values = {**plain, **stored}
    known = {name: values[name] for name in nested if isinstance(values.get(name), dict)}
    return values | {name: _with_defaults(value, nested[name]) for name, value in known.items()}


@cache
def _defaults(kind: type) -> tuple[dict[str, Any], dict[str, type]]:
    """The defaults of a config's fields, and those fields that are dataclasses themselves."""
    known = fields(kind)
    hints = get_type_hints(kind)
    plain = {field.name: field.default for field in known if field.default is not MISSING}
    return plain, {field.name: hints[field.name] for field in known if is_dataclass(hints[field.name])}


@cache
def task_rows(colors: bool) -> list[list[Any]]:
    """The tasks of a result with or without colours, as result files list them: [position, height, color]."""
    chosen = ("red", "green") if colors else ("white",)
    return [[task.obstacle_position, task.floor_height, color] for color in chosen for task in all_tasks()]


def _result_files(roots: Iterable[Path]) -> list[Path]:
    # Not Path.rglob and Path.resolve for every file: they take longer than reading it.
    found: dict[str, Path] = {}
    for root in roots:
        real = os.path.realpath(root)
        for folder, _, names in os.walk(real):
            if RESULT in names:
                found.setdefault(folder, root / folder[len(real) + 1 :] / RESULT)
    return sorted(found.values(), key=str)


def _read_all(paths: Iterable[Path]) -> dict[Path, dict[str, Any] | None]:
    """The content of each file; None where it isn't a result."""
    # Thousands of results are millions of objects, none of them garbage, which the collector would visit in vain.
    collecting = gc.isenabled()
    gc.disable()
    shared: list[Any] = []
    try:
        contents = {}
        for path in paths:
            contents[path] = content = _read(path)
            # Nearly all runs list the same tasks; keeping one list instead of thousands saves most of the memory.
            if content is not None and "tasks" in content:
                shared = shared if shared == content["tasks"] else content["tasks"]
                content["tasks"] = shared
        return contents
    finally:
        if collecting:
            gc.enable()


def _read(path: Path) -> dict[str, Any] | None:
    try:
        text = path.read_bytes()
        try:
            content = orjson.loads(text)
        except ValueError:
            content = json.loads(text)  # knows NaN, of which `_problem` can tell more
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and isinstance(content.get("config"), dict) else None


def _single_runs(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Takes a result of several seeds, as linear control has them, apart; others stay as they are."""
    rows = result.get("runs")
    if any(name in result for name in HEADLINES) or not isinstance(rows, list) or not rows:
        return [result]
    if not all(isinstance(row, dict) and "seed" in row for row in rows):
        return [result]
    return [{**row, "runs": [row], "config": {**result["config"], "seed": row["seed"]}} for row in rows]


def _problem(result: Mapping[str, Any]) -> str | None:
    """Says what a result lacks, or None if it is whole."""
    headline = next((name for name in HEADLINES if name in result), None)
    if headline is None:
        return f"none of {', '.join(HEADLINES)} in it; a result of another version?"
    wrong = [name for name in result if name == headline or name.endswith("solved_percent")]
    wrong = [name for name in wrong if not _is_number(result[name])]
    if headline == "error" and result["error"] is None:
        return f"seed {result['config'].get('seed')} is unstable in the unseen environment: no finite error to show"
    if wrong:
        return f"expected a finite number as {wrong[0]}"
    config = result["config"]
    if not isinstance(config.get("method"), str) or not isinstance(config.get("seed"), int):
        return "a config without method and seed"
    problems = {"jumping": _jumping_problem, "distracting": _distracting_problem, "grid": _grid_problem}
    check = problems.get(HEADLINES[headline])
    return None if check is None else check(result)


def _grid_problem(result: Mapping[str, Any]) -> str | None:
    wrong = [name for name in GRID_NUMBERS if not _is_number(result.get(name))]
    return f"expected a finite number as {wrong[0]}" if wrong else None


def _distracting_problem(result: Mapping[str, Any]) -> str | None:
    config, protocol = result["config"], result["config"].get("protocol")
    if protocol is None:
        return None  # too little to stand in tables, enough for the list of runs
    if not all(isinstance(config.get(name), str) for name in ("task", "init", "preset")):
        return "a config without task, init and preset"
    if not isinstance(protocol, dict) or not all(_is_number(protocol.get(name)) for name in ("steps", "frame_size")):
        return "a protocol without steps and frame_size"
    if not _is_number(result.get("train_return")):
        return "expected a finite number as train_return"
    return None if _is_curve(result.get("curve", [])) else "expected rows of numbers in curve"


def _jumping_problem(result: Mapping[str, Any]) -> str | None:
    config = result["config"]
    if not isinstance(config.get("grid"), str) or not isinstance(config.get("settings", {}), dict):
        return "a config without grid and settings"
    lists = [result.get(name) for name in ("tasks", "actions", "train_tasks")] + [result.get("curve", [])]
    if not all(isinstance(value, list) for value in lists) or not isinstance(result.get("solved"), str):
        return "tasks, solved, actions or train_tasks is missing; a result of another version?"
    expected = task_rows(bool(config.get("colors")))
    if result["tasks"] != expected:
        return f"expected the {len(expected)} tasks of this version, got {len(result['tasks'])} others"
    lengths = [position - AGENT_WIDTH + 1 for position, _, _ in expected]
    if len(result["solved"]) != len(expected) or [len(str(actions)) for actions in result["actions"]] != lengths:
        return "expected one solved flag per task and one action per state before its obstacle"
    if set(result["solved"]) - set("01") or set("".join(map(str, result["actions"]))) - set("01"):
        return "expected solved and actions as strings of 0 and 1"
    if not all(isinstance(row, dict) and row.keys() >= TASK_KEYS for row in result["train_tasks"]):
        return "expected train_tasks with obstacle_position, floor_height and color"
    if not _is_curve(result.get("curve", [])):
        return "expected rows of numbers in curve"
    return None if _is_number(config.get("epsilon") or 0) else "expected a number as epsilon"


def _is_curve(rows: Any) -> bool:
    return isinstance(rows, list) and all(isinstance(row, dict) and all(map(_is_number, row.values())) for row in rows)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
