"""Studies: searches for good settings with Optuna (extra `tune`), resumable and shared by several processes.

A study is stored in `<out>/<experiment>/<method>/<hash of config>/`: config.json, study.db (Optuna's), the run folders
of its trials below runs/, and tuning.json, which is replaced after every trial.
"""

from __future__ import annotations

import json
import math
import traceback
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pisces.errors import import_extra
from pisces.runs.lock import Lock, LockedError
from pisces.runs.search_space import Range, grid_cells
from pisces.runs.store import SCHEMA, RunFolder, write_atomically
from pisces.runs.tuning_config import TuningConfig, score_settings

STORAGE, TUNING, RUNS, LOCKS = "study.db", "tuning.json", "runs", "locks"
ATTEMPTS = 3
"""The number of times that a trial is started if its process dies."""
STARTUP_TRIALS = 10
"""The number of random trials before TPE uses their scores."""
# User attributes of Optuna's trials.
SETTINGS, ERROR = "settings", "error"
ATTEMPT, INTERRUPTED = "attempt", "interrupted"
QUEUED, RESUMES = "queued", "resumes"


@dataclass(frozen=True)
class TrialSummary:
    """The state of one trial."""

    number: int
    """The number of the trial in the study."""
    state: str
    """The state: "complete", "pruned", "failed" or "running"."""
    score: float | None
    """The score; of a pruned or running trial the last one reported."""
    settings: dict[str, Any]
    """The settings that the trial tries."""
    error: str = ""
    """The reason if the trial failed."""


@dataclass(frozen=True)
class Tuning:
    """The state of a study."""

    trials: tuple[TrialSummary, ...]
    """The trials so far."""
    best: TrialSummary | None
    """The complete trial with the best score."""

    def count(self, state: str) -> int:
        """Returns the number of trials in a state."""
        return sum(trial.state == state for trial in self.trials)


