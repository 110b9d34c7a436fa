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


def shift_frames(frames: Tensor, offsets: Tensor, padding: int) -> Tensor:
    """Shifts each image as `random_shift` does, by given offsets, with the channels last.

    Args:
        frames: bytes or floats, [n, H, W, C], contiguous.
        offsets: whole numbers in 0..2 padding, rows and columns, [2, n]; [2, 1] moves all images alike.
        padding: the offset that leaves an image where it is.

    Returns:
        [n, C, H, W] with the channels last in memory, as convolutions like it.
    """
    n, height, width, channels = frames.shape
    rows, columns = _clamped(offsets[0], padding, height), _clamped(offsets[1], padding, width)
    first = torch.arange(n, device=frames.device)[:, None, None] * height
    pixels = (first + rows[:, :, None]) * width + columns[:, None, :]
    shifted = frames.reshape(-1, channels).index_select(0, pixels.flatten())
    return shifted.view(n, height, width, channels).permute(0, 3, 1, 2)
