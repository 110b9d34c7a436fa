"""The network of the jumping task."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

REPRESENTATION = 256
ACTIONS = 2


class JumpingNetwork(nn.Module):
    """The jumping task's network (App. F, arXiv:2101.05265): three convolutions, a representation, a linear policy.

    60 x 60 images shrink to 15, 8 and 8 pixels; paddings are those of TensorFlow's 'same'. Weights start
    Glorot-uniform, biases at zero.

    Args:
        channels: channels of the stacked frames, 2 for gray and 6 for RGB.
        generator: draws the initial weights.
    """

    def __init__(self, channels: int = 2, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 32, 8, stride=4)
        self.conv2 = nn.Conv2d(32, 64, 4, stride=2)
        self.conv3 = nn.Conv2d(64, 64, 3)
        self.hidden = nn.Linear(8 * 8 * 64, REPRESENTATION)
        self.policy = nn.Linear(REPRESENTATION, ACTIONS)
        for layer in (self.conv1, self.conv2, self.conv3, self.hidden, self.policy):
            nn.init.xavier_uniform_(layer.weight, generator=generator)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def represent(self, images: Tensor) -> Tensor:
        """Maps images [n, channels, 60, 60] to representations [n, 256]."""
        features = torch.relu(self.conv1(functional.pad(images, (2, 2, 2, 2))))
        features = torch.relu(self.conv2(functional.pad(features, (1, 2, 1, 2))))
        features = torch.relu(self.conv3(functional.pad(features, (1, 1, 1, 1))))
        # Pixel by pixel, channels innermost: the order in which the patch-wise path builds the same rows.
        return torch.relu(self.hidden(features.permute(0, 2, 3, 1).flatten(1)))

    def forward(self, images: Tensor) -> Tensor:
        """Maps images [n, channels, 60, 60] to action logits [n, 2]."""
        logits: Tensor = self.policy(self.represent(images))
        return logits
