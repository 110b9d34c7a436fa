"""Searches for good settings with Optuna (extra `tune`): resumable, by several processes, on validation scores alone.

A study lives in `<out>/<experiment>/<method>/<hash of config>/`: config.json, study.db (Optuna's), the trials' run
folders below runs/, and tuning.json, which is written anew after every trial.
"""

from __future__ import annotations

import fcntl
import json
import math
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from pisces.errors import UserError
from pisces.experiments.search_space import Range, grid_cells
from pisces.experiments.store import RunFolder, write_atomically
from pisces.experiments.tunable import TuningConfig, tunable

STORAGE, RESULT, RUNS, LOCKS = "study.db", "tuning.json", "runs", "locks"
ATTEMPTS = 3
"""A trial whose process dies is started so often."""
STARTUP_TRIALS = 10
"""Random trials before TPE has enough to learn from."""
SETTINGS, ERROR, ATTEMPT, STOPPED = "settings", "error", "attempt", "stopped"


@dataclass(frozen=True)
class TrialSummary:
    """What became of one trial."""

    number: int
    """Its number in the study."""
    state: str
    """"complete", "pruned", "failed" or "running"."""
    score: float | None
    """The score; of a pruned or running trial, the last one reported."""
    settings: dict[str, Any]
    """The settings that were tried."""
    error: str = ""
    """Why it failed."""


@dataclass(frozen=True)
class Tuning:
    """The state of a study."""

    trials: tuple[TrialSummary, ...]
    """The trials so far."""
    best: TrialSummary | None
    """The best complete one."""

    def count(self, state: str) -> int:
        """How many trials are in a state."""
        return sum(trial.state == state for trial in self.trials)


