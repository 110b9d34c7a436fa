"""Losses that shape representations by behavioural similarity, in torch."""

from pisces.losses.contrastive import contrastive_metric_loss, simclr_loss
from pisces.losses.l2 import metric_l2_loss
from pisces.losses.policy_similarity import PolicySimilarityLoss

__all__ = ["PolicySimilarityLoss", "contrastive_metric_loss", "metric_l2_loss", "simclr_loss"]
