"""Errors of distances between MDPs that were estimated from samples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pisces.metrics.costs import Cost, reward_difference, total_variation
from pisces.metrics.definition import SamplingError
from pisces.metrics.exact.chain import Rows
from pisces.metrics.exact.problem import MetricResult
from pisces.metrics.mdp.bellman import solve_bellman
from pisces.metrics.mdp.estimation import EstimatedMDP
from pisces.metrics.mdp.finite_mdp import FiniteMDP
from pisces.metrics.mdp.planning import discounted_sums
from pisces.metrics.setting import Setting

FloatArray = NDArray[np.float64]
CONFIDENCE = 0.95
"""The probability with which the bounds of results hold."""
ROUNDS = 10
"""Times that the range of the true distances is narrowed by the bound it gave."""


def policy_sampling_error(
    result: MetricResult, setting: Setting, cost: Cost, discount: float, *, of_rewards: bool
) -> SamplingError | None:
    """Bounds the sampling error of a metric under fixed policies.

    At a state x the estimate changes the operator by at most r(x) + discount * D * t(x): r bounds the error of the
    reward, t the total variation between the next-state distributions, and D the range of the true distances. With
    e(x) = r(x) + discount * D * t(x) + discount * sum_x' P(x' | x) e(x') along the estimated chain, and the same for y,
    |d(x, y) - true d(x, y)| <= e(x) + e(y), since such a sum is transported at the same cost by any coupling.

    Args:
        result: the distances of the estimated MDPs.
        setting: MDPs and policies.
        cost: the cost; None is returned unless it is `reward_difference` or, for policies, `total_variation`.
        discount: in [0, 1).
        of_rewards: whether the cost compares rewards; the policies are taken as given otherwise.
    """
    mdps = (setting.mdp_x, setting.mdp_y)
    if not _is_estimated(mdps) or cost is not (reward_difference if of_rewards else total_variation):
        return None
    radii = [_radii(mdp, mdps, of_rewards) for mdp in mdps]
    limit = _limit(mdps, discount, of_rewards)
    chains = setting.chains()

    def errors(span: float) -> list[FloatArray]:
        local = [reward + discount * span * move for reward, move in radii]
        weighted = [(policy * one).sum(axis=1) for policy, one in zip(setting.policies, local, strict=True)]
        return [discounted_sums(chain, one, discount) for chain, one in zip(chains, weighted, strict=True)]

    return _narrowed(result, errors, limit)


def action_sampling_error(
    result: MetricResult, mdp_x: FiniteMDP, mdp_y: FiniteMDP, cost: Cost, discount: float
) -> SamplingError | None:
    """Bounds the sampling error of the bisimulation metric: as above, with the maximum over actions at each step."""
    mdps = (mdp_x, mdp_y)
    if not _is_estimated(mdps) or cost is not reward_difference:
        return None
    radii = [_radii(mdp, mdps, of_rewards=True) for mdp in mdps]

    def errors(span: float) -> list[FloatArray]:
        local = [reward + discount * span * move for reward, move in radii]
        return [solve_bellman(_rows(mdp), one, float(discount)) for mdp, one in zip(mdps, local, strict=True)]

    return _narrowed(result, errors, _limit(mdps, discount, of_rewards=True))


def _narrowed(result: MetricResult, errors: Callable[[float], list[FloatArray]], limit: float) -> SamplingError:
    # The range D of the true distances is at most what the costs allow, and at most the largest distance found plus
    # its error; each bound makes the error smaller, and with it the range.
    span, whole = limit, result.distance.ndim == 2 and not np.isnan(result.distance).any()
    error_x, error_y = errors(span)
    for _ in range(ROUNDS if whole else 0):
        largest = float(np.abs(result.distance).max()) + result.error_bound + float(error_x.max() + error_y.max())
        if largest >= 0.999 * span:
            break
        span = largest
        error_x, error_y = errors(span)
    rounding = 1 + 1e-9
    return SamplingError(CONFIDENCE, rounding * error_x, rounding * error_y, limit)


def _is_estimated(mdps: tuple[FiniteMDP, FiniteMDP]) -> bool:
    return any(isinstance(mdp, EstimatedMDP) for mdp in mdps)


def _radii(mdp: FiniteMDP, mdps: tuple[FiniteMDP, FiniteMDP], of_rewards: bool) -> tuple[FloatArray, FloatArray]:
    """Returns the reward and transition radii [S, A] of one of two MDPs, at a level that adds up over all of them."""
    if not isinstance(mdp, EstimatedMDP):
        return np.zeros(mdp.rewards.shape), np.zeros(mdp.rewards.shape)
    shares = (1 + of_rewards) * len({id(one) for one in mdps if isinstance(one, EstimatedMDP)})
    confidence = 1 - (1 - CONFIDENCE) / shares
    rewards = mdp.reward_radii(confidence) if of_rewards else np.zeros(mdp.rewards.shape)
    return rewards, mdp.transition_radii(confidence)


def _limit(mdps: tuple[FiniteMDP, FiniteMDP], discount: float, of_rewards: bool) -> float:
    if of_rewards:
        ranges = [
            mdp.reward_range if isinstance(mdp, EstimatedMDP) else (mdp.rewards.min(), mdp.rewards.max())
            for mdp in mdps
        ]
        # Terminal states have reward 0.
        span = max(0.0, *(high for _, high in ranges)) - min(0.0, *(low for low, _ in ranges))
    else:
        span = 1.0
    return float(span / (1 - discount))


def _rows(mdp: FiniteMDP) -> Rows:
    rows = mdp.transitions
    return Rows(rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data)
