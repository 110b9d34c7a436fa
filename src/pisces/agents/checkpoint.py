"""Checkpoints: tensors and numbers in one safetensors file, without pickles."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from pisces.errors import UserError

NUMBERS = "numbers"
"""The metadata entry that holds what is not a tensor, as JSON."""


def save_checkpoint(path: Path, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
    """Writes a checkpoint that other processes see either whole or not at all."""
    temporary = path.with_name(f".tmp-{uuid.uuid4().hex}")  # process ids are not unique across machines
    contiguous = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    try:
        # The states of some of NumPy's generators contain arrays.
        save_file(contiguous, temporary, metadata={NUMBERS: json.dumps(numbers, default=np.ndarray.tolist)})
        with temporary.open("rb") as file:
            os.fsync(file.fileno())  # or a power failure could leave the new name with nothing in it
        temporary.replace(path)
    except SafetensorError as error:
        raise UserError(f"the disk cannot be written to: {str(path)!r}: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def load_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Reads a checkpoint that `save_checkpoint` wrote."""
    try:
        with safe_open(path, framework="pt") as file:
            numbers = json.loads((file.metadata() or {})[NUMBERS])
            return {name: file.get_tensor(name) for name in file.keys()}, numbers  # noqa: SIM118 (not a dict)
    except (SafetensorError, KeyError, ValueError) as error:
        raise UserError(
            f"expected a checkpoint in {str(path)!r}, got a damaged file; delete it to restart the run"
        ) from error


def tensors_below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Returns the tensors whose names start with `prefix`, named without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def load_module(module: nn.Module, prefix: str, tensors: Mapping[str, Tensor]) -> None:
    """Loads the tensors whose names start with `prefix` into a module."""
    module.load_state_dict(tensors_below(prefix, tensors))


def optimizer_tensors(optimizer: Optimizer, prefix: str) -> dict[str, Tensor]:
    """Returns Adam's state as tensors named `<prefix><number of the parameter>.<name>`."""
    return {
        f"{prefix}{number}.{name}": value
        for number, (parameter, _) in enumerate(_parameters(optimizer))
        for name, value in optimizer.state.get(parameter, {}).items()
    }


def load_optimizer(optimizer: Optimizer, prefix: str, tensors: Mapping[str, Tensor]) -> None:
    """Loads what `optimizer_tensors` returned, to the devices where the optimizer expects it."""
    for number, (parameter, group) in enumerate(_parameters(optimizer)):
        state = tensors_below(f"{prefix}{number}.", tensors)
        # As Adam creates it: the count of steps is on the CPU unless the whole update runs on the device.
        on_device = bool(group.get("fused") or group.get("capturable"))
        step = {"step": state.pop("step").to(parameter.device if on_device else "cpu")} if state else {}
        optimizer.state[parameter] = step | {name: _like(parameter, name, value) for name, value in state.items()}


def _parameters(optimizer: Optimizer) -> list[tuple[Tensor, dict[str, Any]]]:
    """The parameters in the optimizer's order, each with its group."""
    return [(parameter, group) for group in optimizer.param_groups for parameter in group["params"]]


def _like(parameter: Tensor, name: str, value: Tensor) -> Tensor:
    """Copies a moment to its parameter's device and memory layout, which the fused update requires."""
    if value.shape != parameter.shape:
        shapes = f"{tuple(value.shape)} for a parameter of shape {tuple(parameter.shape)}"
        raise UserError(f"the saved optimizer belongs to another network: {name} has shape {shapes}")
    return torch.empty_like(parameter, requires_grad=False).copy_(value)
