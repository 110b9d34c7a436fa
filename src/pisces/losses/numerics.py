"""What keeps losses and their gradients finite: full precision, and directions of features that may be zero."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor
from torch.nn import functional

P = ParamSpec("P")
T = TypeVar("T")
HALF = (torch.float16, torch.bfloat16)
"""Too coarse for distances, directions and sums of squares."""
SHORTEST = 1e-12
"""Rows shorter than this have no direction."""


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


@in_full_precision
def directions(rows: Tensor) -> Tensor:
    """Scales rows [n, k] to length one; rows of zeros stay zero and get no gradient, which would be 1 / SHORTEST."""
    short = rows.detach().norm(dim=1, keepdim=True) < SHORTEST
    return functional.normalize(torch.where(short, rows.detach(), rows), dim=1, eps=SHORTEST)


def cosine_similarity(x: Tensor, y: Tensor) -> Tensor:
    """Cosines [n, m] of rows [n, k] and [m, k]; never in half precision, in which short rows have no direction."""
    x, y = in_one_precision(x, y)
    with torch.autocast(x.device.type, enabled=False):
        return directions(x) @ directions(y).T
