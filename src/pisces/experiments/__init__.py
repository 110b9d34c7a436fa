"""Experiments: what is trained, how it is evaluated, and what is reported of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pisces.agents.policy import Policy

__all__ = ["load"]


def load(run_folder: str | Path) -> Policy:
    """Loads the trained agent of a run folder.

    Args:
        run_folder: a folder with config.json and checkpoint.safetensors, as `pisces train` makes it.

    Returns:
        A policy with ``act(observation)`` and ``embed(observations)``.
    """
    from pisces.experiments.registry import open_run

    experiment, folder, config = open_run(run_folder)
    return experiment.load(folder, config)
