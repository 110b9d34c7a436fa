"""Several runs at once, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pisces.errors import UserError
from pisces.experiments.jumping import JumpingConfig

if TYPE_CHECKING:
    from pisces.experiments.jumping_run import Progress

POLL_SECONDS = 1.0
STOP_SECONDS = 5.0


@dataclass(frozen=True)
class Message:
    """What a worker tells its parent."""

    index: int
    """Which of the configs it runs."""
    progress: Progress | None = None
    """How far the run has come."""
    error: str | None = None
    """The traceback of a run that failed."""


def run_all(
    configs: Sequence[JumpingConfig],
    out: str | Path,
    report: Callable[[int, Progress], None] = lambda index, progress: None,
) -> None:
    """Runs all configs at once and returns when all have finished.

    Args:
        configs: what to run.
        out: root of the run folders.
        report: called with a config's position and its progress, about once a second and after each evaluation.
    """
    context = multiprocessing.get_context("spawn")
    messages: Any = context.Queue()
    workers = [
        context.Process(target=_work, args=(index, config, str(out), messages), daemon=True)
        for index, config in enumerate(configs)
    ]
    for worker in workers:
        worker.start()
    try:
        _follow(workers, messages, report)
    except BaseException:
        _stop(workers)
        raise


def _follow(workers: Sequence[Any], messages: Any, report: Callable[[int, Progress], None]) -> None:
    failures: list[str] = []
    while True:
        alive = any(worker.is_alive() for worker in workers)
        try:
            message = messages.get(timeout=POLL_SECONDS / 5)
        except queue.Empty:
            if not alive:
                break
            continue
        if message.error is not None:
            failures.append(message.error)
        elif message.progress is not None:
            report(message.index, message.progress)
    lost = [worker.exitcode for worker in workers if worker.exitcode != 0]
    if failures:
        raise RuntimeError(f"a run failed:\n{failures[0]}")
    if lost:
        raise UserError(
            f"expected all runs to finish, got a worker that ended with code {lost[0]}; run the command again"
        )


def _stop(workers: Sequence[Any]) -> None:
    """Lets workers save what they have, then ends them."""
    for worker in workers:
        if worker.is_alive():
            os.kill(worker.pid, signal.SIGINT)
    deadline = time.monotonic() + STOP_SECONDS
    for worker in workers:
        worker.join(max(0.0, deadline - time.monotonic()))
        if worker.is_alive():
            worker.kill()


def _work(index: int, config: JumpingConfig, out: str, messages: Any) -> None:
    from pisces.experiments.jumping_run import run  # torch loads in the workers only

    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    last = 0.0

    def report(progress: Progress) -> None:
        nonlocal last
        if progress.evaluation is not None or time.monotonic() - last > POLL_SECONDS:
            last = time.monotonic()
            messages.put(Message(index, progress))

    try:
        run(config, out, listeners=[report])
    except KeyboardInterrupt:
        messages.cancel_join_thread()
        raise SystemExit(130) from None
    except Exception:
        messages.put(Message(index, error=traceback.format_exc()))


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    os._exit(1)
