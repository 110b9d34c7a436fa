"""Results of finished runs below some folders."""

from __future__ import annotations

import gc
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from pisces.errors import UserError, unknown_name
from pisces.experiments.experiment import Experiment
from pisces.files import READ_ERRORS, printable, read_bytes, read_json
from pisces.runs.measure import Measure
from pisces.runs.store import CHECKPOINT, RESULT, RETRAINED, RUN_INFO, check_schema, verify_result

Experiments = Mapping[str, Experiment[Any]]
Report = Callable[[str, int, int], None]
"""Shows progress: what is being done, how much of it is done, and how much there is."""
UNUSABLE = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""What a result with values of wrong types may raise."""
LARGEST = 1e100
"""Numbers beyond it are taken for damage; sums of squares of smaller ones are finite."""
MOST_PATH = 1000
"""Letters of a path in a line about it."""


def no_report(what: str, done: int, total: int) -> None:
    """Shows no progress."""


@dataclass(frozen=True)
class StoredRun:
    """One finished run."""

    folder: Path
    """Its run folder."""
    experiment: Experiment[Any]
    """Its experiment."""
    config: Any
    """Its config."""
    result: dict[str, Any]
    """Its result file."""

    def __getitem__(self, name: str) -> Any:
        return self.result[name]

    def __contains__(self, name: str) -> bool:
        return name in self.result

    @property
    def measure(self) -> Measure:
        """Its headline measure."""
        measure = self.experiment.measure(self.result)
        assert measure is not None  # `read_runs` leaves others out
        return measure

    @property
    def value(self) -> float:
        """The value of its headline measure."""
        return float(self.result[self.measure.name])

    @property
    def curve(self) -> list[dict[str, Any]]:
        """Its evaluations during training."""
        rows: list[dict[str, Any]] = self.result.get("curve", [])
        return rows

    @cached_property
    def setting(self) -> str:
        """The config without the seed, as canonical JSON: runs that agree in it differ by chance alone."""
        identity = {
            name: value for name, value in self.config.identity().items() if name not in self.config.seed_fields
        }
        return json.dumps(identity, sort_keys=True)

    @property
    def label(self) -> str:
        """Names the run in one line."""
        return f"{self.config.label}, seed {self.config.seed}"

    @property
    def has_checkpoint(self) -> bool:
        """Whether the trained agent is there."""
        return (self.folder / CHECKPOINT).exists()

    @cached_property
    def info(self) -> dict[str, Any]:
        """What was recorded about how it was run; empty if nothing was."""
        try:
            info = read_json(self.folder / RUN_INFO)
        except READ_ERRORS:
            return {}
        return info if isinstance(info, dict) else {}

    @property
    def version(self) -> str | None:
        """The version of pisces that ran it, if it was recorded."""
        version = self.info.get("pisces")
        return printable(version, 40) if isinstance(version, str) else None

    @property
    def seconds(self) -> float | None:
        """How long it took, if it was recorded."""
        seconds = self.info.get("seconds")
        return float(seconds) if isinstance(seconds, int | float) and is_number(seconds) else None


@dataclass(frozen=True)
class StoredRuns:
    """The runs below some folders."""

    runs: tuple[StoredRun, ...]
    """The finished runs, each config once, sorted by experiment, setting and seed."""
    skipped: tuple[str, ...] = ()
    """One line per result file that was left out: its path and why."""

    def of(self, experiment: str) -> list[StoredRun]:
        """Returns the runs of one experiment."""
        return [run for run in self.runs if run.experiment.name == experiment]

    def by_experiment(self) -> dict[str, list[StoredRun]]:
        """Returns the runs by experiment."""
        return {name: self.of(name) for name in dict.fromkeys(run.experiment.name for run in self.runs)}

    def by_setting(self) -> list[list[StoredRun]]:
        """Returns runs that differ in their seeds alone together, in the order of their experiments.

        Seeds that settings were chosen on are apart from those that results are reported on.
        """
        groups: dict[tuple[str, str, str], list[StoredRun]] = {}
        for run in self.runs:
            groups.setdefault((run.experiment.name, run.setting, run.config.seed_group), []).append(run)
        names = list(self.by_experiment())

        def place(group: list[StoredRun]) -> tuple[Any, ...]:
            run = group[0]
            changed = run.experiment.cell(run.config) is None
            return names.index(run.experiment.name), changed, run.experiment.order(run.config), run.setting

        return sorted(groups.values(), key=place)

    def versions(self) -> dict[str, int]:
        """Returns how many runs each version of pisces made, as far as it was recorded."""
        return dict(sorted(Counter(run.version for run in self.runs if run.version is not None).items()))


def read_runs(roots: Sequence[Path], experiments: Experiments, report: Report = no_report) -> StoredRuns:
    """Reads all finished runs below the given folders; a run that lies in several of them counts once.

    Args:
        roots: folders with run folders anywhere below them.
        experiments: the experiments by name.
        report: called with the progress.

    Returns:
        The runs. Files that cannot be used are listed with the reason and left alone.
    """
    for root in roots:
        if not root.is_dir():
            raise UserError(f"{str(root)!r} is not a folder")
    chosen: dict[tuple[str, str, int], StoredRun] = {}
    skipped = []
    for path, content in _read_all(_result_files(roots), report).items():
        runs, problems = _usable_runs(path, content, experiments)
        skipped += [f"{printable(str(path), MOST_PATH)}: {printable(problem)}" for problem in problems]
        for run in runs:
            key = (run.experiment.name, run.setting, run.config.seed)
            if key not in chosen or (run.has_checkpoint and not chosen[key].has_checkpoint):
                chosen[key] = run
    order = list(experiments)
    ordered = sorted(chosen.values(), key=lambda run: (order.index(run.experiment.name), run.setting, run.config.seed))
    return StoredRuns(tuple(ordered), tuple(skipped))


def _usable_runs(
    path: Path, content: dict[str, Any] | None, experiments: Experiments
) -> tuple[list[StoredRun], list[str]]:
    """Returns the runs of a file that can be shown, and why others cannot."""
    try:
        checked = [(run, _problem(run)) for run in _runs_of(path, content, experiments)]
    except UserError as error:
        return [], [str(error)]
    except UNUSABLE as error:
        return [], [f"not a result: {type(error).__name__}: {error}"]
    return [run for run, problem in checked if problem is None], [problem for _, problem in checked if problem]


def _runs_of(path: Path, content: dict[str, Any] | None, experiments: Experiments) -> list[StoredRun]:
    if content is None:
        raise UserError("not a readable result")
    check_schema(content, path)
    name = content.get("experiment")
    if not isinstance(name, str) or name not in experiments:
        raise unknown_name("experiment", name, experiments)
    experiment = experiments[name]
    results = experiment.split(content)
    if not results:
        raise UserError("it holds no runs")
    made = [(experiment.config_class.from_dict(result["config"]), result) for result in results]
    return [StoredRun(path.parent, experiment, config, result) for config, result in made]


def _problem(run: StoredRun) -> str | None:
    """Says why a result cannot be shown, None if it can."""
    problem = run.experiment.problem(run.result, run.config)
    if problem is not None:
        return problem
    measure = run.experiment.measure(run.result)
    if measure is None:
        return f"it has no {' or '.join(measure.name for measure in run.experiment.measures)}"
    numbers = [name for name in run.result if name == measure.name or name.endswith(("_percent", "_return"))]
    wrong = [name for name in numbers if not is_number(run.result[name])]
    if wrong:
        return f"{wrong[0]} is not a finite number"
    return None if _is_curve(run.result.get("curve", [])) else "its curve is not a list of rows of numbers"


def _result_files(roots: Iterable[Path]) -> list[Path]:
    # Not Path.rglob and Path.resolve for every file: they take longer than reading it.
    found: dict[str, Path] = {}
    for root in roots:
        real = os.path.realpath(root)
        for folder, folders, names in os.walk(real):
            if RESULT in names or RESULT in folders:
                found.setdefault(folder, root / folder[len(real) + 1 :] / RESULT)
            if RETRAINED in folders:  # it holds the run of the folder around it once more
                folders.remove(RETRAINED)
    return sorted(found.values(), key=str)


def _read_all(paths: Sequence[Path], report: Report) -> dict[Path, dict[str, Any] | None]:
    """Returns the content of each file, None where it is not a result."""
    # Thousands of results are millions of objects, none of them garbage, which the collector would visit in vain.
    collecting = gc.isenabled()
    gc.disable()
    shared: list[Any] = []
    try:
        contents = {}
        for number, path in enumerate(paths):
            report("reading results", number, len(paths))
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
        text = read_bytes(path)
        verify_result(path, text)
        try:
            content = orjson.loads(text)
        except ValueError:
            content = json.loads(text)  # reads NaN, of which `_problem` can say more
    except READ_ERRORS:
        return None
    return content if isinstance(content, dict) and isinstance(content.get("config"), dict) else None


def _is_curve(rows: Any) -> bool:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return False
    values = [value for row in rows for value in row.values()]
    return set(map(type, values)) <= {bool, int, float} and all(-LARGEST <= value <= LARGEST for value in values)


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number that statistics can be made of: finite, and at most `LARGEST`."""
    # Not math.isfinite, which raises for integers beyond the range of floats.
    return isinstance(value, int | float) and abs(value) <= LARGEST
