"""Embeddings whose Euclidean distances match a metric."""

from __future__ import annotations

import torch
from torch import Tensor

from pisces.errors import UserError

SMALLEST_SQUARE = 1e-12
"""Squared distances are raised to this before the root, whose slope at zero is infinite."""


def metric_l2_loss(representations_x: Tensor, representations_y: Tensor, metric: Tensor) -> Tensor:
    """Squared error between Euclidean and metric distances, averaged over all pairs (App. D, arXiv:2101.05265).

    loss = mean_{i, j} ( |f(x_i) - f(y_j)|_2 - metric[i, j] )^2

    Args:
        representations_x: [n, k].
        representations_y: [m, k].
        metric: distances [n, m]; no gradient flows into them.

    Returns:
        The loss, a scalar.
    """
    if metric.shape != (len(representations_x), len(representations_y)) or 0 in metric.shape:
        expected = (len(representations_x), len(representations_y))
        raise UserError(f"expected a metric of shape {expected} without zeros, got {tuple(metric.shape)}")
    squares = (
        representations_x.square().sum(dim=1)[:, None]
        + representations_y.square().sum(dim=1)[None, :]
        - 2 * representations_x @ representations_y.T
    )
    distance = torch.sqrt(squares.clamp_min(SMALLEST_SQUARE))
    return (distance - metric.detach().to(distance)).square().mean()
