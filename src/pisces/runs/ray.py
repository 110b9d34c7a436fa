"""Sweeps on a Ray cluster: jobs are tasks, and their results are sent back to the driver."""

from __future__ import annotations

import os
import socket
from functools import partial
from pathlib import Path
from typing import Any

from pisces.errors import UserError, import_extra
from pisces.files import write_atomically
from pisces.runs.job import Job
from pisces.runs.lock import wait_for_lock
from pisces.runs.store import RESULT, RUN_INFO
from pisces.runs.sweep import POLL_SECONDS, Report, SweepQueue

LOOPBACK_VARIABLE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Ray's switch between the machine's external address and its loopback address, on any system despite the name."""
CONNECT_SECONDS = 5.0
"""Time that a cluster has to answer."""
NODE_FAILURES = 10
"""How often Ray itself restarts a task whose node or worker has died."""


def run_on_ray(queue: SweepQueue, workers: int, report: Report, address: str | None = None) -> None:
    """Runs the pending jobs of a sweep as Ray tasks of one CPU each; see `pisces.runs.sweep.sweep`.

    Run folders are written on the node of the task, so a shared file system lets a task resume the run of a node that
    died; results come back to the driver in any case.

    Args:
        queue: the jobs.
        workers: the number of tasks at a time.
        report: called with the state whenever something has changed.
        address: address of a running cluster; without it one is started on this machine.
    """
    if address is not None:
        _check_address(address)
    else:
        # A cluster of this machine alone listens on its loopback interface only; Ray reads this when it is imported.
        os.environ.setdefault(LOOPBACK_VARIABLE, "0")
    ray = import_extra("ray", "ray")
    started = not ray.is_initialized()
    if started:
        _connect(ray, address, workers)
    try:
        _run_tasks(ray, queue, workers, report)
    finally:
        if started:
            ray.shutdown()


def _run_tasks(ray: Any, queue: SweepQueue, workers: int, report: Report) -> None:
    task = ray.remote(num_cpus=1, max_retries=NODE_FAILURES)(_run_job)
    running: dict[Any, int] = {}
    while queue.pending or running:
        while queue.pending and len(running) < workers:
            index = queue.start()
            running[task.remote(queue.jobs[index], str(queue.out.absolute()))] = index
        ready, _ = ray.wait(list(running), timeout=POLL_SECONDS)
        for reference in ready:
            _collect(ray, queue, running.pop(reference), reference)
        report(queue.state)


def _collect(ray: Any, queue: SweepQueue, index: int, reference: Any) -> None:
    try:
        files = ray.get(reference)
    except ray.exceptions.RayError as error:
        queue.fail(index, str(error))
        return
    folder = queue.jobs[index].folder(queue.out)
    if not folder.finished:
        for name, text in files.items():
            write_atomically(folder.file(name), text)
    queue.finish(index, ran=True)


def _run_job(job: Job, out: str) -> dict[str, str]:
    """Runs a job and returns the texts of its files by name, the result last."""
    # A process may survive its node for a moment; its run is taken over when it ends.
    folder = wait_for_lock(partial(job.run, Path(out)))
    return {name: folder.file(name).read_text() for name in (RUN_INFO, RESULT) if folder.file(name).exists()}


def _check_address(address: str) -> None:
    """Raises unless something answers at an address, which Ray would wait for a minute for."""
    if address == "auto":
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise UserError(f"the address of a Ray cluster is host:port, ray://host:port or auto, got {address!r}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, UnicodeError) as error:
        raise UserError(f"no Ray cluster answers at {address!r}") from error


def _connect(ray: Any, address: str | None, workers: int) -> None:
    if address is None:
        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
        return
    try:
        ray.init(address=address, log_to_driver=False)
    except ConnectionError as error:
        raise UserError(f"no Ray cluster answers at {address!r}") from error
