"""Ways to represent a data set's observations: on distinct patches or rows (CPU), or as plain images (any device)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pisces.agents.imitation.networks import JumpingNetwork
from pisces.agents.imitation.patches import Selection, build_index, select
from pisces.agents.imitation.patchwise import represent_many, represent_selection
from pisces.agents.imitation.row_network import RowEncoder, RowNetwork
from pisces.agents.imitation.settings import Layout
from pisces.augment import apply_kernel
from pisces.envs.jumping.render import PIXEL_SCALE

IntArray = NDArray[np.int64]
Network = JumpingNetwork | RowNetwork
CHUNK = 256


class Encoder(Protocol):
    """Represents observations of a fixed data set, which it knows by number."""

    def represent(self, network: Network, groups: Sequence[IntArray], kernels: Sequence[Tensor | None]) -> Tensor:
        """Representations of several groups, each with its own kernel, one after the other; gradients flow."""

    def represent_all(self, network: Network, kernel: Tensor | None) -> Tensor:
        """Representations of the whole data set with one kernel, without gradients."""


class PatchEncoder:
    """Represents observations through their distinct patches; see `pisces.agents.imitation.patchwise`."""

    def __init__(self, observations: NDArray[np.uint8]) -> None:
        self._index = build_index(observations)

    @cached_property
    def _everything(self) -> Selection:
        return select(self._index, [np.arange(len(self._index))])

    def represent(
        self, network: JumpingNetwork, groups: Sequence[IntArray], kernels: Sequence[Tensor | None]
    ) -> Tensor:
        """See `Encoder.represent`."""
        return represent_selection(network, self._index, select(self._index, groups), kernels)

    def represent_all(self, network: JumpingNetwork, kernel: Tensor | None) -> Tensor:
        """See `Encoder.represent_all`."""
        return represent_many(network, self._index, self._everything, kernel)


class ImageEncoder:
    """Represents observations as images with plain convolutions, on any device."""

    def __init__(self, observations: NDArray[np.uint8], device: torch.device) -> None:
        self._observations, self._device = observations, device

    @cached_property
    def _images(self) -> Tensor:
        pixels = torch.from_numpy(self._observations).to(self._device)
        return pixels.permute(0, 3, 1, 2).contiguous()

    def _augmented(self, numbers: IntArray | slice, kernel: Tensor | None) -> Tensor:
        chosen = torch.from_numpy(numbers).to(self._device) if isinstance(numbers, np.ndarray) else numbers
        return apply_kernel(self._images[chosen] * float(PIXEL_SCALE), kernel)

    def represent(self, network: Network, groups: Sequence[IntArray], kernels: Sequence[Tensor | None]) -> Tensor:
        """See `Encoder.represent`."""
        images = [self._augmented(group, kernel) for group, kernel in zip(groups, kernels, strict=True)]
        return network.represent(torch.cat(images))

    @torch.no_grad()
    def represent_all(self, network: Network, kernel: Tensor | None) -> Tensor:
        """See `Encoder.represent_all`."""
        starts = range(0, len(self._observations), CHUNK)
        return torch.cat([network.represent(self._augmented(slice(s, s + CHUNK), kernel)) for s in starts])


class DistinctEncoder:
    """Represents observations through their distinct patches, or rows for a network that sees rows."""

    def __init__(self, observations: NDArray[np.uint8]) -> None:
        self._observations = observations

    @cached_property
    def _patches(self) -> PatchEncoder:
        return PatchEncoder(self._observations)

    @cached_property
    def _rows(self) -> RowEncoder:
        return RowEncoder(self._observations)

    def represent(self, network: Network, groups: Sequence[IntArray], kernels: Sequence[Tensor | None]) -> Tensor:
        """See `Encoder.represent`."""
        if isinstance(network, RowNetwork):
            return self._rows.represent(network, groups, kernels)
        return self._patches.represent(network, groups, kernels)

    def represent_all(self, network: Network, kernel: Tensor | None) -> Tensor:
        """See `Encoder.represent_all`."""
        if isinstance(network, RowNetwork):
            return self._rows.represent_all(network, kernel)
        return self._patches.represent_all(network, kernel)


def make_encoder(observations: NDArray[np.uint8], device: torch.device) -> Encoder:
    """Chooses the faster encoder for the device."""
    return DistinctEncoder(observations) if device.type == "cpu" else ImageEncoder(observations, device)


def make_network(layout: Layout, channels: int, generator: torch.Generator | None = None) -> Network:
    """The jumping task's network, or the published one for colored frames, which sees rows."""
    return RowNetwork(generator) if layout == "rows" else JumpingNetwork(channels, generator)
