"""The network of the cloning agent."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

CHANNELS, BLOCK, FEATURES = 16, 3, 64
"""Channels of a cell, width and height of a block of cells, and width of the features."""


class CloningNetwork(nn.Module):
    """Two linear layers for each cell of a grid world, one for each block of 3 x 3 cells, one for all.

    Layers of disjoint blocks are convolutions whose stride is their width, computed as matrix products, which are
    faster than convolutions of few channels.

    Args:
        shape: height, width and channels of observations.
        actions: number of actions.
        cell: width and height of a cell in pixels.
        layer_norm: whether the features are normalized (LayerNorm).
    """

    def __init__(self, shape: tuple[int, ...], actions: int, cell: int, layer_norm: bool = True) -> None:
        super().__init__()
        height, width, channels = shape
        blocks = -(-height // cell // BLOCK) * -(-width // cell // BLOCK)
        self.encoder = nn.Sequential(
            _Centered(),
            nn.Linear(channels * cell * cell, CHANNELS),
            nn.ReLU(),
            nn.Linear(CHANNELS, CHANNELS),
            nn.ReLU(),
            _Blocks(BLOCK),
            nn.Linear(BLOCK * BLOCK * CHANNELS, 2 * CHANNELS),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(2 * CHANNELS * blocks, FEATURES),
            nn.LayerNorm(FEATURES) if layer_norm else nn.Identity(),
            nn.ReLU(),
        )
        self.policy = nn.Linear(FEATURES, actions)

    def represent(self, cells: Tensor) -> Tensor:
        """Features [n, 64] of what `as_cells` returns."""
        features: Tensor = self.encoder(cells)
        return features

    def forward(self, cells: Tensor) -> Tensor:
        """Logits [n, A] of what `as_cells` returns."""
        logits: Tensor = self.policy(self.represent(cells))
        return logits


class _Centered(nn.Module):
    """Maps brightness from 0..255 to -1..1."""

    def forward(self, cells: Tensor) -> Tensor:
        return (cells.to(torch.float32) - 127.5) / 127.5


class _Blocks(nn.Module):
    """Joins the values of blocks of cells, see `join_blocks`."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, cells: Tensor) -> Tensor:
        return join_blocks(cells, self.size)


def join_blocks(images: Tensor, size: int) -> Tensor:
    """Joins the values of blocks of an image: [n, H, W, C] to [n, ceil(H / size), ceil(W / size), size * size * C].

    Images are padded with zeros below and to the right.
    """
    n, height, width, channels = images.shape
    if height % size or width % size:
        images = functional.pad(images, (0, 0, 0, -width % size, 0, -height % size))
    rows, columns = images.shape[1] // size, images.shape[2] // size
    parts = images.reshape(n, rows, size, columns, size, channels).transpose(2, 3)
    return parts.reshape(n, rows, columns, size * size * channels)


def as_cells(observations: NDArray[np.uint8], cell: int) -> Tensor:
    """Converts observations [n, H, W, C] to the network's input, uint8 [n, H / cell, W / cell, cell * cell * C]."""
    return join_blocks(torch.from_numpy(observations), cell)
