"""Choice of the torch device."""

from __future__ import annotations

import torch

from pisces.errors import UserError


def check_device(name: str) -> torch.device:
    """Returns the device of that name; raises if this machine does not have it."""
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # torch asserts that it was built for CUDA
        reason = str(error).partition("\n")[0]
        raise UserError(f"expected a device that torch can use here, such as cpu, got {name!r}: {reason}") from error
    return device
