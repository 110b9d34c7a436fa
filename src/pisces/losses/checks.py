"""Checks of the arguments of losses. They read shapes and types, never values, so that no device is synchronized."""

from __future__ import annotations

import numbers

import torch
from torch import Tensor

from pisces.errors import UserError


def check_rows(name: str, x: Tensor, y: Tensor) -> None:
    """Raises unless both are tensors, [n, k] and [m, k]."""
    for values in (x, y):
        if not isinstance(values, Tensor):
            raise UserError(f"expected {name} as tensors, got {type(values).__name__}; torch.from_numpy makes one")
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        raise UserError(f"expected {name} [n, k] and [m, k], got {tuple(x.shape)} and {tuple(y.shape)}")


def check_metric(x: Tensor, y: Tensor, metric: Tensor) -> None:
    """Raises unless the metric is a tensor [n, m] for n rows of x and m of y; `TrajectoryPairs` checks the values."""
    if not isinstance(metric, Tensor):
        raise UserError(f"expected the metric as a tensor, got {type(metric).__name__}; torch.from_numpy makes one")
    if metric.shape != (len(x), len(y)) or 0 in metric.shape:
        raise UserError(f"expected a metric of shape {(len(x), len(y))} without zeros, got {tuple(metric.shape)}")


def check_positive(name: str, value: float) -> None:
    """Raises unless a number is positive."""
    if not value > 0:
        raise UserError(f"{name} must be positive, got {value}")


def check_match_within(match_within: float | None) -> None:
    """Raises unless `match_within` is a non-negative number or None."""
    if match_within is not None and not (isinstance(match_within, numbers.Real) and match_within >= 0):
        raise UserError(f"match_within must be at least 0, or None, got {match_within!r}")


def in_one_precision(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Converts both to the wider of their precisions, at least to float32."""
    wide = torch.promote_types(torch.promote_types(x.dtype, y.dtype), torch.float32)
    return x.to(wide), y.to(wide)
