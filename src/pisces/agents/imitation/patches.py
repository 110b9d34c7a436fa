"""Which patches of which frames are the same: an index over a fixed set of observations.

Frames of the jumping task repeat each other: most of the patches that a convolution sees occur many times. The index
numbers the distinct patches of each layer once per data set; a `Selection` then names those that a batch needs. A patch
of a layer is the tuple of numbers of the patches below it: equal numbers mean equal activations, whatever the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

IntArray = NDArray[np.int32]

OUTSIDE = 255
"""Stands for pixels outside the screen, which stay zero under any augmentation."""
FIRST_SIZE, FIRST_STRIDE, FIRST_PADDING = 8, 4, 2
RAW_SIZE = FIRST_SIZE + 1
"""RandConv looks one pixel further to the right and down."""
SECOND_SIZE, SECOND_STRIDE, SECOND_PADDING = 4, 2, (1, 2)
THIRD_SIZE, THIRD_PADDING = 3, (1, 1)
CHUNK = 512


@dataclass(frozen=True)
class PatchIndex:
    """The distinct patches of a set of observations, layer by layer."""

    pixels: NDArray[np.uint8]
    """Distinct 9 x 9 pieces of the observations that the first convolution sees, as stored, [P, 9, 9, channels]."""
    first: IntArray
    """Distinct inputs of the second convolution: numbers of pieces, -1 for padding, [P2, 16]."""
    second: IntArray
    """Distinct inputs of the third convolution: numbers of rows of `first`, -1 for padding, [P3, 9]."""
    third: IntArray
    """Inputs of the hidden layer for every observation: numbers of rows of `second`, [n, 64]."""

    def __len__(self) -> int:
        return len(self.third)


@dataclass(frozen=True)
class Selection:
    """What a batch needs of a `PatchIndex`; several groups of observations, each with its own augmentation, in one."""

    pixels: tuple[IntArray, ...]
    """Per group, the numbers of the pieces in use; the groups' rows follow each other."""
    first: IntArray
    """Inputs of the second convolution as rows of the groups' pieces, [U2, 16]."""
    second: IntArray
    """Inputs of the third convolution as rows of `first`, [U3, 9]."""
    third: IntArray
    """Inputs of the hidden layer as rows of `second`, one row per observation of each group in turn, [N, 64]."""


def build_index(observations: NDArray[np.uint8]) -> PatchIndex:
    """Numbers the distinct patches of stored observations, [n, 60, 60, channels]."""
    rows, numbers = distinct_pieces(observations, _pieces)
    pixels = rows.reshape(-1, RAW_SIZE, RAW_SIZE, observations.shape[3])
    first, numbers = _next_layer(numbers, SECOND_SIZE, SECOND_STRIDE, SECOND_PADDING)
    second, numbers = _next_layer(numbers, THIRD_SIZE, 1, THIRD_PADDING)
    return PatchIndex(pixels, first, second, numbers.reshape(len(observations), -1))


def select(index: PatchIndex, groups: Sequence[NDArray[np.int64]]) -> Selection:
    """Names what the given groups of observations (by number) need; every group is renumbered by itself."""
    pixels, first, second, third = [], [], [], []
    pixel_rows = first_rows = second_rows = 0
    for group in groups:
        used3, third_group = renumber(index.third[group], len(index.second))
        used2, second_group = renumber(index.second[used3], len(index.first))
        used1, first_group = renumber(index.first[used2], len(index.pixels))
        pixels.append(used1)
        first.append(_shift(first_group, pixel_rows))
        second.append(_shift(second_group, first_rows))
        third.append(_shift(third_group, second_rows))
        pixel_rows, first_rows, second_rows = pixel_rows + len(used1), first_rows + len(used2), second_rows + len(used3)
    return Selection(tuple(pixels), np.concatenate(first), np.concatenate(second), np.concatenate(third))


def distinct_rows(rows: NDArray[Any]) -> tuple[NDArray[np.int64], IntArray]:
    """Finds equal rows: the positions of one row of each kind, and the number of each row's kind.

    Rows are compared by a 64-bit hash, and then in full against the row that stands for their kind.
    """
    _, kept, numbers = np.unique(_hash_rows(rows), return_index=True, return_inverse=True)
    if not _same_rows(rows, kept, numbers):
        _, kept, numbers = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return kept, numbers.astype(np.int32)


