"""Behavioural metrics: pure functions on numpy arrays."""

from pisces.metrics.alignment import alignment_score, cosine_distance, neighbour_regrets, unmatched_states
from pisces.metrics.behaviour import behaviour_cost, trajectory_metric
from pisces.metrics.compare import MDP_METRICS, Comparison, compare_mdps, is_mdp_file
from pisces.metrics.costs import Cost, l1_distance, reward_difference, total_variation
from pisces.metrics.diagnosis import Diagnosis, EnvironmentDiagnosis, diagnose
from pisces.metrics.markov import (
    MetricResult,
    bisimulation_metric,
    pi_bisimulation_metric,
    policy_similarity_metric,
)
from pisces.metrics.mdp import FiniteMDP
from pisces.metrics.mico import mico_distance
from pisces.metrics.planning import Plan, optimal_policy, policy_values, value_iteration
from pisces.metrics.sequence import sequence_metric, sequence_metrics
from pisces.metrics.sinkhorn import sinkhorn_metric
from pisces.metrics.transfer import (
    Neighbours,
    approximation_bound,
    augmentation_invariance,
    nearest_neighbours,
    policy_divergence,
    transfer_bound,
    transfer_policy,
)
from pisces.metrics.transport import Transport, optimal_transport

__all__ = [
    "MDP_METRICS",
    "Comparison",
    "Cost",
    "Diagnosis",
    "EnvironmentDiagnosis",
    "FiniteMDP",
    "MetricResult",
    "Neighbours",
    "Plan",
    "Transport",
    "alignment_score",
    "approximation_bound",
    "augmentation_invariance",
    "behaviour_cost",
    "bisimulation_metric",
    "compare_mdps",
    "cosine_distance",
    "diagnose",
    "is_mdp_file",
    "l1_distance",
    "mico_distance",
    "nearest_neighbours",
    "neighbour_regrets",
    "optimal_policy",
    "optimal_transport",
    "pi_bisimulation_metric",
    "policy_divergence",
    "policy_similarity_metric",
    "policy_values",
    "reward_difference",
    "sequence_metric",
    "sequence_metrics",
    "sinkhorn_metric",
    "total_variation",
    "trajectory_metric",
    "transfer_bound",
    "transfer_policy",
    "unmatched_states",
    "value_iteration",
]
