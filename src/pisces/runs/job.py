"""Jobs: a config of an experiment that is to be run, after the runs that it builds on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from pisces.errors import UserError
from pisces.runs.progress import Listener
from pisces.runs.store import RunConfig, RunFolder

DEVICES = r"cpu|cuda(:\d{1,3})?"


class Runnable(Protocol):
    """What jobs ask of an experiment. Worker processes get experiments by pickle."""

    @property
    def name(self) -> str:
        """The name of the experiment."""

    @property
    def cpu_only(self) -> bool:
        """Whether its runs cannot use another device."""

    def run(self, config: Any, folder: RunFolder, listeners: Sequence[Listener], device: str) -> None:
        """Runs a config, or resumes it, and writes the result last; the caller holds the lock of the folder."""

    def requirements(self, config: Any) -> Sequence[Any]:
        """Returns the configs whose runs must be finished first, in this order."""


@dataclass(frozen=True)
class Job:
    """One config to run."""

    experiment: Runnable
    """The experiment that the config belongs to."""
    config: RunConfig
    """The config of the run."""
    device: str = "cpu"
    """The torch device of the computation."""

    def folder(self, out: str | Path) -> RunFolder:
        """Returns the folder of the run; creates nothing."""
        return RunFolder.of(out, self.config)

    def busy(self, out: str | Path) -> bool:
        """Returns whether a process works on the run or on one of its requirements; creates nothing."""
        needed = (RunFolder.of(out, config).with_agent for config in self.experiment.requirements(self.config))
        return any(folder.busy for folder in (self.folder(out), *needed))

    def run(self, out: str | Path, listeners: Sequence[Listener] = ()) -> RunFolder:
        """Runs the requirements and then the config, each unless it is finished.

        A requirement that has a result but no checkpoint is run again, in the folder `RunFolder.with_agent`.

        Args:
            out: root of the run folders.
            listeners: called after every iteration; also of required runs, which `Progress.requirement` names.

        Returns:
            The folder of the finished run.

        Raises:
            LockedError: if another process works on one of the runs.
        """
        self.complete(out, listeners)
        return self.folder(out)

    def complete(self, out: str | Path, listeners: Sequence[Listener] = ()) -> bool:
        """Does what `run` does, and returns whether this call finished the run."""
        folder = self.folder(out).create(self.config)
        if folder.finished:
            folder.remove_leftovers()
            return False
        _check_kind(self.device, self.experiment)
        for config in self.experiment.requirements(self.config):
            needed = RunFolder.of(out, config).with_agent.create(config)
            self._finish(needed, config, [_for_requirement(listener, config.label) for listener in listeners])
        return self._finish(folder, self.config, listeners)

    def _finish(self, folder: RunFolder, config: Any, listeners: Sequence[Listener]) -> bool:
        return folder.finish_by(partial(self.experiment.run, config, folder, listeners, self.device))


def _for_requirement(listener: Listener, label: str) -> Listener:
    return lambda progress: listener(replace(progress, requirement=label))


def _check_kind(device: str, experiment: Runnable) -> None:
    if experiment.cpu_only and device != "cpu":
        raise UserError(f"{experiment.name} runs on the CPU only, got device {device!r}")


def check_device(device: str, experiment: Runnable) -> None:
    """Raises unless an experiment can be trained on a device here."""
    if re.fullmatch(DEVICES, device) is None:
        raise UserError(f"the device must be cpu, cuda or cuda:<number>, got {device!r}")
    _check_kind(device, experiment)
    if device != "cpu":
        import torch  # slow

        if not torch.cuda.is_available():
            raise UserError(f"the device {device!r} is not available: torch finds no CUDA device; use cpu")
