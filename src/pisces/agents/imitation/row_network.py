"""The published network for colored frames, which sees an image as a batch of rows.

The published code stacks the two RGB frames of an observation to [60, 60, 3, 2]. Its convolutions take the last three
axes for rows, columns and channels, and so move along an image's columns and its colors, one row at a time. The layers
are the jumping network's. Of the square kernels only some columns ever meet anything but padding, those numbered 2 to 4
in the first layer (the three colors) and 1 in the others, so that what is left are convolutions along the row. The
hidden layer sees all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from pisces.agents.imitation.gather import gather_rows
from pisces.agents.imitation.networks import ACTIONS, REPRESENTATION
from pisces.agents.imitation.patches import distinct_pieces, renumber
from pisces.augment import apply_kernel
from pisces.envs.jumping.render import PIXEL_SCALE
from pisces.envs.jumping.tasks import SCREEN
from pisces.errors import UserError

IntArray = NDArray[np.int64]
CHANNELS = 6
FEATURES = 8 * 64
CHUNK = 1024
"""Observations that are represented at once, which bounds memory: each adds up 60 rows of 256 numbers."""


class RowNetwork(nn.Module):
    """Three convolutions along each row of two RGB frames, a representation of all rows, a linear policy.

    Rows shrink from 60 to 15, 8 and 8 columns; paddings are those of TensorFlow's 'same'. Weights start Glorot-uniform
    with the fans of the square kernels that the published network declares, biases at zero.

    Args:
        generator: draws the initial weights.
    """

    def __init__(self, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(CHANNELS, 32, 8, stride=4)
        self.conv2 = nn.Conv1d(32, 64, 4, stride=2)
        self.conv3 = nn.Conv1d(64, 64, 3)
        # One matrix per row of the image, so that the fast path below needs no slices of a larger one.
        self.hidden_weight = nn.Parameter(torch.empty(SCREEN, FEATURES, REPRESENTATION))
        self.hidden_bias = nn.Parameter(torch.empty(REPRESENTATION))
        self.policy = nn.Linear(REPRESENTATION, ACTIONS)
        for tensor, fans in (
            (self.conv1.weight, 8 * 8 * (2 + 32)),
            (self.conv2.weight, 4 * 4 * (32 + 64)),
            (self.conv3.weight, 3 * 3 * (64 + 64)),
            (self.hidden_weight, SCREEN * FEATURES + REPRESENTATION),
            (self.policy.weight, REPRESENTATION + ACTIONS),
        ):
            nn.init.uniform_(tensor, -sqrt(6 / fans), sqrt(6 / fans), generator=generator)
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)

    def row_features(self, rows: Tensor) -> Tensor:
        """Maps single rows [n, 6, 60] to features [n, 512], columns outermost."""
        features = torch.relu(self.conv1(functional.pad(rows, (2, 2))))
        features = torch.relu(self.conv2(functional.pad(features, (1, 2))))
        features = torch.relu(self.conv3(functional.pad(features, (1, 1))))
        return features.transpose(1, 2).flatten(1)

    def represent(self, images: Tensor) -> Tensor:
        """Maps images [n, 6, 60, 60] to representations [n, 256]."""
        rows = images.transpose(1, 2).flatten(0, 1)
        features = self.row_features(rows).reshape(len(images), -1)
        return torch.relu(features @ self.hidden_weight.flatten(0, 1) + self.hidden_bias)

    def forward(self, images: Tensor) -> Tensor:
        """Maps images [n, 6, 60, 60] to action logits [n, 2]."""
        logits: Tensor = self.policy(self.represent(images))
        return logits


class RowEncoder:
    """Represents observations with a `RowNetwork`, computing equal rows once.

    A row is taken together with the one below it, since RandConv may look at both.

    Args:
        observations: stored frames, uint8 [n, 60, 60, 6].
    """

    def __init__(self, observations: NDArray[np.uint8]) -> None:
        if observations.shape[3] != CHANNELS:
            raise UserError(f"expected two RGB frames for network=rows, got {observations.shape[3]} channels")
        pairs, numbers = distinct_pieces(observations, _with_row_below)
        images = pairs.reshape(len(pairs), 2, SCREEN, CHANNELS)
        self._pairs = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
        self._numbers = numbers.reshape(len(observations), SCREEN)

    def represent(self, network: RowNetwork, groups: Sequence[IntArray], kernels: Sequence[Tensor | None]) -> Tensor:
        """See `pisces.agents.imitation.encoders.Encoder.represent`."""
        rows, numbers = [], []
        count = 0
        for group, kernel in zip(groups, kernels, strict=True):
            used, compact = renumber(self._numbers[group], len(self._pairs))
            rows.append(apply_kernel(self._pairs[torch.from_numpy(used)] * float(PIXEL_SCALE), kernel)[:, :, 0])
            numbers.append(compact + np.int32(count))
            count += len(used)
        return _combine_rows(network, network.row_features(torch.cat(rows)), np.concatenate(numbers))

    @torch.no_grad()
    def represent_all(self, network: RowNetwork, kernel: Tensor | None) -> Tensor:
        """See `pisces.agents.imitation.encoders.Encoder.represent_all`."""
        everything = np.arange(len(self._numbers))
        chunks = np.split(everything, np.arange(CHUNK, len(everything), CHUNK))
        return torch.cat([self.represent(network, [chunk], [kernel]) for chunk in chunks])


def _combine_rows(network: RowNetwork, features: Tensor, numbers: NDArray[np.int32]) -> Tensor:
    """The hidden layer on images whose rows are known by number: [U, 512] and [n, 60] to [n, 256].

    Its product is taken once per place in the image and distinct row there, and each image adds up its 60 results.
    """
    used: list[NDArray[np.int32]] = []
    places = np.empty(numbers.shape, dtype=np.int64)
    count = 0
    for row in range(SCREEN):
        here, compact = renumber(np.ascontiguousarray(numbers[:, row]), len(features))
        places[:, row] = compact + count
        used.append(here)
        count += len(here)
    inputs = torch.split(gather_rows(features, np.concatenate(used)[:, None]), [len(here) for here in used])
    sums = torch.cat([part @ weight for part, weight in zip(inputs, network.hidden_weight.unbind(), strict=True)])
    total = functional.embedding_bag(torch.from_numpy(places), sums, mode="sum")
    return torch.relu(total + network.hidden_bias)


def _with_row_below(observations: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Each row of images [n, 60, 60, 6] and the one below it, [n, 60, 1, 2, 60, 6]; below the last one is nothing."""
    below = np.concatenate([observations[:, 1:], np.zeros_like(observations[:, :1])], axis=1)
    return np.stack([observations, below], axis=2)[:, :, None]
