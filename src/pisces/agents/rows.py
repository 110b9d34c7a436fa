"""The published network for coloured frames, which sees an image as a batch of rows.

The published code stacks the two RGB frames of an observation to [60, 60, 3, 2]. Its convolutions take the last three
axes for rows, columns and channels, and so move along an image's columns and its colours, one row at a time. The layers
are the jumping network's; of each kernel only the part that meets the three colours (later: the one column that is
left of them) has any effect, and the hidden layer sees all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from pisces.agents.gather import gather_rows
from pisces.agents.networks import ACTIONS, REPRESENTATION
from pisces.agents.patches import distinct_pieces, renumber
from pisces.augment import apply_kernel

IntArray = NDArray[np.int64]
CHANNELS = 6
ROWS = COLUMNS = 60
FEATURES = 8 * 64
CHUNK = 1024


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
        # One matrix per row, which keeps the gradients of the rows apart and in place.
        self.hidden_weight = nn.Parameter(torch.empty(ROWS, FEATURES, REPRESENTATION))
        self.hidden_bias = nn.Parameter(torch.zeros(REPRESENTATION))
        self.policy = nn.Linear(REPRESENTATION, ACTIONS)
        for tensor, fans in (
            (self.conv1.weight, 8 * 8 * (2 + 32)),
            (self.conv2.weight, 4 * 4 * (32 + 64)),
            (self.conv3.weight, 3 * 3 * (64 + 64)),
            (self.hidden_weight, ROWS * FEATURES + REPRESENTATION),
            (self.policy.weight, REPRESENTATION + ACTIONS),
        ):
            nn.init.uniform_(tensor, -sqrt(6 / fans), sqrt(6 / fans), generator=generator)
        for name, bias in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(bias)

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

    def represent_rows(self, features: Tensor, numbers: NDArray[np.int32]) -> Tensor:
        """Representations of images whose rows are known by number, equal to those of `represent`.

        The hidden layer's product is taken once per place in the image and distinct row there, and each image adds up
        its 60 results.

        Args:
            features: features of the distinct rows, [U, 512].
            numbers: the number of each image's rows among them, [n, 60].

        Returns:
            Representations, [n, 256].
        """
        used: list[NDArray[np.int32]] = []
        places = np.empty(numbers.shape, dtype=np.int64)
        for row in range(ROWS):
            here, compact = renumber(np.ascontiguousarray(numbers[:, row]), len(features))
            places[:, row] = compact + sum(len(before) for before in used)
            used.append(here)
        inputs = torch.split(gather_rows(features, np.concatenate(used)[:, None]), [len(here) for here in used])
        sums = torch.cat([part @ weight for part, weight in zip(inputs, self.hidden_weight.unbind(), strict=True)])
        total = functional.embedding_bag(torch.from_numpy(places), sums, mode="sum")
        return torch.relu(total + self.hidden_bias)

    def forward(self, images: Tensor) -> Tensor:
        """Maps images [n, 6, 60, 60] to action logits [n, 2]."""
        logits: Tensor = self.policy(self.represent(images))
        return logits


class RowEncoder:
    """Represents observations with a `RowNetwork`, computing equal rows once.

    A row is taken together with the one below it, since RandConv may look at both.

    Args:
        observations: in halves, [n, 60, 60, 6].
    """

    def __init__(self, observations: NDArray[np.uint8]) -> None:
        pairs, numbers = distinct_pieces(observations, _with_row_below)
        self._numbers = numbers.reshape(-1, ROWS)
        self._pairs = torch.from_numpy(pairs.reshape(-1, 2, COLUMNS, CHANNELS)).permute(0, 3, 1, 2).contiguous()

    def represent(self, network: RowNetwork, groups: Sequence[IntArray], kernels: Sequence[Tensor | None]) -> Tensor:
        """See `pisces.agents.encoders.Encoder.represent`."""
        rows, numbers = [], []
        count = 0
        for group, kernel in zip(groups, kernels, strict=True):
            used, compact = renumber(self._numbers[group], len(self._pairs))
            rows.append(apply_kernel(self._pairs[torch.from_numpy(used)] * 0.5, kernel)[:, :, 0])
            numbers.append(compact + np.int32(count))
            count += len(used)
        return network.represent_rows(network.row_features(torch.cat(rows)), np.concatenate(numbers))

    @torch.no_grad()
    def represent_all(self, network: RowNetwork, kernel: Tensor | None) -> Tensor:
        """See `pisces.agents.encoders.Encoder.represent_all`."""
        everything = np.arange(len(self._numbers))
        chunks = np.split(everything, np.arange(CHUNK, len(everything), CHUNK))
        return torch.cat([self.represent(network, [chunk], [kernel]) for chunk in chunks])


def _with_row_below(observations: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Each row of images [n, 60, 60, 6] and the one below it, [n, 60, 1, 2, 60, 6]; below the last one is nothing."""
    below = np.concatenate([observations[:, 1:], np.zeros_like(observations[:, :1])], axis=1)
    return np.stack([observations, below], axis=2)[:, :, None]
