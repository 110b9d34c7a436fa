"""The experiments by name, each imported when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pisces.errors import unknown_name
from pisces.experiments.progress import Listener
from pisces.experiments.store import RunConfig, RunFolder


@dataclass(frozen=True)
class Experiment:
    """Where an experiment's parts are."""

    name: str
    """Its name on the command line and in run folders."""
    settings_module: str
    """Module with `config_from_dict` and `command_line`; light to import."""
    run_module: str
    """Module with `run`; may load torch."""

    def config_from_dict(self, values: Mapping[str, Any]) -> RunConfig:
        """Reads a config that its `as_dict` wrote."""
        return cast("RunConfig", importlib.import_module(self.settings_module).config_from_dict(values))

    def command_line(self, config: RunConfig, out: str | Path) -> str:
        """The command that runs one config."""
        return str(importlib.import_module(self.settings_module).command_line(config, out))

    def folder(self, config: RunConfig, out: str | Path) -> RunFolder:
        """The config's run folder, created if need be."""
        return RunFolder.open(out, self.name, config.method, config)

    def busy(self, config: RunConfig, out: str | Path) -> bool:
        """Whether a process is busy with the config's run, or with a run that it builds on."""
        first = getattr(importlib.import_module(self.settings_module), "requirements", lambda config: ())
        return any(self.folder(needed, out).locked() for needed in (config, *first(config)))

    def run(self, config: RunConfig, out: str | Path, listeners: Sequence[Listener] = ()) -> RunFolder:
        """Runs one config, or goes on with it."""
        module = importlib.import_module(self.run_module)
        return cast("RunFolder", module.run(config, out, listeners=listeners))


EXPERIMENTS: Mapping[str, Experiment] = {
    "jumping": Experiment("jumping", "pisces.experiments.jumping", "pisces.experiments.jumping_run"),
    "distracting": Experiment("distracting", "pisces.experiments.distracting", "pisces.experiments.distracting_run"),
    "grid": Experiment("grid", "pisces.experiments.grid_transfer", "pisces.experiments.grid_transfer_run"),
}


def experiment(name: str) -> Experiment:
    """Finds an experiment by name."""
    if name not in EXPERIMENTS:
        raise unknown_name("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]
