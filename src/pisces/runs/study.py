"""Studies: searches for good settings with Optuna (extra `tune`), resumable and shared by several processes.

A study is stored in `<out>/<experiment>/<method>/<hash of config>/`: config.json, study.db (Optuna's), the run folders
of its trials below runs/, and tuning.json, which is replaced after every trial.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from pisces.errors import UserError, import_extra
from pisces.files import check_database, write_atomically
from pisces.runs.lock import Lock, LockedError
from pisces.runs.search_space import Range, grid_cells
from pisces.runs.store import SCHEMA, RunFolder
from pisces.runs.tuning_config import TrialSummary, Tuning, TuningConfig, score_settings

STORAGE, TUNING, RUNS, LOCKS = "study.db", "tuning.json", "runs", "locks"
ATTEMPTS = 3
"""The number of times that a trial is started if its process dies."""
STARTUP_TRIALS = 10
"""The number of random trials before TPE uses their scores."""
# User attributes of Optuna's trials.
SETTINGS, ERROR = "settings", "error"
ATTEMPT, INTERRUPTED = "attempt", "interrupted"
CHECKSUM = "sha256"


class Study:
    """A search in its folder; any number of processes may work on it at once.

    Trials of a process that died are resumed, with their numbers and settings. The settings of a trial depend on the
    trials before it alone, so that a study of one worker has the same trials however often it was killed.

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
        with self._lock(), self._storage_errors():
            existed = self.folder.file(STORAGE).exists()
            self._study = self._open()
            if existed and not self._study.trials and self.folder.file(TUNING).exists():
                raise ValueError("the trials of tuning.json are gone")
            _check_trials(self._trials())

    @contextmanager
    def _storage_errors(self) -> Iterator[None]:
        from sqlalchemy.exc import SQLAlchemyError  # of a dependency of Optuna

        path = self.folder.file(STORAGE)
        # What Optuna raises for content that it did not write.
        broken = (LookupError, TypeError, ValueError, AssertionError, RuntimeError, self.optuna.exceptions.OptunaError)
        try:
            if path.exists():
                check_database(path)
            yield
        except (SQLAlchemyError, sqlite3.Error, *broken) as error:
            raise UserError(f"{str(path)!r} is damaged; delete it to search again, with the finished runs") from error

    def _open(self) -> Any:
        from sqlalchemy import URL  # a dependency of Optuna

        # The path may contain characters that have a meaning in a URL.
        url = URL.create("sqlite", database=str(self.folder.file(STORAGE).absolute())).render_as_string()
        # SQLite waits for other processes that are writing.
        storage = self.optuna.storages.RDBStorage(url, engine_kwargs={"connect_args": {"timeout": 120}})
        return self.optuna.create_study(
            storage=storage,
            study_name=self.folder.path.name,
            direction=self._direction,
            pruner=self._pruner(),
            load_if_exists=True,
        )

    @property
    def _direction(self) -> str:
        return "maximize" if self.config.experiment.score.better == "higher" else "minimize"

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
        """Marks trials whose process died as interrupted, which is not held against them.

        For the start of a command: the last one may have been killed together with its worker processes.
        """
        with self._lock():
            for trial, lock in self._orphans():
                with lock:
                    trial.set_user_attr(INTERRUPTED, True)

    def _take(self, total: int) -> tuple[Any, ExitStack] | None:
        """Resumes or starts a trial and returns it with its lock; None if enough trials were started."""
        with self._lock():
            for trial, lock in self._orphans():
                if self._resume(trial):
                    return trial, lock
                lock.close()
            if len(self._started()) >= self._limit(total):
                return None
            self._queue()
            trial, lock = self._study.ask(self._distributions()), ExitStack()
            lock.enter_context(self._trial_lock(trial.number))
            return trial, lock

    def _limit(self, total: int) -> int:
        return min(total, len(list(grid_cells(self.config.space)))) if self.config.sampler == "grid" else total

    def _trials(self, *states: Any) -> list[Any]:
        return list(self._study.get_trials(deepcopy=False, states=states or None))

    def _started(self) -> list[Any]:
        """Returns the trials that have begun."""
        return [trial for trial in self._trials() if trial.state.name != "WAITING"]

    def _orphans(self) -> Iterator[tuple[Any, ExitStack]]:
        """Yields the running trials whose process died, with their locks."""
        running = self.optuna.trial.TrialState.RUNNING
        for number in [trial.number for trial in self._trials(running)]:
            with suppress(LockedError), ExitStack() as lock:
                lock.enter_context(self._trial_lock(number))
                # Only now is it certain that no process will end the trial.
                for trial in self._trials(running):
                    if trial.number == number:
                        yield self.optuna.trial.Trial(self._study, trial._trial_id), lock.pop_all()

    def _resume(self, trial: Any) -> bool:
        """Prepares a trial for another attempt; returns whether it has one left, and ends it otherwise."""
        counted = not trial.user_attrs.get(INTERRUPTED)
        attempt = trial.user_attrs.get(ATTEMPT, 1) + counted
        if attempt > ATTEMPTS:
            self._study.tell(trial, state=self.optuna.trial.TrialState.FAIL)
            return False
        trial.set_user_attr(ATTEMPT, attempt)
        trial.set_user_attr(INTERRUPTED, False)
        return True

    def _queue(self) -> None:
        """Queues what comes next, unless it is queued: in one step, so that no trial has half of its settings."""
        if self.config.sampler == "grid":
            known = [_parameters(trial) for trial in self._trials()]
            cells = [cell for cell in grid_cells(self.config.space) if cell not in known]
        else:
            cells = [] if len(self._trials()) > len(self._started()) else [self._sample()]
        for cell in cells:
            self._study.enqueue_trial(cell)

    def _sample(self) -> dict[str, Any]:
        """Samples settings from the state of the study alone, so that they do not depend on the process."""
        started = self._started()
        copy = self.optuna.create_study(direction=self._direction, sampler=self._sampler(len(started)))
        copy.add_trials(started)
        return dict(copy.ask(self._distributions()).params)

    def _run(self, trial: Any) -> None:
        for name, distribution in self._distributions().items():
            trial._suggest(name, distribution)  # a process may have died before Optuna took over what was queued
        settings = {d.name: d.quantize(trial.params[d.name]) for d in self.config.space}
        trial.set_user_attr(SETTINGS, settings)
        (stored,) = (one for one in self._trials() if one.number == trial.number)
        reported = dict(stored.intermediate_values)  # by an earlier attempt too

        def report(step: int, score: float) -> None:
            if step not in reported:
                reported[step] = score
                trial.report(score, step)
            if trial.should_prune():
                raise self.optuna.TrialPruned

        try:
            score = score_settings(self.config, settings, self.folder.file(RUNS), report)
        except self.optuna.TrialPruned:
            self._end(trial, "PRUNED", reported)
        except KeyboardInterrupt:
            trial.set_user_attr(INTERRUPTED, True)
            raise
        except Exception as error:
            trial.set_user_attr(ERROR, f"{type(error).__name__}: {error}")
            write_atomically(self.folder.file(f"error_{trial.number}.txt"), traceback.format_exc())
            self._end(trial, "FAIL", reported)
        else:
            self._end(trial, "COMPLETE", reported, score)

    def _end(self, trial: Any, state: str, reported: dict[int, float], score: float | None = None) -> None:
        if state == "PRUNED":
            score = reported[max(reported)]  # which Optuna takes for its value
        trial.set_user_attr(CHECKSUM, _digest(state, trial.params, trial.user_attrs[SETTINGS], reported, score))
        self._study.tell(trial, None if state != "COMPLETE" else score, state=self.optuna.trial.TrialState[state])

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
                "best": None if state.best is None else state.best.as_json(),
                "trials": [trial.as_json() for trial in state.trials],
            }
            write_atomically(self.folder.file(TUNING), json.dumps(content, indent=1) + "\n")


def _parameters(trial: Any) -> dict[str, Any]:
    """Returns what a trial tries or, if it has not begun, is going to try."""
    return {**trial.system_attrs.get("fixed_params", {}), **trial.params}


def _digest(state: str, parameters: Any, settings: Any, reported: Mapping[int, float], score: float | None) -> str:
    content = [state, sorted(parameters.items()), sorted(settings.items()), sorted(reported.items()), score]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _check_trials(trials: Iterable[Any]) -> None:
    for trial in trials:
        expected = trial.user_attrs.get(CHECKSUM)
        if expected and trial.state.is_finished():
            settings, reported = trial.user_attrs[SETTINGS], trial.intermediate_values
            if _digest(trial.state.name, trial.params, settings, reported, trial.value) != expected:
                raise ValueError(f"trial {trial.number} was changed")
