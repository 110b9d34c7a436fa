"""RandConv: random convolutions, which change colors and textures and keep shapes."""

from __future__ import annotations

from math import sqrt

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from pisces.errors import UserError

SIZE = 2
RGB = 3
PASSTHROUGH_PROBABILITY = 0.1


def random_kernel(
    rng: np.random.Generator, channels: int = 1, passthrough_probability: float = PASSTHROUGH_PROBABILITY
) -> Tensor | None:
    """Samples a kernel, or with `passthrough_probability` None, which leaves images unchanged.

    Entries are normal with Glorot's variance 2 / (fan_in + fan_out): standard deviation 0.5 for gray frames and 0.29
    for RGB.

    Args:
        rng: the source of randomness.
        channels: channels of one frame, 1 or 3.
        passthrough_probability: how often the images stay unchanged.

    Returns:
        The kernel [channels, channels, 2, 2], or None.
    """
    if not 0 <= passthrough_probability <= 1:
        raise UserError(f"expected passthrough_probability in [0, 1], got {passthrough_probability}")
    passes = rng.random() < passthrough_probability
    deviation = sqrt(2 / (2 * channels * SIZE * SIZE))
    kernel = rng.normal(0.0, deviation, (channels, channels, SIZE, SIZE))
    return None if passes else torch.from_numpy(kernel.astype(np.float32))


def random_row_kernel(
    rng: np.random.Generator, passthrough_probability: float = PASSTHROUGH_PROBABILITY
) -> Tensor | None:
    """Samples a kernel for RGB frames as the published code does, or None, which leaves images unchanged.

    The 2 x 2 kernel moves along the columns and the colors of each row: output color c sums over colors c and c + 1 in
    two neighboring columns. Red never enters the green channel, so green and red stay distinguishable.

    Args:
        rng: the source of randomness.
        passthrough_probability: how often the images stay unchanged.

    Returns:
        The kernel as `apply_kernel` takes it, [3, 3, 2, 2], or None.
    """
    drawn = random_kernel(rng, 1, passthrough_probability)
    if drawn is None:
        return None
    kernel = torch.zeros(RGB, RGB, SIZE, SIZE)
    for color in range(RGB):
        for further in range(min(SIZE, RGB - color)):
            kernel[color, color + further, 0] = drawn[0, 0, :, further]
    return kernel


def apply_kernel(images: Tensor, kernel: Tensor | None) -> Tensor:
    """Convolves every frame of every image with one kernel.

    Output pixel (y, x) sums over input pixels (y, x), (y, x + 1), (y + 1, x), (y + 1, x + 1), zeros outside.

    Args:
        images: [n, frames * channels, H, W], floating-point; each group of `channels` is one frame.
        kernel: [channels, channels, 2, 2], or None for the identity.

    Returns:
        Images of the same shape.
    """
    if not images.is_floating_point():
        raise UserError(f"expected images of floating-point numbers, got {images.dtype}; convert them with .float()")
    if kernel is None:
        return images
    channels = len(kernel)
    if kernel.shape != (channels, channels, SIZE, SIZE):
        raise UserError(f"expected a kernel [channels, channels, {SIZE}, {SIZE}], got {tuple(kernel.shape)}")
    if images.ndim != 4 or images.shape[1] % channels:
        raise UserError(f"expected images [n, frames * {channels}, H, W], got {tuple(images.shape)}")
    n, stacked, height, width = images.shape
    frames = functional.pad(images.reshape(-1, channels, height, width), (0, SIZE - 1, 0, SIZE - 1))
    return functional.conv2d(frames, kernel.to(images)).reshape(n, stacked, height, width)
