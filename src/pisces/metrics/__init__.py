"""Behavioral metrics: pure functions on numpy arrays."""

from pisces.metrics.aggregation import StateAggregation, quotient_mdp
from pisces.metrics.alignment import alignment_score, cosine_distance, neighbor_regrets
from pisces.metrics.comparison import BehaviorComparison, StateMatches, compare_behavior
from pisces.metrics.costs import Cost, l1_distance, reward_difference, total_variation
from pisces.metrics.definition import MetricDefinition, SamplingError
from pisces.metrics.embedding.agreement import (
    Agreement,
    Judgment,
    distance_agreement,
    embedding_agreement,
    judge_embedding,
)
from pisces.metrics.embedding.diagnosis import Diagnosis, EnvironmentDiagnosis, diagnose
from pisces.metrics.embedding.failures import FailingState
from pisces.metrics.estimates.bootstrap import BootstrapResult, bootstrap_metric
from pisces.metrics.exact.metrics import (
    bisimulation_metric,
    chain_metric,
    pi_bisimulation_metric,
    policy_similarity_metric,
)
from pisces.metrics.exact.problem import MetricResult
from pisces.metrics.exact.transport import Transport, optimal_transport
from pisces.metrics.mdp.enumeration import EnumeratedMDP, SampledMDP
from pisces.metrics.mdp.estimation import EstimatedMDP
from pisces.metrics.mdp.finite_mdp import FiniteMDP
from pisces.metrics.mdp.planning import Plan, optimal_policy, policy_iteration, policy_values
from pisces.metrics.mico import mico_distance
from pisces.metrics.sequence import sequence_metric
from pisces.metrics.trajectory import behavior_cost, trajectory_metric
from pisces.metrics.transfer import (
    Neighbors,
    approximation_bound,
    augmentation_invariance,
    nearest_neighbors,
    policy_divergence,
    transfer_bound,
    transfer_policy,
)

__all__ = [
    "Agreement",
    "BehaviorComparison",
    "BootstrapResult",
    "Cost",
    "Diagnosis",
    "EnumeratedMDP",
    "EnvironmentDiagnosis",
    "EstimatedMDP",
    "FailingState",
    "FiniteMDP",
    "Judgment",
    "MetricDefinition",
    "MetricResult",
    "Neighbors",
    "Plan",
    "SampledMDP",
    "SamplingError",
    "StateAggregation",
    "StateMatches",
    "Transport",
    "alignment_score",
    "approximation_bound",
    "augmentation_invariance",
    "behavior_cost",
    "bisimulation_metric",
    "bootstrap_metric",
    "chain_metric",
    "compare_behavior",
    "cosine_distance",
    "diagnose",
    "distance_agreement",
    "embedding_agreement",
    "judge_embedding",
    "l1_distance",
    "mico_distance",
    "nearest_neighbors",
    "neighbor_regrets",
    "optimal_policy",
    "optimal_transport",
    "pi_bisimulation_metric",
    "policy_divergence",
    "policy_iteration",
    "policy_similarity_metric",
    "policy_values",
    "quotient_mdp",
    "reward_difference",
    "sequence_metric",
    "total_variation",
    "trajectory_metric",
    "transfer_bound",
    "transfer_policy",
]
