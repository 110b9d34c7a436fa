"""What an agent sees of observations while it learns: shifted, and for a part of a batch strongly augmented."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pisces.augment import apply_kernel, random_kernel, shift_frames

RGB = 3


class Views:
    """Augments observations by offsets and kernels that it samples.

    Args:
        padding: the largest shift.
        strong_share: the share of a batch that a random convolution changes.
        device: the torch device.
    """

    def __init__(self, padding: int, strong_share: float, device: torch.device) -> None:
        self._padding, self._strong_share, self._device = padding, strong_share, device

    def shifted(self, observations: NDArray[np.uint8], rng: np.random.Generator, copies: int = 1) -> Tensor:
        """Shifts copies of observations [n, H, W, C], each on its own: [copies n, C, H, W], copy after copy."""
        frames = torch.from_numpy(observations).to(self._device)
        repeated = frames if copies == 1 else frames.repeat(copies, 1, 1, 1)
        return shift_frames(repeated, self._offsets(rng, len(repeated)), self._padding)

    def shifted_alike(self, frames: Tensor, rng: np.random.Generator) -> Tensor:
        """Shifts all observations [n, H, W, C] by one offset: [n, C, H, W]."""
        return shift_frames(frames.to(self._device), self._offsets(rng, 1), self._padding)

    def strong(self, images: Tensor, rng: np.random.Generator) -> Tensor:
        """Convolves the first part of images [n, C, H, W] with one random kernel, in place."""
        count = round(self._strong_share * len(images))
        if count:
            images[:count] = apply_kernel(images[:count], random_kernel(rng, RGB, 0.0)).clamp_(0, 255)
        return images

    def _offsets(self, rng: np.random.Generator, count: int) -> Tensor:
        return torch.from_numpy(rng.integers(0, 2 * self._padding + 1, (2, count))).to(self._device)
