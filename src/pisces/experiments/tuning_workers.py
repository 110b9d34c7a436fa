"""Worker processes of a study."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pisces.errors import UserError
from pisces.experiments.interrupts import interrupt_once
from pisces.experiments.tunable import TuningConfig
from pisces.experiments.tuning import Study, Tuning
from pisces.experiments.worker import end_with_parent

POLL_SECONDS = 0.5
STOP_SECONDS = 10.0


def tune(
    config: TuningConfig,
    out: str | Path,
    trials: int,
    workers: int = 1,
    report: Callable[[Tuning], None] = lambda state: None,
) -> Study:
    """Runs a study, or goes on with it, until it has a number of trials.

    Args:
        config: what is searched.
        out: root of the studies' folders.
        trials: how many trials the study shall have in all, whichever process ran them.
        workers: worker processes, one thread each.
        report: called twice a second.

    Returns:
        The study. Trials that another command has under way are left to it.
    """
    if trials < 1 or workers < 1:
        raise UserError(f"expected trials and workers of at least 1, got {trials} and {workers}")
    study = Study(config, out)
    study.forgive()
    pool = [_start(config, out, trials) for _ in range(workers)]
    deaths = 0
    try:
        while any(process.is_alive() for process in pool):
            time.sleep(POLL_SECONDS)
            report(study.state())
            for place, process in enumerate(pool):
                # A trial that kills its process is given up after a few attempts; a worker that can't start is told of.
                if process.exitcode not in (None, 0) and deaths < 3 * trials:
                    deaths += 1
                    pool[place] = _start(config, out, trials)
    finally:
        _stop(pool)
    study.write_result()
    report(study.state())
    return study


def _start(config: TuningConfig, out: str | Path, trials: int) -> Any:
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_work, args=(config, str(out), trials, os.getpid()), daemon=True)
    process.start()
    return process


def _work(config: TuningConfig, out: str, trials: int, parent: int) -> None:
    threading.Thread(target=end_with_parent, args=(parent,), daemon=True).start()
    signal.signal(signal.SIGINT, interrupt_once)
    try:
        Study(config, out).work(trials)
    except KeyboardInterrupt:
        return


def _stop(pool: list[Any]) -> None:
    """Lets workers save what they have, then ends them."""
    for process in pool:
        if process.is_alive():
            os.kill(process.pid, signal.SIGINT)
    deadline = time.monotonic() + STOP_SECONDS
    for process in pool:
        process.join(max(0.0, deadline - time.monotonic()))
        if process.is_alive():
            process.kill()