class Study:
    """A search in its folder; any number of processes may work on it at once.

    Args:
        config: the config of the study.
        out: root of the folders of studies.
    """

    def __init__(self, config: TuningConfig, out: str | Path) -> None:
        self.config = config
        self.optuna = import_extra("optuna", "tune")
        self.optuna.logging.set_verbosity(self.optuna.logging.WARNING)
        if config.sampler == "grid":
            list(grid_cells(config.space))  # raises an error if the space has no grid
        self.folder = RunFolder.of(out, config).create(config)
        self.folder.file(LOCKS).mkdir(exist_ok=True)
        with self._lock():
            self._study = self._open()

    def _open(self) -> Any:
        from sqlalchemy import URL  # a dependency of Optuna

        # The path may contain characters that have a meaning in a URL.
        url = URL.create("sqlite", database=str(self.folder.file(STORAGE).absolute())).render_as_string()
        # SQLite waits for other processes that are writing.
        storage = self.optuna.storages.RDBStorage(url, engine_kwargs={"connect_args": {"timeout": 120}})
        return self.optuna.create_study(
            storage=storage,
            study_name=self.folder.path.name,
            direction="maximize" if self.config.experiment.score.better == "higher" else "minimize",
            pruner=self._pruner(),
            load_if_exists=True,
        )

    def _lock(self) -> AbstractContextManager[None]:
        """Returns a context in which no other process changes the study."""
        return Lock(self.folder.file(LOCKS) / "study", f"the study {str(self.folder.path)!r}").hold(wait=True)

    def _trial_lock(self, number: int) -> AbstractContextManager[None]:
        """Returns a context that shows other processes that this one runs a trial."""
        return Lock(self.folder.file(LOCKS) / str(number), f"trial {number} of {str(self.folder.path)!r}").hold()

    def work(self, trials: int) -> None:
        """Runs trials, one after the other, until all processes together have started that many."""
        while (taken := self._take(trials)) is not None:
            trial, lock = taken
            with lock:
                self._run(trial)
            self.write_result()

    def mark_orphaned_trials(self) -> None:
        """Marks trials whose process died as interrupted, not failed; they are queued again.

        For the start of a command: the last one may have been killed together with its worker processes.
        """
        with self._lock():
            self._requeue_orphans(interrupted=True)

    def _take(self, total: int) -> tuple[Any, ExitStack] | None:
        """Starts a new or queued trial and returns it with its lock; None if enough trials were started."""
        with self._lock():
            self._requeue_orphans(interrupted=False)
            if self.config.sampler == "grid":
                self._queue_cells()
            if len(self._started()) >= self._limit(total):
                return None
            # Sampled from the state of the study alone, so that the settings do not depend on the process.
            self._study.sampler = self._sampler(len(self._trials()))
            trial = self._study.ask(self._distributions())
            lock = ExitStack()
            lock.enter_context(self._trial_lock(trial.number))
            return trial, lock

    def _limit(self, total: int) -> int:
        return min(total, len(list(grid_cells(self.config.space)))) if self.config.sampler == "grid" else total

    def _trials(self, *states: Any) -> list[Any]:
        return list(self._study.get_trials(deepcopy=False, states=states or None))

    def _started(self) -> list[Any]:
        """Returns the trials that have begun, without those that were queued again after their process died."""
        trials = self._trials()
        resumed = _resumed(trials)
        return [trial for trial in trials if trial.state.name != "WAITING" and trial.number not in resumed]

    def _requeue_orphans(self, interrupted: bool) -> None:
        """Queues the running trials whose process died again; their runs resume from the checkpoints."""
        running = self.optuna.trial.TrialState.RUNNING
        for number in [trial.number for trial in self._trials(running)]:
            with suppress(LockedError), self._trial_lock(number):
                # Only now is it certain that no process will end the trial.
                for trial in self._trials(running):
                    if trial.number == number:
                        self._requeue(trial, interrupted)

    def _requeue(self, trial: Any, interrupted: bool) -> None:
        counted = not (interrupted or trial.user_attrs.get(INTERRUPTED))
        attempt = trial.user_attrs.get(ATTEMPT, 1) + counted
        # Queued before it ends, so that it is not lost if this process dies in between.
        if attempt <= ATTEMPTS and trial.number not in _resumed(self._trials()):
            self._enqueue(_parameters(trial), {ATTEMPT: attempt, RESUMES: trial.number})
        self._study.tell(trial.number, state=self.optuna.trial.TrialState.FAIL)

    def _queue_cells(self) -> None:
        """Queues the cells of a grid that were neither queued nor tried."""
        known = [_parameters(trial) for trial in self._trials()]
        for cell in grid_cells(self.config.space):
            if cell not in known:
                self._enqueue(cell, {})

    def _enqueue(self, parameters: dict[str, Any], attributes: dict[str, Any]) -> None:
        self._study.enqueue_trial(parameters, user_attrs={QUEUED: parameters, **attributes})

    def _run(self, trial: Any) -> None:
        settings = {d.name: d.quantize(trial.params[d.name]) for d in self.config.space}
        trial.set_user_attr(SETTINGS, settings)

        def report(step: int, score: float) -> None:
            trial.report(score, step)
            if trial.should_prune():
                raise self.optuna.TrialPruned

        try:
            score = score_settings(self.config, settings, self.folder.file(RUNS), report)
        except self.optuna.TrialPruned:
            self._study.tell(trial, state=self.optuna.trial.TrialState.PRUNED)
        except KeyboardInterrupt:
            trial.set_user_attr(INTERRUPTED, True)
            raise
        except Exception as error:
            trial.set_user_attr(ERROR, f"{type(error).__name__}: {error}")
            self.folder.file(f"error_{trial.number}.txt").write_text(traceback.format_exc())
            self._study.tell(trial, state=self.optuna.trial.TrialState.FAIL)
        else:
            self._study.tell(trial, score)

    def _distributions(self) -> dict[str, Any]:
        made = {}
        for dimension in self.config.space:
            kinds = self.optuna.distributions
            if not isinstance(dimension, Range):
                made[dimension.name] = kinds.CategoricalDistribution(dimension.values)
            elif dimension.whole:
                made[dimension.name] = kinds.IntDistribution(int(dimension.low), int(dimension.high), dimension.log)
            else:
                made[dimension.name] = kinds.FloatDistribution(dimension.low, dimension.high, dimension.log)
        return made

    def _sampler(self, position: int) -> Any:
        seed = int(np.random.default_rng([*self.config.seeds, position]).integers(2**31))
        if self.config.sampler == "tpe":
            return self.optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP_TRIALS, constant_liar=True)
        return self.optuna.samplers.RandomSampler(seed=seed)

    def _pruner(self) -> Any:
        pruners = self.optuna.pruners
        if self.config.pruner == "median":
            return pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=1)
        return pruners.SuccessiveHalvingPruner() if self.config.pruner == "halving" else pruners.NopPruner()

    def state(self) -> Tuning:
        """Returns the state of the study."""
        found = tuple(self._summary(trial) for trial in self._started())
        sign = -1 if self.config.experiment.score.better == "higher" else 1
        complete = [t for t in found if t.state == "complete" and t.score is not None]
        return Tuning(found, min(complete, key=lambda t: (sign * (t.score or 0.0), t.number), default=None))

    def _summary(self, trial: Any) -> TrialSummary:
        state = {"COMPLETE": "complete", "PRUNED": "pruned", "RUNNING": "running"}.get(trial.state.name, "failed")
        reported = trial.intermediate_values
        score = trial.value if trial.value is not None else (reported[max(reported)] if reported else None)
        error = trial.user_attrs.get(ERROR, f"its process died {ATTEMPTS} times" if state == "failed" else "")
        return TrialSummary(trial.number, state, score, trial.user_attrs.get(SETTINGS, {}), error)

    def write_result(self) -> None:
        """Writes tuning.json: the config, the best trial, and all trials."""
        with self._lock():
            state = self.state()
            content = {
                "experiment": self.config.experiment.name,
                "schema": SCHEMA,
                "config": self.config.as_dict(),
                "score": self.config.experiment.score.label,
                "best": None if state.best is None else _as_json(state.best),
                "trials": [_as_json(trial) for trial in state.trials],
            }
            write_atomically(self.folder.file(TUNING), json.dumps(content, indent=1) + "\n")


def _as_json(trial: TrialSummary) -> dict[str, Any]:
    score = trial.score if trial.score is not None and math.isfinite(trial.score) else None
    return {**vars(trial), "score": score}


def _parameters(trial: Any) -> dict[str, Any]:
    """Returns what a trial tries or, if it has not begun, is going to try."""
    return {**trial.user_attrs.get(QUEUED, {}), **trial.params}


def _resumed(trials: Iterable[Any]) -> set[int]:
    """Returns the numbers of the trials that were queued again as other trials."""
    return {trial.user_attrs[RESUMES] for trial in trials if RESUMES in trial.user_attrs}
