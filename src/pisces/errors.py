"""Exceptions for invalid user input."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Iterable
from typing import Any

EXTRAS = {
    # Distribution: the module that it installs, and the extra of pisces that asks for it.
    "torch": ("torch", "torch"),
    "safetensors": ("safetensors", "torch"),
    "filelock": ("filelock", "cli"),
    "matplotlib": ("matplotlib", "cli"),
    "orjson": ("orjson", "cli"),
    "rich": ("rich", "cli"),
    "tyro": ("tyro", "cli"),
    "pygame-ce": ("pygame", "render"),
    "tensorboard": ("tensorboard", "tensorboard"),
    "dm_control": ("dm_control", "control"),
    "mujoco": ("mujoco", "control"),
    "pillow": ("PIL", "control"),
    "umap-learn": ("umap", "report"),
    "ray": ("ray", "ray"),
    "optuna": ("optuna", "tune"),
    "stable-baselines3": ("stable_baselines3", "sb3"),
    "minari": ("minari", "minari"),
}
"""Optional dependencies."""
DM_CONTROL_ENDS = (3, 13)
"""The first version of Python without dm_control."""
LONGEST_NAME = 200
"""Letters of an unknown name that an error shows."""


class UserError(ValueError):
    """Invalid user input.

    The message is one line that says what is wrong and what to do. The command line prints it and exits with code 2.
    """

    def __init__(self, message: str) -> None:
        # A value that is quoted in the message, say an array, may be printed on several lines.
        super().__init__(" ".join(part.strip() for part in message.splitlines()))


class RoundingError(UserError):
    """A tolerance is below the rounding error; `reachable` is one that is not."""

    def __init__(self, reachable: float, tolerance: float) -> None:
        super().__init__(f"expected a tolerance of at least {reachable:.1e}, the rounding error here, got {tolerance}")
        self.reachable = reachable


class MissingExtraError(UserError, ImportError):
    """A feature needs an optional dependency that is not installed."""


def import_extra(module: str, extra: str) -> Any:
    """Imports an optional dependency.

    Args:
        module: name of the module, e.g. "optuna".
        extra: the extra of pisces that installs it, e.g. "tune".

    Raises:
        MissingExtraError: if the module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != module.split(".")[0]:
            raise
        raise MissingExtraError(missing_text(module.split(".")[0], extra)) from error


def missing_text(package: str, extra: str) -> str:
    """Says how to install an optional dependency, or why that is not possible."""
    if package == "dm_control" and sys.version_info >= DM_CONTROL_ENDS:
        newest, own = (".".join(map(str, version[:2])) for version in (DM_CONTROL_ENDS, sys.version_info))
        return (
            f"dm_control cannot be installed with Python {own}, because labmaze, which it needs, has no builds for "
            f"Python {newest} and later; use Python 3.11 or 3.12 for the tasks of the extra '{extra}'"
        )
    return f"{package} is not installed; run: pip install 'pisces-rl[{extra}]'"


def unknown_name(kind: str, name: object, choices: Iterable[str]) -> UserError:
    """Returns the error for an unknown name; it lists the choices and the nearest match."""
    options = sorted(choices)
    nearest = difflib.get_close_matches(str(name), options, n=1, cutoff=0.55)
    nearest = nearest or [option for option in options if name and option.startswith(str(name))]
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    shown = repr(name) if len(repr(name)) <= LONGEST_NAME else f"{repr(name)[:LONGEST_NAME]}..."
    return UserError(f"unknown {kind} {shown}; {hint}choose from: {', '.join(options)}")
