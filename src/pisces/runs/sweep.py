"""Sweeps: many jobs, several at a time, on the cores of one machine or on a Ray cluster."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pisces.errors import UserError, unknown_name
from pisces.files import write_atomically
from pisces.runs.job import Job
from pisces.runs.lock import LockedError
from pisces.runs.pool import KILLED, Died, Event, Pool, Raised, Reported, Returned
from pisces.runs.progress import Progress
from pisces.runs.store import ERROR

ENGINES = ("local", "ray")
ATTEMPTS = 2
"""The number of times that a run is tried if it fails or its worker dies."""
POLL_SECONDS = 0.5
"""Time between two looks at the runs."""
REPORT_SECONDS = 0.5
"""Least time between two progress reports of a run, unless it was evaluated."""


@dataclass
class SweepState:
    """The state of the jobs of a sweep; jobs are given by their positions in the list."""

    total: int
    """The number of jobs."""
    done: list[int] = field(default_factory=list)
    """The finished jobs, also those that were finished before or elsewhere."""
    ran: list[int] = field(default_factory=list)
    """The jobs that this sweep finished."""
    running: dict[int, Progress | None] = field(default_factory=dict)
    """The jobs that this sweep is running, with their latest progress."""
    failed: dict[int, Path] = field(default_factory=dict)
    """The jobs that failed `ATTEMPTS` times, with the file that holds the last error."""


Report = Callable[[SweepState], None]


def sweep(
    jobs: Sequence[Job],
    out: str | Path,
    workers: int = 2,
    report: Report = lambda state: None,
    engine: str = "local",
    address: str | None = None,
) -> SweepState:
    """Runs all jobs that are not finished, several at a time.

    A run that another process works on is left to it, and taken over if that process dies. A run that fails or whose
    worker dies is tried once more; the other runs continue.

    Args:
        jobs: what to run.
        out: root of the run folders.
        workers: number of runs at a time.
        report: called whenever something has changed, and at least twice a second.
        engine: "local" for worker processes on this machine, or "ray".
        address: address of a running Ray cluster; without it the engine "ray" starts one on this machine.

    Returns:
        The final state of the jobs.
    """
    if engine not in ENGINES:
        raise unknown_name("engine", engine, ENGINES)
    if address is not None and engine != "ray":
        raise UserError(f"an address of a cluster needs --engine ray, got the engine {engine!r}")
    if workers < 1:
        raise UserError(f"expected at least one worker, got {workers}")
    queue = SweepQueue(jobs, Path(out))
    if queue.pending and engine == "ray":
        from pisces.runs.ray import run_on_ray  # needs an extra

        run_on_ray(queue, workers, report, address)
    elif queue.pending:
        _run_locally(queue, workers, report)
    return queue.state


class SweepQueue:
    """The jobs that are still to run, and the state of all; creates the folders of jobs that are not finished.

    Args:
        jobs: the jobs.
        out: root of the run folders.
    """

    def __init__(self, jobs: Sequence[Job], out: Path) -> None:
        self.jobs, self.out = jobs, out
        self.state = SweepState(len(jobs))
        self.pending: deque[int] = deque()
        """The jobs to start next."""
        self.elsewhere: deque[int] = deque()
        """The jobs that other processes work on."""
        self._attempts = [0] * len(jobs)
        finished = _finished(jobs, out)
        for index, job in enumerate(jobs):
            if finished[index]:
                job.folder(out).remove_leftovers()
                self.state.done.append(index)
            else:
                job.folder(out).create(job.config)
                self.pending.append(index)

    def start(self) -> int:
        """Returns the next pending job, which is running from now on."""
        index = self.pending.popleft()
        self.state.running[index] = None
        self._attempts[index] += 1
        return index

    def finish(self, index: int, ran: bool) -> None:
        """Records that a running job is finished, and whether this sweep finished it."""
        del self.state.running[index]
        self.state.done.append(index)
        self.state.ran += [index] if ran else []
        self.jobs[index].folder(self.out).file(ERROR).unlink(missing_ok=True)  # of an earlier attempt

    def leave(self, index: int) -> None:
        """Leaves a running job to the process that works on it."""
        del self.state.running[index]
        self._attempts[index] -= 1
        self.elsewhere.append(index)

    def fail(self, index: int, reason: str) -> None:
        """Records why a running job failed, and queues it again if it has attempts left."""
        del self.state.running[index]
        path = self.jobs[index].folder(self.out).file(ERROR)
        write_atomically(path, reason)
        if self._attempts[index] < ATTEMPTS:
            self.pending.append(index)
        else:
            self.state.failed[index] = path

    def reclaim(self) -> None:
        """Sorts out the jobs left to others: finished ones are done, and those that nobody works on come next."""
        free = []
        for _ in range(len(self.elsewhere)):
            index = self.elsewhere.popleft()
            if self.jobs[index].folder(self.out).finished:
                self.state.done.append(index)
            elif self.jobs[index].busy(self.out):
                self.elsewhere.append(index)
            else:
                free.append(index)
        self.pending.extendleft(sorted(free, reverse=True))


def _finished(jobs: Sequence[Job], out: Path) -> list[bool]:
    """Returns which jobs are finished; damaged results are counted, so that the user can delete all at once."""
    finished, damaged = [], []
    for job in jobs:
        try:
            finished.append(job.folder(out).finished)
        except UserError as error:
            damaged.append(str(error))
    if damaged:
        raise UserError(damaged[0] + (f" ({len(damaged)} results are damaged)" if len(damaged) > 1 else ""))
    return finished


@dataclass(frozen=True)
class _RunJob:
    """The task of a worker; returns whether it finished the run, or None if another process works on it."""

    job: Job
    out: Path

    def __call__(self, report: Callable[[Any], None]) -> bool | None:
        last = 0.0

        def listen(progress: Progress) -> None:
            nonlocal last
            if progress.evaluation is not None or time.monotonic() - last > REPORT_SECONDS:
                last = time.monotonic()
                report(progress)

        try:
            return self.job.complete(self.out, [listen])
        except LockedError:
            return None


def _run_locally(queue: SweepQueue, workers: int, report: Report) -> None:
    with Pool(min(workers, len(queue.pending))) as pool:
        while queue.pending or queue.elsewhere or pool.busy:
            if pool.idle:
                queue.reclaim()
            while queue.pending and pool.idle:
                index = queue.start()
                pool.submit(index, _RunJob(queue.jobs[index], queue.out))
            for index, event in pool.events(POLL_SECONDS):
                _record(queue, index, event)
            report(queue.state)


def _record(queue: SweepQueue, index: int, event: Event) -> None:
    match event:
        case Reported(progress):
            before = queue.state.running[index]
            if progress.evaluation is None and before is not None:
                progress = replace(progress, evaluation=before.evaluation)  # the newest one
            queue.state.running[index] = progress
        case Returned(None):
            queue.leave(index)
        case Returned(ran):
            queue.finish(index, ran)
        case Raised(traceback):
            queue.fail(index, traceback)
        case Died():
            queue.fail(index, f"{KILLED}\n")