def distinct_pieces(
    observations: NDArray[np.uint8], cut: Callable[[NDArray[np.uint8]], NDArray[np.uint8]]
) -> tuple[NDArray[np.uint8], IntArray]:
    """Finds equal pieces of observations.

    Args:
        observations: stored frames, uint8 [n, 60, 60, channels].
        cut: cuts observations into pieces, [n, down, across, ...].

    Returns:
        The distinct pieces as rows, and the number of each observation's pieces, [n, down, across].
    """
    kinds, numbers = [], []
    offset = 0
    # Chunk by chunk, because all pieces of all observations would take a hundred times their memory.
    for start in range(0, len(observations), CHUNK):
        pieces = cut(observations[start : start + CHUNK])
        rows = pieces.reshape(-1, pieces[0, 0, 0].size)
        kept, inverse = distinct_rows(rows)
        kinds.append(rows[kept])
        numbers.append(inverse.reshape(pieces.shape[:3]) + np.int32(offset))
        offset += len(kept)
    candidates = np.concatenate(kinds)
    kept, inverse = distinct_rows(candidates)
    return candidates[kept], inverse[np.concatenate(numbers)]


def _pieces(observations: NDArray[np.uint8]) -> NDArray[np.uint8]:
    before_after = (FIRST_PADDING, FIRST_PADDING + 1)
    padded = np.pad(observations, ((0, 0), before_after, before_after, (0, 0)), constant_values=OUTSIDE)
    windows = sliding_window_view(padded, (RAW_SIZE, RAW_SIZE), axis=(1, 2))
    strided = windows[:, ::FIRST_STRIDE, ::FIRST_STRIDE]
    return np.ascontiguousarray(strided.transpose(0, 1, 2, 4, 5, 3))


def _next_layer(numbers: IntArray, size: int, stride: int, padding: tuple[int, int]) -> tuple[IntArray, IntArray]:
    padded = np.pad(numbers, ((0, 0), padding, padding), constant_values=-1)
    windows = sliding_window_view(padded, (size, size), axis=(1, 2))[:, ::stride, ::stride]
    rows = np.ascontiguousarray(windows).reshape(-1, size * size)
    kept, kinds = distinct_rows(rows)
    return rows[kept], kinds.reshape(windows.shape[:3])


def _shift(numbers: IntArray, offset: int) -> IntArray:
    return np.where(numbers < 0, numbers, numbers + np.int32(offset))


@numba.njit(cache=True, nogil=True)
def renumber(numbers: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Lists the numbers in use (below `size`), and replaces each by its place in that list; -1 stays."""
    place = np.full(size, -1, dtype=np.int32)
    flat = numbers.ravel()
    for value in flat:
        if value >= 0:
            place[value] = 0
    used = np.empty(size, dtype=np.int32)
    count = 0
    for candidate in range(size):
        if place[candidate] == 0:
            place[candidate] = count
            used[count] = candidate
            count += 1
    compact = np.empty_like(flat)
    for i in range(flat.size):
        compact[i] = place[flat[i]] if flat[i] >= 0 else -1
    return used[:count].copy(), compact.reshape(numbers.shape)


@numba.njit(cache=True, nogil=True)
def _hash_rows(rows: NDArray[Any]) -> NDArray[np.uint64]:
    hashes = np.empty(rows.shape[0], dtype=np.uint64)
    for n in range(rows.shape[0]):
        value = np.uint64(1469598103934665603)
        for k in range(rows.shape[1]):
            value = (value ^ np.uint64(rows[n, k])) * np.uint64(1099511628211)
            value ^= value >> np.uint64(29)
        hashes[n] = value
    return hashes


@numba.njit(cache=True, nogil=True)
def _same_rows(rows: NDArray[Any], kept: NDArray[np.int64], numbers: NDArray[np.int64]) -> bool:
    for n in range(rows.shape[0]):
        other = kept[numbers[n]]
        for k in range(rows.shape[1]):
            if rows[n, k] != rows[other, k]:
                return False
    return True
