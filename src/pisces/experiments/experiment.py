"""The interface of an experiment: everything that the commands, the reports and the page ask."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from pisces.errors import UserError
from pisces.experiments.config import Config
from pisces.experiments.published import Published
from pisces.runs.measure import Measure
from pisces.runs.progress import Listener
from pisces.runs.search_space import Space
from pisces.runs.store import RunFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pisces.agents.policy import Policy
    from pisces.reports.results import StoredRun
    from pisces.reports.tables import Table

C = TypeVar("C", bound=Config)


@dataclass(frozen=True)
class Evaluation:
    """How a trained agent did."""

    header: tuple[str, ...]
    """Columns of the table."""
    rows: tuple[tuple[str, ...], ...]
    """The table."""
    values: Mapping[str, Any]
    """All numbers, as JSON values."""


@dataclass(frozen=True)
class Story:
    """How the report page introduces an experiment."""

    baseline: str
    """The method that the headline compares with."""
    method: str
    """The method of the headline."""
    claim: str
    """The headline; ``{method}``, ``{value}``, ``{baseline}`` and ``{other}`` are replaced."""
    rule: str
    """What an agent has to do, in one sentence."""


@dataclass(frozen=True)
class PageSection:
    """What an experiment adds to the report page."""

    data: Mapping[str, Any] = field(default_factory=dict)
    """JSON values that its scripts find under the experiment's name."""
    html: str = ""
    """Sections of the page; ``data-tab`` of a section says on which tab it stands, "compare" without it."""
    scripts: tuple[str, ...] = ()
    """Source of ES modules, bundled in this order after the page's own; see `pisces.reports.page.bundle`."""
    tables: Mapping[str, str] = field(default_factory=dict)
    """Further tables for the report's folder: file name -> content."""
    figures: Mapping[str, tuple[str, Figure]] = field(default_factory=dict)
    """Further figures: file stem -> caption and figure."""
    notes: tuple[str, ...] = ()
    """What was left out, and why."""


def spread(values: Sequence[float], form: str) -> tuple[str, str, str, str]:
    """Returns the number of values, their mean, smallest and largest as text, for rows of an evaluation."""
    mean, low, high = (f"{number:{form}}" for number in (sum(values) / len(values), min(values), max(values)))
    return str(len(values)), mean, low, high


