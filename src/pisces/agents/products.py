"""Matrix products of layers by oneDNN, which uses AVX-512 on any CPU that has it.

torch multiplies float32 matrices by MKL, whose kernels for CPUs of other makers stop at AVX2: on an AMD EPYC with
AVX-512 they reach less than half the speed. torch offers oneDNN's product for inference; here it has gradients.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Same as `torch.nn.functional.linear` for matrices, faster on some CPUs.

    Args:
        inputs: [N, K].
        weight: [M, K].
        bias: [M].

    Returns:
        inputs @ weight^T + bias, [N, M].
    """
    fits = inputs.device.type == "cpu" and inputs.dtype == torch.float32 and inputs.numel() > 0
    if fits and _available():
        return _Linear.apply(inputs, weight, bias)  # type: ignore[no-untyped-call,no-any-return]
    return functional.linear(inputs, weight, bias)


@cache
def _available() -> bool:
    built_in = bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]
    return built_in and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def _product(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if not (weight.is_contiguous() or weight.t().is_contiguous()):
        weight = weight.contiguous()  # oneDNN's product of a slice is hundreds of times slower
    product: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, "none", [], "")
    return product


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        return _product(inputs, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        inputs, weight = ctx.saved_tensors
        (gradient,) = gradients
        of_inputs, of_weight, of_bias = ctx.needs_input_grad
        return (
            _product(gradient, weight.t()) if of_inputs else None,
            _weight_gradient(gradient, inputs) if of_weight else None,
            gradient.sum(dim=0) if of_bias else None,
        )


def _weight_gradient(gradient: Tensor, inputs: Tensor) -> Tensor:
    """gradient^T @ inputs; oneDNN's first factor is copied to transpose it, so the smaller matrix comes first."""
    if gradient.shape[1] <= inputs.shape[1]:
        return _product(gradient.t(), inputs.t())
    return _product(inputs.t(), gradient.t()).t()
