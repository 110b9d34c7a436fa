"""Gathering rows of tables, with gradients: the moves between layers of the patch-wise path.

torch's own indexing spends most of its time on generality (and its gradient on sorting or atomics); these loops know
that indices are small, in range, and -1 where a patch reaches outside the image.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

IntArray = NDArray[np.int32]
FloatArray = NDArray[np.float32]


def gather_rows(table: Tensor, index: IntArray) -> Tensor:
    """Puts rows side by side: out[n] = concatenation over k of table[index[n, k]], zeros where the index is -1.

    Args:
        table: [R, C], float32.
        index: [N, K].

    Returns:
        [N, K * C].
    """
    return _GatherRows.apply(table, index)  # type: ignore[no-untyped-call,no-any-return]


def sum_rows_relu(table: Tensor, bias: Tensor, index: IntArray) -> Tensor:
    """Adds up one row per slot and rectifies: out[n] = relu(bias + sum over k of table[index[n, k], k]).

    Args:
        table: [R, K, C], float32; entry (r, k) is what row r contributes in slot k.
        bias: [C].
        index: [N, K], -1 for slots that contribute nothing.

    Returns:
        [N, C].
    """
    return _SumRowsRelu.apply(table, bias, index)  # type: ignore[no-untyped-call,no-any-return]


class _GatherRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, index: IntArray) -> Tensor:
        ctx.index, ctx.shape = index, table.shape
        out = torch.empty(index.shape[0], index.shape[1] * table.shape[1])
        _gather(table.detach().contiguous().numpy(), index, out.numpy())
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        total = torch.zeros(ctx.shape)
        _scatter(gradients[0].contiguous().numpy(), ctx.index, total.numpy())
        return total, None


class _SumRowsRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, bias: Tensor, index: IntArray) -> Tensor:
        out = torch.empty(len(index), table.shape[2])
        _sum_relu(table.detach().contiguous().numpy(), bias.detach().numpy(), index, out.numpy())
        ctx.index, ctx.shape = index, table.shape
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        (out,) = ctx.saved_tensors
        total, of_bias = torch.zeros(ctx.shape), torch.zeros(ctx.shape[2])
        _scatter_slots(gradients[0].contiguous().numpy(), out.numpy(), ctx.index, total.numpy(), of_bias.numpy())
        return total, of_bias, None


def add_rows(out: Tensor, table: Tensor, index: IntArray) -> None:
    """Adds rows of a table in place, without gradient: out[n] += table[index[n]].

    Args:
        out: [N, C].
        table: [R, C].
        index: [N].
    """
    _add_rows(out.numpy(), table.numpy(), index)


@numba.njit(cache=True, nogil=True)
def _add_rows(out: FloatArray, table: FloatArray, index: IntArray) -> None:
    for n in range(index.shape[0]):
        row = index[n]
        for c in range(out.shape[1]):
            out[n, c] += table[row, c]


@numba.njit(cache=True, nogil=True)
def _gather(table: FloatArray, index: IntArray, out: FloatArray) -> None:
    width = table.shape[1]
    for n in range(index.shape[0]):
        for k in range(index.shape[1]):
            row = index[n, k]
            start = k * width
            if row < 0:
                for c in range(width):
                    out[n, start + c] = 0.0
            else:
                for c in range(width):
                    out[n, start + c] = table[row, c]


@numba.njit(cache=True, nogil=True)
def _scatter(gradient: FloatArray, index: IntArray, total: FloatArray) -> None:
    width = total.shape[1]
    for n in range(index.shape[0]):
        for k in range(index.shape[1]):
            row = index[n, k]
            if row >= 0:
                start = k * width
                for c in range(width):
                    total[row, c] += gradient[n, start + c]


@numba.njit(cache=True, nogil=True)
def _sum_relu(table: FloatArray, bias: FloatArray, index: IntArray, out: FloatArray) -> None:
    width = table.shape[2]
    for n in range(index.shape[0]):
        for c in range(width):
            out[n, c] = bias[c]
        for k in range(index.shape[1]):
            row = index[n, k]
            if row >= 0:
                for c in range(width):
                    out[n, c] += table[row, k, c]
        for c in range(width):
            out[n, c] = max(out[n, c], np.float32(0.0))


@numba.njit(cache=True, nogil=True)
def _scatter_slots(gradient: FloatArray, out: FloatArray, index: IntArray, total: FloatArray, bias: FloatArray) -> None:
    width = gradient.shape[1]
    active = np.empty(width, dtype=np.float32)
    for n in range(index.shape[0]):
        for c in range(width):
            active[c] = gradient[n, c] if out[n, c] > 0 else np.float32(0.0)
            bias[c] += active[c]
        for k in range(index.shape[1]):
            row = index[n, k]
            if row >= 0:
                for c in range(width):
                    total[row, k, c] += active[c]
