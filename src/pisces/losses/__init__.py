"""Losses that shape representations by behavioral similarity, in torch."""

from pisces.errors import import_extra

import_extra("torch", "torch")

from pisces.losses.contrastive import contrastive_metric_loss, simclr_loss  # noqa: E402
from pisces.losses.l2 import metric_l2_loss  # noqa: E402
from pisces.losses.module import ContrastiveMetricLoss  # noqa: E402

__all__ = ["ContrastiveMetricLoss", "contrastive_metric_loss", "metric_l2_loss", "simclr_loss"]
