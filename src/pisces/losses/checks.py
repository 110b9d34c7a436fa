"""Checks of the arguments of losses. They read shapes and types, never values, so that no device is synchronized."""

from __future__ import annotations

import numbers

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


def check_rewards(rewards: Tensor, count: int) -> None:
    """Raises unless the rewards are a tensor [n] of n >= 2 transitions, which losses on pairs of them need."""
    if not isinstance(rewards, Tensor):
        raise UserError(f"expected rewards as a tensor, got {type(rewards).__name__}; torch.from_numpy makes one")
    if rewards.shape != (count,) or count < 2:
        raise UserError(f"expected rewards [n] of n >= 2 transitions, got {tuple(rewards.shape)} and {count} features")


def check_positive(name: str, value: float) -> None:
    """Raises unless a number is positive."""
    if not (isinstance(value, numbers.Real) and value > 0):
        raise UserError(f"{name} must be positive, got {value!r}")
