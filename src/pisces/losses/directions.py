"""Directions of features and the cosines between them, with a gradient that stays finite."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from pisces.losses.precision import in_full_precision, in_one_precision

SHORTEST = 1e-12
"""Rows shorter than this have no direction."""


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
