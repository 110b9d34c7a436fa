"""Directions of features, with a gradient that stays finite."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

SHORTEST = 1e-12
"""Rows shorter than this have no direction."""


def directions(rows: Tensor) -> Tensor:
    """Scales rows [n, k] to length one; rows of zeros stay zero and get no gradient, which would be 1 / SHORTEST."""
    short = rows.detach().norm(dim=1, keepdim=True) < SHORTEST
    return functional.normalize(torch.where(short, rows.detach(), rows), dim=1, eps=SHORTEST)
