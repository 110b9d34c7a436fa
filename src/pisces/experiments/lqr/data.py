"""What runs of the LQR study learn from, and how their policies are evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pisces.agents.linear.control import SystemBatch
from pisces.agents.linear.rotation import Rotation
from pisces.agents.linear.settings import LinearSettings
from pisces.agents.linear.training import (
    PRECISIONS,
    EnsemblePolicies,
    Policies,
    Report,
    TrainedSeed,
    TrainingBatch,
    TwoLayerPolicies,
    train,
)
from pisces.envs.lqr import (
    LinearSystem,
    make_distractors,
    make_system,
    optimal_trajectories,
    policy_cost,
    start_states,
)
from pisces.experiments.lqr.config import LQRConfig
from pisces.metrics import l1_distance, sequence_metric

FloatArray = NDArray[np.float64]

SHOWN_COLUMNS = 1020
"""Up to this observation size, results of a run's first seed hold the norm of every column of K."""


@dataclass(frozen=True)
class ObservationPairs:
    """Pairs of observations of two environments that call for the same behavior."""

    x: NDArray[np.int64]
    """Which states of the first environment's trajectories, [P]; trajectory * T + step."""
    y: NDArray[np.int64]
    """Which states of the second's, [P]."""


def policy_similarity(actions_x: FloatArray, actions_y: FloatArray, discount: float) -> FloatArray:
    """Policy similarity metric between all states of all trajectories of two environments.

    Args:
        actions_x: optimal actions along trajectories, [M, T, a].
        actions_y: the same in the other environment, [M', T', a].
        discount: of the metric.

    Returns:
        Distances [M * T, M' * T'].
    """
    (m, t, _), (m_y, t_y, _) = actions_x.shape, actions_y.shape
    cost = l1_distance(actions_x.reshape(m * t, -1), actions_y.reshape(m_y * t_y, -1))
    blocks = cost.reshape(m, t, m_y, t_y).swapaxes(1, 2)
    return sequence_metric(blocks, discount).swapaxes(1, 2).reshape(m * t, m_y * t_y)


def near_zero_pairs(
    distance: FloatArray, norms_x: FloatArray, norms_y: FloatArray, threshold: float
) -> ObservationPairs:
    """Pairs whose distance is at most `threshold` times the mean of their states' norms.

    An absolute threshold would pair all late states of all trajectories, which the controller has brought near zero.
    """
    scale = (norms_x[:, None] + norms_y[None, :]) / 2
    x, y = np.nonzero(distance <= threshold * scale)
    return ObservationPairs(x, y)


def pair_factor(system: LinearSystem, seed: int, environments: int, settings: LinearSettings) -> FloatArray:
    """Factor Z [E * s, E * s] of the aggregation loss: the pairs of every two environments, found by the metric.

    loss = mean over pairs of environments, sum over pairs (o_x, o_y) of |K_1 o_x - K_1 o_y|^2 / number of starts. With
    o = W s this is |K_1 [W_1 ... W_E] D|^2, D one column per pair; any Z with ZZ' = DD' gives the same.
    """
    states, actions = optimal_trajectories(system, start_states(seed, settings.starts), settings.trajectory_steps)
    flat = states.reshape(-1, states.shape[-1])
    norms = np.linalg.norm(flat, axis=1)
    size = flat.shape[1]
    # The hidden starts are the same in all environments, and the optimal controller sees the state: one metric for all.
    pairs = near_zero_pairs(
        policy_similarity(actions, actions, settings.discount), norms, norms, settings.pair_threshold
    )
    couples = list(combinations(range(environments), 2))
    gram = np.zeros((environments * size, environments * size))
    for x, y in couples:
        columns = np.zeros((environments * size, len(pairs.x)))
        columns[x * size : (x + 1) * size] = flat[pairs.x].T
        columns[y * size : (y + 1) * size] = -flat[pairs.y].T
        gram += columns @ columns.T
    values, vectors = np.linalg.eigh(gram / (len(couples) * settings.starts))
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)), dtype=np.float64)


def training_batch(config: LQRConfig, seeds: Sequence[int]) -> TrainingBatch:
    """The systems, training environments and pairs of some seeds."""
    dtype = PRECISIONS[config.settings.precision]
    systems = [make_system(seed) for seed in seeds]
    observed = config.distractors + systems[0].state_features.shape[0]
    features = torch.empty(len(seeds), config.environments, len(systems[0].dynamics), observed, dtype=dtype)
    for row, seed, system in zip(features, seeds, systems, strict=True):
        for index in range(config.environments):
            matrix = system.features(make_distractors(seed, config.distractors, "train", index))
            row[index] = torch.from_numpy(matrix.T)
    pairs = None
    if config.settings.aggregation:
        factors = [
            pair_factor(system, seed, config.environments, config.settings)
            for system, seed in zip(systems, seeds, strict=True)
        ]
        pairs = torch.from_numpy(np.stack(factors)).to(dtype)
    return TrainingBatch(SystemBatch.stack(systems, torch.float64), features, pairs)


