"""A loss for representations whose Euclidean distances match a metric."""

from __future__ import annotations

import torch
from torch import Tensor

from pisces.losses.checks import check_metric, check_rows
from pisces.losses.numerics import in_one_precision

SMALLEST_SQUARE = 1e-12
"""Squared distances are raised to this before the root, whose slope at zero is infinite."""


def metric_l2_loss(representations_x: Tensor, representations_y: Tensor, metric: Tensor) -> Tensor:
    """Squared error between Euclidean and metric distances, averaged over all pairs (App. D, arXiv:2101.05265).

    loss = mean_{i, j} ( |f(x_i) - f(y_j)|_2 - metric[i, j] )^2

    Distances come from inner products: in single precision those below about a thousandth of the representations' norms
    are lost to rounding. Half precision is computed in single.

    Args:
        representations_x: [n, k].
        representations_y: [m, k].
        metric: distances [n, m], finite and non-negative (not checked here); no gradient flows into them.

    Returns:
        The loss, a scalar.
    """
    check_rows("representations", representations_x, representations_y)
    check_metric(representations_x, representations_y, metric)
    x, y = in_one_precision(representations_x, representations_y)
    with torch.autocast(x.device.type, enabled=False):
        squares = x.square().sum(dim=1)[:, None] + y.square().sum(dim=1)[None, :] - 2 * x @ y.T
    distance = torch.sqrt(squares.clamp_min(SMALLEST_SQUARE))
    return (distance - metric.detach().to(distance)).square().mean()
