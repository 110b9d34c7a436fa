"""Checkpoints: tensors and numbers in one safetensors file, without pickles."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.optim import Optimizer

from pisces.errors import UserError
from pisces.files import read_bytes, replacing

NUMBERS = "numbers"
"""The metadata entry that holds what is not a tensor, as JSON."""
CHECKSUM, BLANK = "sha256", "0" * 64
"""The metadata entry that holds the checksum of the file, and its value while the checksum is computed."""
MOST_BYTES = 2**33
"""The largest checkpoint that is read."""


def save_checkpoint(path: Path, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
    """Writes a checkpoint, with its checksum, that other processes see either whole or not at all."""
    contiguous = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    metadata = {NUMBERS: json.dumps(numbers, default=_plain), CHECKSUM: BLANK}
    content = bytearray(save(contiguous, metadata=metadata))
    place = _checksum_place(content)
    content[place : place + len(BLANK)] = hashlib.sha256(content).hexdigest().encode()
    with replacing(path) as file:
        file.write(content)


def _plain(value: Any) -> Any:
    """Numbers and arrays of NumPy, of which the states of some of its generators consist, for JSON."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"a checkpoint cannot hold a {type(value).__name__}")


def load_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Reads a checkpoint that `save_checkpoint` wrote, and checks every byte of it."""
    try:
        content = read_bytes(path, MOST_BYTES)
        header = json.loads(content[8 : 8 + _header_size(content)])
        metadata = header["__metadata__"]
        if set(metadata) != {NUMBERS}:  # earlier versions wrote no checksum
            _verify(content)
        return load(content), json.loads(metadata[NUMBERS])
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise UserError(f"the checkpoint {str(path)!r} is damaged; delete it to restart the run") from error


def _header_size(content: bytes | bytearray) -> int:
    return int.from_bytes(content[:8], "little")


def _checksum_place(content: bytes | bytearray) -> int:
    """Where the digits of the checksum begin, which is computed with zeros in their place."""
    label = f'"{CHECKSUM}":"'.encode()
    return content.index(label, 8, 8 + _header_size(content)) + len(label)


def _verify(content: bytes) -> None:
    place = _checksum_place(content)
    end = place + len(BLANK)
    blank = hashlib.sha256(content[:place] + BLANK.encode())
    blank.update(memoryview(content)[end:])
    if blank.hexdigest().encode() != content[place:end]:
        raise ValueError("the checksum does not fit the content")


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