def initial_policies(config: LQRConfig, seeds: Sequence[int], batch: TrainingBatch) -> Policies:
    """The policies before training: small orthogonal layers, or zero for the ensemble."""
    settings, observed = config.settings, batch.features.shape[-1]
    actions = batch.systems.control.shape[-1]
    dtype = batch.features.dtype
    if settings.policy == "ensemble":
        shape = (len(seeds), observed, actions)
        return EnsemblePolicies([torch.zeros(shape, dtype=dtype) for _ in range(config.environments)], settings)
    first = torch.empty(len(seeds), observed, settings.width, dtype=dtype)
    second = torch.empty(len(seeds), settings.width, actions, dtype=dtype)
    for index, seed in enumerate(seeds):
        generator = torch.Generator().manual_seed(seed)
        for layer in (first, second):
            torch.nn.init.orthogonal_(layer[index], settings.initial_scale, generator=generator)
    return TwoLayerPolicies(first, second, settings)


def train_seeds(config: LQRConfig, seeds: Sequence[int], report: Report) -> list[TrainedSeed]:
    """Trains the policies of some seeds together."""
    batch = training_batch(config, seeds)
    policies = initial_policies(config, seeds, batch)
    if config.settings.optimizer == "adam" or not isinstance(policies, TwoLayerPolicies):
        return train(policies, batch, config.settings, report)
    rotation = Rotation.of(batch, policies.first)
    reduced, first = rotation.reduce(batch)
    trained = train(
        TwoLayerPolicies(first, policies.second.detach(), config.settings), reduced, config.settings, report
    )
    return [rotation.lift(index, own) for index, own in enumerate(trained)]


def policy_matrix(layers: Sequence[Tensor]) -> FloatArray:
    """K, [a, n], of a policy's transposed layers."""
    product = layers[0].double()
    for layer in layers[1:]:
        product = product @ layer.double()
    return np.asarray(product.T.numpy(), dtype=np.float64)


def evaluate_seed(config: LQRConfig, seed: int, trained: TrainedSeed) -> dict[str, Any]:
    """What a result says of one seed; infinite costs are None."""
    system, policy = make_system(seed), policy_matrix(trained.layers)
    oracle, observed = system.oracle_cost, len(system.state_features)
    costs = {
        role: policy_cost(system, make_distractors(seed, config.distractors, role), policy)
        for role in ("validation", "test")
    }
    row: dict[str, Any] = {
        "seed": seed,
        "oracle_cost": oracle,
        "cost": _finite(costs["test"]),
        "error": _finite(abs(costs["test"] - oracle)),
        "validation_error": _finite(abs(costs["validation"] - oracle)),
        "train_error": _finite(abs(trained.train_cost - oracle)),
        "state_norm": float(np.linalg.norm(policy[:, :observed])),
        "distractor_norm": float(np.linalg.norm(policy[:, observed:])),
        "steps": trained.steps,
        "shrinks": trained.shrinks,
    }
    if config.settings.aggregation:
        row["aggregation_residual"] = aggregation_residual(config, seed, trained.layers[0])
    if seed == config.seeds[0] and policy.shape[1] <= SHOWN_COLUMNS:
        row["column_norms"] = [float(f"{norm:.4g}") for norm in np.linalg.norm(policy, axis=0)]
    return row


def aggregation_residual(config: LQRConfig, seed: int, first: Tensor) -> float:
    """The aggregation loss without its coefficient, relative to that of the same pairs if nothing were aggregated.

    |K_1 [W_1 ... W_E] Z|^2 / sum over environments of |K_1 W_e Z_e|^2, Z_e the rows of Z of environment e: 0 if paired
    observations have equal representations, about 1 if these are unrelated.

    Args:
        config: the run.
        seed: which of its seeds.
        first: K_1', [n, h].
    """
    system, weights = make_system(seed), first.double().numpy()
    factor = pair_factor(system, seed, config.environments, config.settings)
    terms = []
    for index, rows in enumerate(np.split(factor, config.environments)):
        features = system.features(make_distractors(seed, config.distractors, "train", index))
        terms.append(weights.T @ features @ rows)
    separate = sum(float(np.square(term).sum()) for term in terms)
    return float(np.square(sum(terms)).sum()) / separate if separate else 0.0


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def unseen_errors(config: LQRConfig, matrix: FloatArray, environments: int) -> tuple[list[float | None], float]:
    """Returns a policy's errors in unseen environments, None where it is unstable, and the oracle's cost."""
    system = make_system(config.seed)
    costs = [
        policy_cost(system, make_distractors(config.seed, config.distractors, "test", number), matrix)
        for number in range(environments)
    ]
    return [_finite(abs(cost - system.oracle_cost)) for cost in costs], system.oracle_cost
