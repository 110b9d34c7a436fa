"""Shifts of images by given offsets: the random shift of DrQ."""

from __future__ import annotations

import torch
from torch import Tensor


def shift_frames(frames: Tensor, offsets: Tensor, padding: int) -> Tensor:
    """Shifts each image by up to `padding` pixels; pixels that move in repeat the border.

    Args:
        frames: bytes or floats, [n, H, W, C], contiguous; all channels of an image move together.
        offsets: integers in 0..2 padding for rows and columns, [2, n]; [2, 1] moves all images alike.
        padding: the offset that leaves an image in place, and the largest shift.

    Returns:
        [n, C, H, W] in channels-last memory format, which convolutions prefer.
    """
    n, height, width, channels = frames.shape
    rows, columns = _clamped(offsets[0], padding, height), _clamped(offsets[1], padding, width)
    first = torch.arange(n, device=frames.device)[:, None, None] * height
    pixels = (first + rows[:, :, None]) * width + columns[:, None, :]
    shifted = frames.reshape(-1, channels).index_select(0, pixels.flatten())
    return shifted.view(n, height, width, channels).permute(0, 3, 1, 2)


def _clamped(offset: Tensor, padding: int, size: int) -> Tensor:
    """The pixels to read, [n, size]; clamped ones repeat the border, so that nothing is padded in memory."""
    positions = torch.arange(size, device=offset.device)[None, :] + offset[:, None] - padding
    return positions.clamp(0, size - 1)
