"""Random mixtures of colors, which keep shapes and textures."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pisces.errors import UserError

RGB = 3
MIDDLE = 127.5
"""Brightness that no mixture changes."""


def random_color_matrices(rng: np.random.Generator, n: int, strength: float = 0.3) -> Tensor:
    """Samples a matrix that mixes colors for each of n images: the identity plus normal numbers.

    Args:
        rng: the source of randomness.
        n: number of images.
        strength: standard deviation of the numbers that are added, non-negative.

    Returns:
        The matrices [n, 3, 3].
    """
    if not strength >= 0:
        raise UserError(f"strength must be at least 0, got {strength}")
    added = rng.normal(0.0, strength, (n, RGB, RGB))
    return torch.from_numpy((np.eye(RGB) + added).astype(np.float32))


def mix_colors(images: Tensor, matrices: Tensor) -> Tensor:
    """Mixes the colors of each image: output color c is 127.5 + sum_k matrix[c, k] (color k - 127.5).

    Values may leave 0..255; they are not clipped, which would merge different colors.

    Args:
        images: brightness in 0..255, [n, ..., 3 k], where each group of 3 values is one pixel.
        matrices: [n, 3, 3], see `random_color_matrices`.

    Returns:
        Floats of the same shape.
    """
    if images.shape[-1] % RGB:
        raise UserError(f"expected images [n, ..., 3 k] of RGB pixels, got {tuple(images.shape)}")
    if matrices.shape != (len(images), RGB, RGB):
        raise UserError(f"expected matrices {(len(images), RGB, RGB)}, got {tuple(matrices.shape)}")
    pixels = images.to(matrices.dtype).reshape(len(images), -1, RGB) - MIDDLE
    return (pixels @ matrices.transpose(1, 2) + MIDDLE).reshape(images.shape)
