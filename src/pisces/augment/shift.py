"""Random shift: pad by repeating the border, crop back at a random place."""

from __future__ import annotations

import torch
from torch import Tensor

from pisces.errors import UserError


def random_shift(images: Tensor, padding: int = 4, generator: torch.Generator | None = None) -> Tensor:
    """Shifts each image by up to `padding` pixels in both directions, the border repeated.

    Args:
        images: [n, channels, H, W]; all channels (stacked frames too) of an image move together.
        padding: largest shift.
        generator: draws the shifts.

    Returns:
        Shifted images of the same shape and type.
    """
    if images.ndim != 4 or padding < 0:
        raise UserError(f"expected images [n, C, H, W] and padding >= 0, got {tuple(images.shape)} and {padding}")
    n, channels, height, width = images.shape
    offsets = torch.randint(0, 2 * padding + 1, (2, n), generator=generator).to(images.device)
    # Clamped indices repeat the border, so nothing need be padded in memory.
    rows = _clamped(offsets[0], padding, height)
    columns = _clamped(offsets[1], padding, width)
    shifted = images.gather(2, rows[:, None, :, None].expand(n, channels, height, width))
    return shifted.gather(3, columns[:, None, None, :].expand(n, channels, height, width))


def _clamped(offset: Tensor, padding: int, size: int) -> Tensor:
    positions = torch.arange(size, device=offset.device)[None, :] + offset[:, None] - padding
    return positions.clamp(0, size - 1)
