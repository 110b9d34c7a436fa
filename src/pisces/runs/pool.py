"""A pool of spawned worker processes on this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol, Self

from pisces.errors import UserError
from pisces.runs.interrupts import interrupt_once

STOP_SECONDS = 10.0
"""Time that workers get to save their work before they are killed."""
KILLED = "a worker process was killed (out of memory?); run the same command again to resume"


class Task(Protocol):
    """A picklable function that a worker calls."""

    def __call__(self, report: Callable[[Any], None], /) -> Any:
        """Does the work; `report` sends a picklable message to the parent, and so is the value returned."""


@dataclass(frozen=True)
class Reported:
    """A running task sent a message."""

    message: Any
    """The message."""


@dataclass(frozen=True)
class Returned:
    """A task ended."""

    value: Any
    """The value that it returned."""


@dataclass(frozen=True)
class Raised:
    """A task raised an exception."""

    traceback: str
    """The traceback as text."""


@dataclass(frozen=True)
class Died:
    """The process of a task died."""


Event = Reported | Returned | Raised | Died


@dataclass
class _Worker:
    process: Any
    connection: Connection
    key: int | None = None


class Pool:
    """Worker processes that run one task at a time each; a worker that dies is replaced.

    As a context manager it ends its workers: they get SIGINT, so that they can save their work, and are killed if
    they are still alive after `STOP_SECONDS`. Workers also end when their parent dies.
    """

    def __init__(self, workers: int) -> None:
        if workers < 1:
            raise UserError(f"expected at least one worker, got {workers}")
        self._context = multiprocessing.get_context("spawn")
        self._workers = [self._start() for _ in range(workers)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            if worker.process.is_alive():
                os.kill(worker.process.pid, signal.SIGINT)
        deadline = time.monotonic() + STOP_SECONDS
        for worker in self._workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.is_alive():
                worker.process.kill()

    @property
    def idle(self) -> int:
        """The number of workers without a task."""
        return sum(worker.key is None for worker in self._workers)

    @property
    def busy(self) -> bool:
        """Whether a worker has a task."""
        return self.idle < len(self._workers)

    def submit(self, key: int, task: Task) -> None:
        """Gives a task to an idle worker; `key` names it in the events."""
        worker = next(worker for worker in self._workers if worker.key is None)
        worker.key = key
        with suppress(ConnectionError):  # the worker has just died, which `events` will find out
            worker.connection.send(task)

    def events(self, timeout: float) -> list[tuple[int, Event]]:
        """Waits for events, at most `timeout` seconds, and returns them with the keys of their tasks."""
        workers = {worker.connection: worker for worker in self._workers}
        received = [self._receive(workers[ready]) for ready in wait(list(workers), timeout)]  # type: ignore[index]
        return [(key, event) for key, event in received if key is not None]

    def _receive(self, worker: _Worker) -> tuple[int | None, Event]:
        key = worker.key
        try:
            event: Event = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            event = Died()
            self._replace(worker)
        if not isinstance(event, Reported):
            worker.key = None
        return key, event

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def _replace(self, worker: _Worker) -> None:
        worker.process.join()
        worker.connection.close()
        fresh = self._start()
        worker.process, worker.connection = fresh.process, fresh.connection


def _work(connection: Connection) -> None:
    """Runs the tasks that come over the connection, one after the other, until it closes."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, interrupt_once)
    with suppress(KeyboardInterrupt, EOFError, ConnectionError):
        while True:
            connection.send(_run_next(connection))


def _run_next(connection: Connection) -> Returned | Raised:
    try:
        task: Task = connection.recv()
    except EOFError:  # the parent closed the connection
        raise
    except Exception:  # the task cannot be unpickled here
        return Raised(traceback.format_exc())
    try:
        return Returned(task(lambda message: connection.send(Reported(message))))
    except Exception:
        return Raised(traceback.format_exc())


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
