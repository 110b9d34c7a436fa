"""Agents that learn with behavioural losses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pisces.agents.linear_policy import LinearPolicy
    from pisces.agents.loading import ControlPolicy, JumpingPolicy

__all__ = ["load"]


def load(run_folder: str | Path) -> JumpingPolicy | LinearPolicy | ControlPolicy:
    """Loads a trained agent: a policy with ``act(observation)`` and ``embed(observation)``."""
    # Agents' settings live beside this file, and reading them must not load torch.
    from pisces.agents import loading

    return loading.load(run_folder)
