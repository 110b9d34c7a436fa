"""The experiments by name. A new experiment adds one line to `EXPERIMENTS`."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any, cast

from pisces.errors import UserError, unknown_name
from pisces.experiments.experiment import Evaluation, Experiment
from pisces.runs.store import CONFIG, RunFolder, config_hash

EXPERIMENTS: dict[str, str] = {
    "jumping": "pisces.experiments.jumping.experiment:Jumping",
    "lqr": "pisces.experiments.lqr.experiment:LQR",
    "distracting": "pisces.experiments.distracting.experiment:Distracting",
    "minigrid": "pisces.experiments.minigrid.experiment:MiniGrid",
}
"""Name -> "module:class"; the module is imported when the experiment is asked for."""


def experiment(name: str) -> Experiment[Any]:
    """Returns the experiment of that name."""
    if name not in EXPERIMENTS:
        raise unknown_name("experiment", name, EXPERIMENTS)
    module, _, attribute = EXPERIMENTS[name].partition(":")
    return cast("Experiment[Any]", getattr(importlib.import_module(module), attribute)())


def all_experiments() -> dict[str, Experiment[Any]]:
    """Returns all experiments by name."""
    return {name: experiment(name) for name in EXPERIMENTS}


def open_run(path: str | Path) -> tuple[Experiment[Any], RunFolder, Any]:
    """Opens a run folder: its experiment, the folder, and its config."""
    folder = RunFolder(Path(path))
    stored = folder.read_config()
    found = experiment(str(stored.get("experiment")))
    try:
        config = found.config_class.from_dict(stored)
    except UserError as error:
        raise UserError(f"{folder.file(CONFIG)}: {error}") from error
    if re.fullmatch("[0-9a-f]{12}", folder.path.name) and folder.path.name != config_hash(config):
        raise UserError(f"{str(folder.file(CONFIG))!r} is damaged: the folder has the name of another config")
    return found, folder, config


def evaluate_run(path: str | Path, **options: Any) -> Evaluation:
    """Evaluates the trained agent of a run folder.

    Args:
        path: the run folder.
        **options: options of ``pisces evaluate``; None where they were not given.
    """
    found, folder, config = open_run(path)
    for name, value in options.items():
        if value is None:
            continue
        if name not in found.evaluation_options:
            known = " and ".join(f"--{option}" for option in found.evaluation_options) or "no options"
            raise UserError(f"--{name} does not apply to runs of {found.name}, which take {known}")
        if isinstance(value, int) and value < 1:
            raise UserError(f"--{name} must be at least 1, got {value}")
    return found.evaluate(folder, config, **options)
