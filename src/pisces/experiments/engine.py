"""Many runs on the cores of one machine: a pool of worker processes that survives crashes and stops cleanly."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from pisces.errors import UserError
from pisces.experiments.progress import Progress
from pisces.experiments.registry import Experiment
from pisces.experiments.store import RunConfig
from pisces.experiments.worker import Failed, Finished, Taken, work

ATTEMPTS = 2
"""A run that fails or crashes is tried this often."""
POLL_SECONDS = 0.5
STOP_SECONDS = 10.0
ERROR_FILE = "error.txt"


@dataclass(frozen=True)
class Job:
    """One config to run."""

    experiment: Experiment
    """The experiment."""
    config: RunConfig
    """What to run."""


@dataclass
class SweepState:
    """What has become of the jobs so far; positions are those in the list of jobs."""

    total: int
    """Number of jobs."""
    done: list[int] = field(default_factory=list)
    """Finished, here or elsewhere."""
    ran: list[int] = field(default_factory=list)
    """Finished by this sweep."""
    running: dict[int, Progress | None] = field(default_factory=dict)
    """Under way here, with their newest progress."""
    failed: dict[int, Path] = field(default_factory=dict)
    """Given up, with the file that says why."""


@dataclass
class _Worker:
    process: Any
    connection: Connection
    job: int | None = None


class _Pool:
    """The worker processes, and which job each of them has."""

    def __init__(self, jobs: Sequence[Job], out: Path, workers: int) -> None:
        self.jobs, self.out = jobs, out
        self._context = multiprocessing.get_context("spawn")
        self.workers = [self._start() for _ in range(workers)]

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=work, args=(theirs, str(self.out), os.getpid()), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def replace(self, worker: _Worker) -> None:
        """Puts a new process in the place of one that died."""
        worker.process.join()
        worker.connection.close()
        fresh = self._start()
        worker.process, worker.connection, worker.job = fresh.process, fresh.connection, None

    def assign(self, worker: _Worker, job: int) -> None:
        """Hands a job to an idle worker."""
        worker.job = job
        chosen = self.jobs[job]
        with suppress(ConnectionError):  # a worker that has just died is found out about when it is listened to
            worker.connection.send((chosen.experiment.name, chosen.config.as_dict()))

    def stop(self) -> None:
        """Lets workers save what they have, then ends them."""
        for worker in self.workers:
            if worker.process.is_alive():
                os.kill(worker.process.pid, signal.SIGINT)
        deadline = time.monotonic() + STOP_SECONDS
        for worker in self.workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.is_alive():
                worker.process.kill()


def sweep(
    jobs: Sequence[Job],
    out: str | Path,
    workers: int = 2,
    report: Callable[[SweepState], None] = lambda state: None,
) -> SweepState:
    """Runs all jobs that are not finished, several at a time.

    A run that another process is busy with is left to it; it is taken over should that process die. A run that fails
    or whose worker dies is tried once more, and then listed with a file that says why, while the others go on.

    Args:
        jobs: what to run.
        out: root of the run folders.
        workers: number of worker processes.
        report: called whenever something has changed, and at least twice a second.

    Returns:
        What became of the jobs.
    """
    if workers < 1:
        raise UserError(f"expected at least one worker, got {workers}")
    state = SweepState(len(jobs))
    pending: deque[int] = deque()
    for index, job in enumerate(jobs):
        folder = job.experiment.folder(job.config, out)
        state.done.append(index) if folder.finished else pending.append(index)
    if not pending:
        return state
    pool = _Pool(jobs, Path(out), min(workers, len(pending)))
    try:
        _Sweep(jobs, Path(out), pool, state, pending, report).run()
    finally:
        pool.stop()
    return state


class _Sweep:
    """The loop that hands out jobs and hears from the workers."""

    def __init__(
        self,
        jobs: Sequence[Job],
        out: Path,
        pool: _Pool,
        state: SweepState,
        pending: deque[int],
        report: Callable[[SweepState], None],
    ) -> None:
        self.jobs, self.out, self.pool, self.state, self.pending, self.report = jobs, out, pool, state, pending, report
        self.attempts = dict.fromkeys(range(len(jobs)), 0)
        self.elsewhere: deque[int] = deque()

    def run(self) -> None:
        while self.pending or self.elsewhere or any(worker.job is not None for worker in self.pool.workers):
            self._hand_out()
            connections = {worker.connection: worker for worker in self.pool.workers}
            for ready in wait(list(connections), timeout=POLL_SECONDS):
                self._hear(connections[ready])  # type: ignore[index]
            self.report(self.state)

    def _hand_out(self) -> None:
        if not self.pending:
            self._look_elsewhere()
        for worker in self.pool.workers:
            if worker.job is None and self.pending:
                job = self.pending.popleft()
                self.state.running[job] = None
                self.attempts[job] += 1
                self.pool.assign(worker, job)

    def _look_elsewhere(self) -> None:
        """Counts runs that other processes have finished, and takes up those that they have let go of."""
        for _ in range(len(self.elsewhere)):
            job = self.elsewhere.popleft()
            experiment, config = self.jobs[job].experiment, self.jobs[job].config
            if experiment.folder(config, self.out).finished:
                self.state.done.append(job)
            elif experiment.busy(config, self.out):
                self.elsewhere.append(job)
            else:
                self.pending.append(job)

    def _hear(self, worker: _Worker) -> None:
        try:
            message = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            self._died(worker)
            return
        job = worker.job
        if job is None:
            return
        if isinstance(message, Progress):
            self.state.running[job] = message
            return
        worker.job = None
        progress = self.state.running.pop(job, None)
        if isinstance(message, Finished):
            self.state.done.append(job)
            # A run tells of its first iteration; one that told of none was finished elsewhere just before.
            self.state.ran += [] if progress is None else [job]
        elif isinstance(message, Taken):
            self.attempts[job] -= 1
            self.elsewhere.append(job)
        elif isinstance(message, Failed):
            self._failed(job, message.reason)

    def _died(self, worker: _Worker) -> None:
        job = worker.job
        self.pool.replace(worker)
        if job is not None:
            self.state.running.pop(job, None)
            self._failed(job, "the worker process died (killed, or out of memory)\n")

    def _failed(self, job: int, reason: str) -> None:
        path = self.jobs[job].experiment.folder(self.jobs[job].config, self.out).file(ERROR_FILE)
        path.write_text(reason)
        if self.attempts[job] < ATTEMPTS:
            self.pending.append(job)
        else:
            self.state.failed[job] = path
