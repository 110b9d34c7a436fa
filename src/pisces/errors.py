"""Exceptions for invalid user input."""

from __future__ import annotations

import difflib
import importlib
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
LONGEST_NAME = 200
"""Letters of an unknown name that an error shows."""


class UserError(ValueError):
    """Invalid user input.

    The message is one line that says what is wrong and what to do. The command line prints it and exits with code 2.
    """

    def __init__(self, message: str) -> None:
        # A value that is quoted in the message, say an array, may be printed on several lines.
        super().__init__(" ".join(part.strip() for part in message.splitlines()))


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
        package = module.split(".")[0]
        raise MissingExtraError(f"{package} is not installed; run: pip install 'pisces-rl[{extra}]'") from error


def unknown_name(kind: str, name: object, choices: Iterable[str]) -> UserError:
    """Returns the error for an unknown name; it lists the choices and the nearest match."""
    options = sorted(choices)
    nearest = difflib.get_close_matches(str(name), options, n=1, cutoff=0.55)
    nearest = nearest or [option for option in options if name and option.startswith(str(name))]
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    shown = repr(name) if len(repr(name)) <= LONGEST_NAME else f"{repr(name)[:LONGEST_NAME]}..."
    return UserError(f"unknown {kind} {shown}; {hint}choose from: {', '.join(options)}")
