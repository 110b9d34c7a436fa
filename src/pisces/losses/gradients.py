"""Gradients of an auxiliary loss beside those of the main one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pisces.errors import UserError

SHORTEST = 1e-12
"""Gradients shorter than this have no direction."""


def backward_with_auxiliary(
    main: Tensor,
    auxiliary: Tensor,
    shared: Sequence[nn.Parameter],
    own: Sequence[nn.Parameter] = (),
    *,
    weight: float = 1.0,
    relative: bool = True,
    project: bool = False,
) -> None:
    """Adds the gradients of a main loss and of an auxiliary one to the parameters, in place of `backward`.

    With g the gradient of the main loss and a that of the auxiliary loss on the shared parameters, these get

        g + weight * (|g| / |a|) * a      if `relative`, so that the auxiliary loss never outweighs the main one;
        g + weight * a                    otherwise.

    The auxiliary loss's own parameters get its plain gradient: an optimizer like Adam adapts to its length.

    Args:
        main: the agent's loss, a scalar.
        auxiliary: the auxiliary loss, a scalar; one without a gradient changes nothing.
        shared: the parameters that both losses train, such as those of an encoder.
        own: the parameters that only the auxiliary loss trains, such as those of its projection.
        weight: of the auxiliary loss, at least 0.
        relative: whether the weight is relative to the lengths of both gradients.
        project: whether to remove the part of `a` that points against `g` (arXiv:2001.06782).
    """
    if not weight >= 0:
        raise UserError(f"weight must be at least 0, got {weight}")
    shared = list(shared)
    main.backward()  # type: ignore[no-untyped-call]
    if not (auxiliary.requires_grad and weight):
        return
    found = torch.autograd.grad(auxiliary, [*shared, *own], allow_unused=True)
    additions = [torch.zeros_like(p) if a is None else a for p, a in zip(shared, found, strict=False)]
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in shared]
    if project:
        additions = _without_conflict(additions, gradients)
    factor = torch.as_tensor(weight)
    if relative:
        lengths = [torch.sqrt(_dot(values, values)) for values in (gradients, additions)]
        factor = weight * lengths[0] / lengths[1].clamp_min(SHORTEST)
    for parameter, gradient, addition in zip(shared, gradients, additions, strict=True):
        parameter.grad = gradient + factor * addition
    for parameter, gradient_own in zip(own, found[len(shared) :], strict=True):
        parameter.grad = gradient_own


def _dot(x: Sequence[Tensor], y: Sequence[Tensor]) -> Tensor:
    return torch.stack([(one * other).sum() for one, other in zip(x, y, strict=True)]).sum()


def _without_conflict(additions: Sequence[Tensor], gradients: Sequence[Tensor]) -> list[Tensor]:
    against = _dot(additions, gradients).clamp_max(0) / _dot(gradients, gradients).clamp_min(SHORTEST)
    return [addition - against * gradient for addition, gradient in zip(additions, gradients, strict=True)]
