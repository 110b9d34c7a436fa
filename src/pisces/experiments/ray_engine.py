"""Sweeps on a Ray cluster: the same jobs as tasks, their results sent back to the driver."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pisces.errors import UserError
from pisces.experiments.engine import ATTEMPTS, ERROR_FILE, POLL_SECONDS, Job, SweepState
from pisces.experiments.registry import experiment
from pisces.experiments.store import RESULT, RUN_INFO, LockedError, write_atomically

LOOPBACK_VARIABLE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Ray's switch between the machine's outer address and its loopback address, despite the name on any system."""

NODE_FAILURES = 10
"""How often Ray itself restarts a task whose node or worker has died."""


def ray_sweep(
    jobs: Sequence[Job],
    out: str | Path,
    workers: int,
    report: Callable[[SweepState], None],
    address: str | None = None,
) -> SweepState:
    """Runs all jobs that are not finished as Ray tasks of one CPU each; see `pisces.experiments.engine.sweep`.

    Run folders are written below `out` on the node of the task, so a shared file system lets a task go on where a dead
    node left it; results come back to the driver in any case.

    Args:
        jobs: what to run.
        out: root of the run folders.
        workers: how many tasks may be under way.
        report: called whenever something has changed.
        address: of an existing cluster; without it one is started on this machine.
    """
    if workers < 1:
        raise UserError(f"expected at least one worker, got {workers}")
    ray = _import_ray(address)
    started = not ray.is_initialized()
    if started:
        _connect(ray, address, workers)
    try:
        return _RaySweep(ray, jobs, Path(out).absolute(), workers, report).run()
    finally:
        if started:
            ray.shutdown()


class _RaySweep:
    def __init__(
        self, ray: Any, jobs: Sequence[Job], out: Path, workers: int, report: Callable[[SweepState], None]
    ) -> None:
        self.ray, self.jobs, self.out, self.workers, self.report = ray, jobs, out, workers, report
        self.task = ray.remote(num_cpus=1, max_retries=NODE_FAILURES)(_run_job)
        self.state = SweepState(len(jobs))
        self.attempts = [0] * len(jobs)
        self.pending: deque[int] = deque()
        self.under_way: dict[Any, int] = {}

    def run(self) -> SweepState:
        for index in range(len(self.jobs)):
            (self.state.done if self._folder(index).finished else self.pending).append(index)
        while self.pending or self.under_way:
            while self.pending and len(self.under_way) < self.workers:
                self._submit(self.pending.popleft())
            ready, _ = self.ray.wait(list(self.under_way), timeout=POLL_SECONDS)
            for reference in ready:
                self._collect(reference)
            self.report(self.state)
        return self.state

    def _folder(self, index: int) -> Any:
        return self.jobs[index].experiment.folder(self.jobs[index].config, self.out)

    def _submit(self, index: int) -> None:
        job = self.jobs[index]
        self.attempts[index] += 1
        self.state.running[index] = None
        reference = self.task.remote(job.experiment.name, job.config.as_dict(), str(self.out))
        self.under_way[reference] = index

    def _collect(self, reference: Any) -> None:
        index = self.under_way.pop(reference)
        self.state.running.pop(index)
        folder = self._folder(index)
        try:
            result, info = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            folder.file(ERROR_FILE).write_text(str(error))
            if self.attempts[index] < ATTEMPTS:
                self.pending.append(index)
            else:
                self.state.failed[index] = folder.file(ERROR_FILE)
            return
        if not folder.finished:
            write_atomically(folder.file(RUN_INFO), info)
            write_atomically(folder.file(RESULT), result)
        self.state.done.append(index)
        self.state.ran.append(index)


def _run_job(name: str, values: dict[str, Any], out: str) -> tuple[str, str]:
    chosen = experiment(name)
    while True:
        try:
            folder = chosen.run(chosen.config_from_dict(values), out)
        except LockedError:
            # A process of a dead node may live a little longer than its node; its run is taken over when it ends.
            time.sleep(POLL_SECONDS)
        else:
            return folder.file(RESULT).read_text(), folder.file(RUN_INFO).read_text()


def _import_ray(address: str | None) -> Any:
    if address is None:
        # A cluster of this machine alone listens on its loopback interface only.
        os.environ.setdefault(LOOPBACK_VARIABLE, "0")
    try:
        import ray
    except ImportError as error:
        raise UserError("--engine ray needs an extra: pip install 'pisces-rl[ray]'") from error
    return ray


def _connect(ray: Any, address: str | None, workers: int) -> None:
    if address is None:
        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
        return
    try:
        ray.init(address=address, log_to_driver=False)
    except ConnectionError as error:
        raise UserError(f"expected the address of a running Ray cluster, got {address!r}") from error