class Study:
    """A search in its folder; any number of processes may work on it at once.

    Args:
        config: what is searched.
        out: root of the studies' folders.
    """

    def __init__(self, config: TuningConfig, out: str | Path) -> None:
        self.config = config
        self.optuna = _import_optuna()
        if config.sampler == "grid":
            list(grid_cells(config.space))
        self.folder = RunFolder.open(out, config.experiment, config.method, config)
        self.folder.file(LOCKS).mkdir(exist_ok=True)
        with self._alone():
            self._study = self._open()

    def _open(self) -> Any:
        from sqlalchemy import URL  # Optuna brings it

        # A path may hold what has a meaning in an address.
        url = URL.create("sqlite", database=str(self.folder.file(STORAGE).absolute())).render_as_string()
        # Other processes may write for a moment; SQLite waits for them.
        storage = self.optuna.storages.RDBStorage(url, engine_kwargs={"connect_args": {"timeout": 120}})
        return self.optuna.create_study(
            storage=storage,
            study_name=self.folder.path.name,
            direction=tunable(self.config.experiment).direction,
            pruner=self._pruner(),
            load_if_exists=True,
        )

    def _queue_cells(self) -> None:
        """Queues the cells of a grid that are neither queued nor tried: at first all, later those that a stop lost."""
        trials = self._study.get_trials(deepcopy=False)
        known = [_wanted(trial) for trial in trials if not _cut_off(trial)]
        for cell in grid_cells(self.config.space):
            if cell not in known:
                self._study.enqueue_trial(cell)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self.folder.file(LOCKS).joinpath("study").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def forgive(self) -> None:
        """Takes trials whose processes are gone for stopped, not for failed: their command may have ended with them."""
        with self._alone():
            for trial in self._running():
                if not self._alive(trial.number):
                    self.optuna.trial.Trial(self._study, trial._trial_id).set_user_attr(STOPPED, True)

    def work(self, trials: int) -> None:
        """Runs trials, one after the other, until so many have been started by all processes together."""
        while (taken := self._take(trials)) is not None:
            trial, lock = taken
            with lock:
                self._run(trial)
            self.write_result()

    def _take(self, total: int) -> tuple[Any, IO[str]] | None:
        """Starts a trial, or one that was cut off once more, and holds its lock; None if there are enough."""
        with self._alone():
            self._release_dead()
            if self.config.sampler == "grid":
                self._queue_cells()
            started = self._study.get_trials(deepcopy=False)
            if sum(not _waiting(trial) and not _cut_off(trial) for trial in started) >= self._limit(total):
                return None
            # Drawn from the study's state alone, so that it does not matter which process draws.
            self._study.sampler = self._sampler(len(started))
            trial = self._study.ask(self._distributions())
            lock = self.folder.file(LOCKS).joinpath(str(trial.number)).open("a")
            fcntl.flock(lock, fcntl.LOCK_EX)
            return trial, lock

    def _limit(self, total: int) -> int:
        return min(total, len(list(grid_cells(self.config.space)))) if self.config.sampler == "grid" else total

    def _release_dead(self) -> None:
        """Queues the trials whose processes are gone; their runs go on from the checkpoints."""
        free = {trial.number for trial in self._running() if not self._alive(trial.number)}
        # One that has ended in the meantime is no longer running; a free lock stays free.
        for trial in self._running():
            if trial.number in free:
                attempt = trial.user_attrs.get(ATTEMPT, 1) + (not trial.user_attrs.get(STOPPED))
                self._study.tell(trial.number, state=self.optuna.trial.TrialState.FAIL)
                if attempt <= ATTEMPTS:
                    self._study.enqueue_trial(_wanted(trial), user_attrs={ATTEMPT: attempt})

    def _running(self) -> list[Any]:
        return list(self._study.get_trials(deepcopy=False, states=(self.optuna.trial.TrialState.RUNNING,)))

    def _alive(self, number: int) -> bool:
        with self.folder.file(LOCKS).joinpath(str(number)).open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def _run(self, trial: Any) -> None:
        settings = {d.name: d.settle(trial.params[d.name]) for d in self.config.space}
        trial.set_user_attr(SETTINGS, settings)

        def report(step: int, score: float) -> None:
            trial.report(score, step)
            if trial.should_prune():
                raise self.optuna.TrialPruned

        try:
            score = tunable(self.config.experiment).score(self.config, settings, self.folder.file(RUNS), report)
        except self.optuna.TrialPruned:
            self._study.tell(trial, state=self.optuna.trial.TrialState.PRUNED)
        except KeyboardInterrupt:
            trial.set_user_attr(STOPPED, True)
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
        """What has become of the trials so far."""
        trials = [t for t in self._study.get_trials(deepcopy=False) if not _waiting(t) and not _cut_off(t)]
        found = tuple(self._summary(trial) for trial in trials)
        sign = -1 if tunable(self.config.experiment).direction == "maximize" else 1
        complete = [t for t in found if t.state == "complete" and t.score is not None]
        return Tuning(found, min(complete, key=lambda t: (sign * (t.score or 0.0), t.number), default=None))

    def _summary(self, trial: Any) -> TrialSummary:
        state = {"COMPLETE": "complete", "PRUNED": "pruned", "RUNNING": "running"}.get(trial.state.name, "failed")
        reported = trial.intermediate_values
        score = trial.value if trial.value is not None else (reported[max(reported)] if reported else None)
        error = trial.user_attrs.get(ERROR, f"its process died {ATTEMPTS} times" if state == "failed" else "")
        return TrialSummary(trial.number, state, score, trial.user_attrs.get(SETTINGS, {}), error)

    def write_result(self) -> None:
        """Writes tuning.json: the study, the best settings, and every trial."""
        with self._alone():
            state = self.state()
            content = {
                "config": self.config.as_dict(),
                "score": tunable(self.config.experiment).score_name,
                "best": None if state.best is None else _as_json(state.best),
                "trials": [_as_json(trial) for trial in state.trials],
            }
            write_atomically(self.folder.file(RESULT), json.dumps(content, indent=1) + "\n")


def _as_json(trial: TrialSummary) -> dict[str, Any]:
    score = trial.score if trial.score is not None and math.isfinite(trial.score) else None
    return {**vars(trial), "score": score}


def _wanted(trial: Any) -> dict[str, Any]:
    """What a trial tries or, if it has not begun, shall try."""
    return {**trial.system_attrs.get("fixed_params", {}), **trial.params}


def _waiting(trial: Any) -> bool:
    return bool(trial.state.name == "WAITING")


def _cut_off(trial: Any) -> bool:
    """Whether a trial's process ended before it did, and another trial takes it up."""
    lasting = ERROR in trial.user_attrs or (trial.user_attrs.get(ATTEMPT, 1) >= ATTEMPTS)
    return bool(trial.state.name == "FAIL") and (not lasting or bool(trial.user_attrs.get(STOPPED)))


def _import_optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise UserError("pisces tune needs an extra: pip install 'pisces-rl[tune]'") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
