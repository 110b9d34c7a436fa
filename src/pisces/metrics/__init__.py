"""Behavioural metrics: pure functions on numpy arrays."""

from pisces.metrics.costs import Cost, l1_distance, reward_difference, total_variation
from pisces.metrics.sequence import sequence_metric, sequence_metrics

__all__ = [
    "Cost",
    "l1_distance",
    "reward_difference",
    "sequence_metric",
    "sequence_metrics",
    "total_variation",
]
