"""Tensors and numbers in one safetensors file; nothing is pickled."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from pisces.errors import UserError

NUMBERS = "numbers"
"""The metadata entry that holds what is not a tensor, as JSON."""


def save_checkpoint(path: Path, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
    """Writes a checkpoint that other processes see either whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    contiguous = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    try:
        # Arrays are lists there: the states of some of NumPy's generators hold them.
        save_file(contiguous, temporary, metadata={NUMBERS: json.dumps(numbers, default=np.ndarray.tolist)})
    except SafetensorError as error:
        temporary.unlink(missing_ok=True)
        raise UserError(f"expected a disk with room for {str(path)!r}, got: {error}") from error
    with temporary.open("rb") as file:
        os.fsync(file.fileno())  # or a power cut could leave the new name with nothing in it
    temporary.replace(path)


def load_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Reads a checkpoint that `save_checkpoint` wrote."""
    try:
        with safe_open(path, framework="pt") as file:
            numbers = json.loads((file.metadata() or {})[NUMBERS])
            return {name: file.get_tensor(name) for name in file.keys()}, numbers  # noqa: SIM118 (not a dict)
    except (SafetensorError, KeyError, ValueError) as error:
        raise UserError(
            f"expected a checkpoint in {str(path)!r}, got a damaged file; delete it to start the run anew"
        ) from error


def tensors_below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names start with `prefix`, without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def load_module(module: nn.Module, prefix: str, tensors: Mapping[str, Tensor]) -> None:
    """Loads the tensors whose names start with `prefix` into a module."""
    module.load_state_dict(tensors_below(prefix, tensors))
