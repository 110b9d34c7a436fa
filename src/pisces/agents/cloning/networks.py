"""The network of the cloning agent."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

CHANNELS, FEATURES = 16, 64
"""Channels of the convolution and width of the features."""


class CloningNetwork(nn.Module):
    """A linear map of each cell of a grid world, a convolution over cells, a linear layer, and a linear policy.

    Args:
        shape: height, width and channels of observations.
        actions: number of actions.
        cell: width and height of a cell in pixels.
    """

    def __init__(self, shape: tuple[int, ...], actions: int, cell: int) -> None:
        super().__init__()
        height, width, channels = shape
        self.encoder = nn.Sequential(
            nn.Conv2d(channels, CHANNELS, cell, stride=cell),
            nn.ReLU(),
            nn.Conv2d(CHANNELS, CHANNELS, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(CHANNELS * -(-height // cell // 2) * -(-width // cell // 2), FEATURES),
            nn.ReLU(),
        )
        self.policy = nn.Linear(FEATURES, actions)

    def represent(self, images: Tensor) -> Tensor:
        """Features [n, 64] of images [n, C, H, W]."""
        features: Tensor = self.encoder(images)
        return features

    def forward(self, images: Tensor) -> Tensor:
        """Logits [n, A] of images [n, C, H, W]."""
        logits: Tensor = self.policy(self.represent(images))
        return logits


def channels_first(observations: NDArray[np.uint8]) -> Tensor:
    """Converts observations [n, H, W, C] to [n, C, H, W]."""
    return torch.from_numpy(np.ascontiguousarray(np.moveaxis(observations, 3, 1)))


def as_images(frames: Tensor) -> Tensor:
    """Converts uint8 frames to images between 0 and 1."""
    return frames.to(torch.float32) / 255