class Experiment(ABC, Generic[C]):
    """One experiment. Subclasses have no state, so that worker processes can be handed one.

    Methods import what is slow to import (torch, MuJoCo, matplotlib) themselves.
    """

    name: ClassVar[str]
    """Name on the command line, in run folders and in stored files."""
    summary: ClassVar[str]
    """One line for ``pisces train --help``."""
    config_class: type[C]
    """Class of its configs, from which the command line is made."""
    cpu_only: ClassVar[bool] = False
    """Whether its runs cannot use another device than the CPU."""
    measures: ClassVar[tuple[Measure, ...]]
    """Headline measures of a result; a result has the first one, or those that apply to it."""
    reported: ClassVar[tuple[str, ...]] = ()
    """Other numbers of a result that its tables show."""
    score: ClassVar[Measure]
    """What tuning optimizes, on validation data."""
    axes: ClassVar[tuple[str, ...]] = ()
    """Options of the config that sweeps take several values of."""
    defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Defaults of the command line: command ("train", "sweep", "tune") -> option -> value."""
    tuning_changes: ClassVar[Mapping[str, Any]] = {}
    """Settings that all trials of a search override by default."""
    story: ClassVar[Story | None] = None
    """Headline and rule on the report page; without it, the page compares the two methods with the most runs."""
    method_names: ClassVar[Mapping[str, str]] = {}
    """What pages call the methods, where it differs from the name on the command line."""
    log_scale: ClassVar[bool] = False
    """Whether charts of the headline measure have a logarithmic axis."""
    evaluation_options: ClassVar[tuple[str, ...]] = ()
    """Options of ``pisces evaluate`` that apply: "tasks", "episodes", "draws"."""

    def make_config(
        self, method: str, *, preset: str, seed: int = 0, changes: Mapping[str, Any] | None = None, **options: Any
    ) -> C:
        """Resolves a method, a preset and overrides into a config; see `Config.make`."""
        return self.config_class.make(method, preset, seed=seed, changes=changes, **options)

    def sweep_configs(
        self,
        methods: Sequence[str],
        seeds: Sequence[int],
        preset: str,
        axes: Mapping[str, Sequence[Any]],
        changes: Mapping[str, Any],
        **options: Any,
    ) -> list[C]:
        """Returns all combinations, seed by seed, so that a sweep stopped early has some seeds of everything."""
        configs = []
        for seed, method, *values in itertools.product(seeds, methods, *axes.values()):
            chosen = dict(zip(axes, values, strict=True))
            made = self.make_config(method, preset=preset, seed=seed, changes=changes, **chosen, **options)
            configs.append(made)
        return list(dict.fromkeys(configs))

    def requirements(self, config: C) -> Sequence[C]:
        """Returns the runs that come before a run."""
        return ()

    @abstractmethod
    def run(self, config: C, folder: RunFolder, listeners: Sequence[Listener], device: str) -> None:
        """Trains, or resumes training, in a locked run folder and writes its result."""

    @abstractmethod
    def describe(self, row: Mapping[str, Any]) -> str:
        """Returns an evaluation or a result in a few words, for live displays."""

    def load(self, folder: RunFolder, config: C) -> Policy:
        """Loads the trained agent of a run."""
        raise UserError(f"runs of {self.name} keep no checkpoint, so there is no agent to load")

    def evaluate(self, folder: RunFolder, config: C, **options: Any) -> Evaluation:
        """Evaluates the trained agent of a run; options that were not given are None."""
        raise UserError(f"runs of {self.name} keep no checkpoint, so there is nothing to evaluate")

    @abstractmethod
    def search_space(self, method: str) -> Space:
        """Returns what `pisces tune` searches for a method by default."""

    @abstractmethod
    def evaluations(self, config: C) -> int:
        """Returns the number of evaluations per run."""

    def validation_score(self, config: C, folder: RunFolder, row: Mapping[str, Any]) -> float:
        """Returns the score of an evaluation or a result, from validation data alone."""
        value = row[self.score.name]
        return self.score.worst if value is None else float(value)

    def measure(self, result: Mapping[str, Any]) -> Measure | None:
        """Returns the headline measure of a result, None if it has none."""
        return next((measure for measure in self.measures if measure.name in result), None)

    def split(self, result: dict[str, Any]) -> list[dict[str, Any]]:
        """Returns the results of the single seeds in a stored result."""
        return [result]

    def problem(self, result: Mapping[str, Any], config: C) -> str | None:
        """Says why a stored result cannot be shown, None if it can."""
        missing = [name for name in self.reported if name not in result]
        return f"it has no {missing[0]}" if missing else None

    def cell(self, config: C) -> tuple[Any, ...] | None:
        """Returns the table cell that a run counts for, None if the run overrides its method's settings."""
        return None if config.changes or config.preset != config.presets[0] else (config.method, config.where)

    def published(self, config: C) -> Published | None:
        """Returns the paper's number for a run, None if there is none."""
        return None

    def order(self, config: C) -> tuple[Any, ...]:
        """Returns the key that tables and pages sort settings by."""
        methods = list(config.methods)
        return (methods.index(config.method), config.where)

    def tables(self, runs: Sequence[StoredRun]) -> list[Table]:
        """Returns the tables of some runs."""
        return []

    def figures(self, runs: Sequence[StoredRun]) -> dict[str, tuple[str, Figure]]:
        """Returns the figures of some runs: file stem -> caption and figure."""
        return {}

    def page_run(self, run: StoredRun) -> dict[str, Any]:
        """Returns what the page knows of a run beyond its headline measure and curve, as JSON values.

        The entry "numbers", titles and values, is shown in the table of runs.
        """
        return {}

    def page_section(self, runs: Sequence[StoredRun], projection: str) -> PageSection:
        """Returns the experiment's part of the report page.

        Args:
            runs: the experiment's runs.
            projection: "umap", "pca" or "none" for embeddings.
        """
        return PageSection()
