"""Precision of losses: half precision is too coarse for distances, directions and sums of squares."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

P = ParamSpec("P")
T = TypeVar("T")
HALF = (torch.float16, torch.bfloat16)


def in_full_precision(function: Callable[P, T]) -> Callable[P, T]:
    """Decorator: the function gets tensors in half precision as float32, and is computed without autocast."""

    @wraps(function)
    def wrapped(*arguments: P.args, **options: P.kwargs) -> T:
        values = [*arguments, *options.values()]
        kinds = [value.device.type for value in values if isinstance(value, Tensor)]
        if not kinds:
            return function(*arguments, **options)
        wide = {name: _widened(value) for name, value in options.items()}
        with torch.autocast(kinds[0], enabled=False):
            return function(*map(_widened, arguments), **wide)

    return wrapped


def _widened(value: Any) -> Any:
    return value.float() if isinstance(value, Tensor) and value.dtype in HALF else value


def in_one_precision(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Converts both to the wider of their precisions, at least to float32."""
    wide = torch.promote_types(torch.promote_types(x.dtype, y.dtype), torch.float32)
    return x.to(wide), y.to(wide)
