"""Tuning: worker processes that share a study."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pisces.errors import UserError
from pisces.runs.pool import KILLED, Died, Pool, Raised
from pisces.runs.study import ATTEMPTS, Study
from pisces.runs.tuning_config import TrialSummary, Tunable, Tuning, TuningConfig

__all__ = ["Study", "TrialSummary", "Tunable", "Tuning", "TuningConfig", "tune"]

POLL_SECONDS = 0.5
"""Time between two reports."""


def tune(
    config: TuningConfig,
    out: str | Path,
    trials: int,
    workers: int = 1,
    report: Callable[[Tuning], None] = lambda state: None,
) -> Study:
    """Runs a study, or resumes it, until it has a number of trials.

    Args:
        config: the config of the study.
        out: root of the folders of studies.
        trials: the number of trials of the study in all, whichever process ran them.
        workers: the number of worker processes.
        report: called twice a second.

    Returns:
        The study. Trials that another command is running are left to it.
    """
    if trials < 1 or workers < 1:
        raise UserError(f"expected trials and workers of at least 1, got {trials} and {workers}")
    study = Study(config, out)
    study.mark_orphaned_trials()
    task = _RunTrials(config, Path(out), trials)
    deaths = 0
    with Pool(workers) as pool:
        for place in range(workers):
            pool.submit(place, task)
        while pool.busy:
            for place, event in pool.events(POLL_SECONDS):
                if isinstance(event, Died | Raised):
                    deaths += 1
                    # Trials that kill their process are abandoned after a few attempts; what is left is no trial.
                    if deaths > ATTEMPTS * trials:
                        raise UserError(KILLED if isinstance(event, Died) else _last_line(event.traceback))
                    pool.submit(place, task)
            report(study.state())
    study.write_result()
    report(study.state())
    return study


def _last_line(traceback: str) -> str:
    return f"a worker failed: {traceback.strip().splitlines()[-1]}"


@dataclass(frozen=True)
class _RunTrials:
    """The task of a worker: runs trials until the study has enough."""

    config: TuningConfig
    out: Path
    trials: int

    def __call__(self, report: Callable[[Any], None]) -> None:
        Study(self.config, self.out).work(self.trials)
