"""Losses that shape representations by behavioural similarity, in torch, and the pairs that they compare."""

from pisces.losses.contrastive import contrastive_metric_loss, simclr_loss
from pisces.losses.l2 import metric_l2_loss
from pisces.losses.pairs import Pair, TrajectoryPairs
from pisces.losses.policy_similarity import PolicySimilarityLoss

__all__ = [
    "Pair",
    "PolicySimilarityLoss",
    "TrajectoryPairs",
    "contrastive_metric_loss",
    "metric_l2_loss",
    "simclr_loss",
]
