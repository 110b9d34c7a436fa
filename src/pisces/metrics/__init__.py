"""Behavioural metrics: pure functions on numpy arrays."""

from pisces.metrics.costs import Cost, l1_distance, reward_difference, total_variation
from pisces.metrics.markov import (
    MetricResult,
    bisimulation_metric,
    pi_bisimulation_metric,
    policy_similarity_metric,
)
from pisces.metrics.mdp import FiniteMDP
from pisces.metrics.planning import Plan, optimal_policy, policy_values, value_iteration
from pisces.metrics.sequence import sequence_metric, sequence_metrics
from pisces.metrics.transport import Transport, optimal_transport

__all__ = [
    "Cost",
    "FiniteMDP",
    "MetricResult",
    "Plan",
    "Transport",
    "bisimulation_metric",
    "l1_distance",
    "optimal_policy",
    "optimal_transport",
    "pi_bisimulation_metric",
    "policy_similarity_metric",
    "policy_values",
    "reward_difference",
    "sequence_metric",
    "sequence_metrics",
    "total_variation",
    "value_iteration",
]
