"""The jumping network on distinct patches only: the same numbers as its plain `represent`, several times faster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pisces.agents.imitation.gather import add_rows, gather_rows, sum_rows_relu
from pisces.agents.imitation.networks import JumpingNetwork
from pisces.agents.imitation.patches import FIRST_SIZE, OUTSIDE, PatchIndex, Selection, renumber
from pisces.agents.products import linear
from pisces.envs.jumping.render import PIXEL_SCALE

FloatArray = NDArray[np.float32]
BLOCK = 64
"""Products have a multiple of this many rows: oneDNN compiles one for each new size, which takes half a millisecond."""


def represent_selection(
    network: JumpingNetwork, index: PatchIndex, selection: Selection, kernels: Sequence[Tensor | None]
) -> Tensor:
    """Representations of the selected observations, equal to ``network.represent(apply_kernel(images, kernel))``.

    Each layer runs once per distinct patch. The third convolution is turned around: what each input contributes to
    each of its nine places is one matrix product over distinct inputs, and a patch adds up nine of those rows.

    Args:
        network: the network; gradients flow to its parameters.
        index: the distinct patches of the data set.
        selection: what the batch needs of it.
        kernels: RandConv's kernel of each group of the selection, None for unchanged images.

    Returns:
        Representations, one row per selected observation, [N, 256].
    """
    features = _third_layer(network, index, selection, kernels)
    return torch.relu(linear(gather_rows(features, selection.third), network.hidden.weight, network.hidden.bias))


@torch.no_grad()
def represent_many(network: JumpingNetwork, index: PatchIndex, selection: Selection, kernel: Tensor | None) -> Tensor:
    """Representations of many observations with one kernel, without gradients.

    Many observations share the third layer's features at a pixel; the hidden layer's product is therefore taken over
    the distinct features of one pixel at a time, and each observation adds up its 64 rows.

    Args:
        network: the network.
        index: the distinct patches of the data set.
        selection: one group of observations.
        kernel: RandConv's kernel, None for unchanged images.

    Returns:
        Representations, [N, 256].
    """
    features = _third_layer(network, index, selection, (kernel,))
    hidden = network.hidden.bias.repeat(len(selection.third), 1)
    width = features.shape[1]
    for pixel, numbers in enumerate(selection.third.T):
        used, places = renumber(numbers, len(features))
        weight = network.hidden.weight[:, pixel * width : (pixel + 1) * width]
        add_rows(hidden, features[torch.from_numpy(used)] @ weight.T, places)
    return torch.relu(hidden)


def _third_layer(
    network: JumpingNetwork, index: PatchIndex, selection: Selection, kernels: Sequence[Tensor | None]
) -> Tensor:
    groups = [
        convolved_pieces(index.pixels, used, kernel) for used, kernel in zip(selection.pixels, kernels, strict=True)
    ]
    pieces = torch.from_numpy(_whole_blocks(np.concatenate(groups), 0.0))
    first = torch.relu(linear(pieces, _rows(network.conv1.weight), network.conv1.bias))
    inputs = gather_rows(first, _whole_blocks(selection.first, -1))
    second = torch.relu(linear(inputs, _rows(network.conv2.weight), network.conv2.bias))
    weight, bias = network.conv3.weight, network.conv3.bias
    assert bias is not None
    out, channels = weight.shape[:2]
    contributions = linear(second, weight.permute(2, 3, 0, 1).reshape(-1, channels))
    return sum_rows_relu(contributions.reshape(len(second), -1, out), bias, selection.second)


def _whole_blocks(rows: NDArray[Any], value: float) -> NDArray[Any]:
    """Appends rows of a value, which no later layer uses, up to a multiple of `BLOCK` rows."""
    return np.pad(rows, ((0, -len(rows) % BLOCK), (0, 0)), constant_values=value)


def _rows(weight: Tensor) -> Tensor:
    """Lays out a convolution's weights [out, in, h, w] as a matrix [out, h * w * in], channels innermost."""
    return weight.permute(0, 2, 3, 1).reshape(len(weight), -1)


def convolved_pieces(pixels: NDArray[np.uint8], used: NDArray[np.int32], kernel: Tensor | None) -> FloatArray:
    """Applies RandConv's kernel to 9 x 9 stored pieces; returns the 8 x 8 results as rows [U, 64 * channels]."""
    channels = pixels.shape[3]
    out = np.empty((len(used), FIRST_SIZE * FIRST_SIZE * channels), dtype=np.float32)
    if kernel is None:
        identity = np.zeros((1, 1, 2, 2), dtype=np.float32)
        identity[0, 0, 0, 0] = 1.0
        _convolve(pixels, used, identity, out)
    else:
        _convolve(pixels, used, kernel.numpy(), out)
    return out


@numba.njit(cache=True, nogil=True)
def _convolve(pixels: NDArray[np.uint8], used: NDArray[np.int32], kernel: FloatArray, out: FloatArray) -> None:
    size, stacked, channels = pixels.shape[1], pixels.shape[3], kernel.shape[0]
    piece = np.empty((size, size, stacked), dtype=np.float32)
    for n in range(used.shape[0]):
        raw = pixels[used[n]]
        for y in range(size):
            for x in range(size):
                for c in range(stacked):
                    piece[y, x, c] = np.float32(0.0) if raw[y, x, c] == OUTSIDE else raw[y, x, c] * PIXEL_SCALE
        position = 0
        for y in range(size - 1):
            for x in range(size - 1):
                inside = raw[y, x, 0] != OUTSIDE
                for c in range(stacked):
                    start = c - c % channels
                    total = np.float32(0.0)
                    if inside:
                        for i in range(channels):
                            total += kernel[c - start, i, 0, 0] * piece[y, x, start + i]
                            total += kernel[c - start, i, 0, 1] * piece[y, x + 1, start + i]
                            total += kernel[c - start, i, 1, 0] * piece[y + 1, x, start + i]
                            total += kernel[c - start, i, 1, 1] * piece[y + 1, x + 1, start + i]
                    out[n, position] = total
                    position += 1
