"""Transfer of policies to the nearest states, and bounds on it."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pisces.errors import UserError
from pisces.metrics.costs import Cost, total_variation
from pisces.metrics.exact.metrics import policy_similarity_metric
from pisces.metrics.exact.problem import MetricResult
from pisces.metrics.mdp.finite_mdp import FiniteMDP, check_mdp, check_policy
from pisces.metrics.mdp.planning import discounted_sums
from pisces.metrics.setting import Policy
from pisces.validation import as_array, as_integers, as_reals, check_discount

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Neighbors:
    """The nearest states of one MDP to each state of the other."""

    nearest_x: IntArray
    """For each state y, the states x by increasing distance d(x, y), [m, k]; the first of equally near ones first."""

    nearest_y: IntArray
    """For each state x, the states y by increasing distance d(x, y), [n, k]."""


def nearest_neighbors(
    distance: ArrayLike | MetricResult, count: int = 1, *, include_self: bool | None = None
) -> Neighbors:
    """The nearest states in both directions of a distance matrix [n, m]; NaN counts as infinitely far.

    Args:
        distance: distances [n, m], or the result of a metric.
        count: number of neighbors; fewer if there are fewer states.
        include_self: whether a state is a neighbor of itself. None leaves it out in the result of a metric within one
            MDP; an array may be of two MDPs, so it is taken as it is.
    """
    matrix = _check_distance(distance)
    _check_compared(matrix, axis=1)
    if not (isinstance(count, numbers.Integral) and not isinstance(count, bool) and count >= 1):
        raise UserError(f"expected a count of neighbors >= 1, got {count!r}")
    filled = np.where(np.isnan(matrix), np.inf, matrix)
    if _leaves_out_self(distance, include_self):
        if matrix.shape[0] != matrix.shape[1] or len(matrix) == 1:
            raise UserError(f"neighbors other than the state itself need [n, n] distances, n >= 2, got {matrix.shape}")
        np.fill_diagonal(filled, np.inf)
        _check_compared(np.where(np.isinf(filled), np.nan, filled), axis=0)
        count = min(count, len(matrix) - 1)
    return Neighbors(
        np.argsort(filled, axis=0, kind="stable")[:count].T.copy(),
        np.argsort(filled, axis=1, kind="stable")[:, :count].copy(),
    )


def _leaves_out_self(distance: ArrayLike | MetricResult, include_self: bool | None) -> bool:
    if include_self is not None:
        return not include_self
    return isinstance(distance, MetricResult) and distance.definition is not None and distance.definition.within


def transfer_policy(distance: ArrayLike | MetricResult, policy_x: ArrayLike) -> NDArray[Any]:
    """The policy that behaves in y as `policy_x` does in the state nearest to y.

    policy(y) = policy_x(argmin_x d(x, y))      (Section 3, arXiv:2101.05265); the first of equally near states.

    Args:
        distance: distances [n, m], or the result of a metric.
        policy_x: policy [n, A], or actions [n].

    Returns:
        The transferred policy, [m, A] or [m].
    """
    matrix = _check_distance(distance)
    policy = as_array("a policy", policy_x)
    if policy.ndim == 0 or len(policy) != len(matrix):
        raise UserError(f"expected a policy for {len(matrix)} states, got one of shape {policy.shape}")
    return np.asarray(policy[np.nanargmin(matrix, axis=0)])


def transfer_bound(distance: ArrayLike | MetricResult, discount: float | None = None) -> FloatArray:
    """Bound on the divergence of the transferred policy from the optimal one (Theorem 1 of arXiv:2101.05265).

    E[sum_t discount^t TV(transferred(Y_t), optimal(Y_t))] <= (1 + discount) / (1 - discount) * min_x d(x, y), where d
    is the PSM with the total variation cost and Y_t follows the transferred policy from y. With a result whose
    certified error is e, the neighbor found may be up to 2 e further than the nearest one, at every step; repeating
    the paper's induction with that adds e (1 + discount) / (1 - discount) to the distance.

    Args:
        distance: PSM distances [n, m], or the result of `policy_similarity_metric` with the total variation cost.
        discount: the metric's discount; needed only with an array.

    Returns:
        The bound for every state y, [m].
    """
    discount = _check_theorem(distance, discount)
    error = distance.error_bound if isinstance(distance, MetricResult) else 0.0
    nearest = np.nanmin(_check_distance(distance), axis=0)
    factor = (1 + discount) / (1 - discount)
    return np.asarray(factor * (nearest + factor * error))


def _check_theorem(distance: ArrayLike | MetricResult, discount: float | None) -> float:
    """Returns the discount, or raises if Theorem 1 does not apply to the distances."""
    definition = distance.definition if isinstance(distance, MetricResult) else None
    if definition is None:
        if discount is None:
            raise UserError("pass discount=..., the metric's, with an array of distances")
        check_discount(discount)
        return float(discount)
    if definition.metric != "policy-similarity" or definition.cost != "total_variation":
        raise UserError(
            "the bound holds for policy_similarity_metric with cost total_variation, got a result of "
            f"{definition.metric} with cost {definition.cost}"
        )
    if discount is not None and discount != definition.discount:
        raise UserError(f"discount must be the metric's, {definition.discount}, got {discount!r}; or leave it out")
    return definition.discount


def policy_divergence(mdp: FiniteMDP, policy: ArrayLike, reference: ArrayLike, discount: float) -> FloatArray:
    """The left side of Theorem 1: E[sum_t discount^t TV(policy(Y_t), reference(Y_t))] along `policy`, [m]."""
    check_mdp("mdp", mdp)
    acting, other = check_policy(policy, mdp), check_policy(reference, mdp)
    variation = 0.5 * np.abs(acting - other).sum(axis=1)
    return discounted_sums(mdp.policy_chain(acting), variation, discount)


def approximation_bound(
    mdps: Sequence[FiniteMDP],
    optimal: Sequence[ArrayLike],
    approximate: Sequence[ArrayLike],
    *,
    discount: float,
    cost: Cost = total_variation,
    tolerance: float | None = None,
) -> FloatArray:
    """How far the PSM of approximate policies can be from the PSM of optimal ones.

    |d*(x, y) - d^(x, y)| <= d((x, optimal), (x, approximate)) + d((y, approximate), (y, optimal))
    (proposition on suboptimal policies, appendix of arXiv:2101.05265); d is the generalized PSM and the cost must be a
    pseudometric. The certified errors of both terms are added.

    Args:
        mdps: the MDPs of x and of y.
        optimal: their optimal policies.
        approximate: the policies that were used instead.
        discount: in [0, 1).
        cost: cost between policies.
        tolerance: certified error of each of the two terms; 1e-6 if None.

    Returns:
        The bound for every pair, [n, m].
    """
    counts = [len(one) if hasattr(one, "__len__") else 0 for one in (mdps, optimal, approximate)]
    if counts != [2, 2, 2]:
        raise UserError(f"expected two MDPs with two policies each, got {counts[0]}, {counts[1]}, {counts[2]}")
    terms = []
    for mdp, exact, other in zip(mdps, optimal, approximate, strict=True):
        check_mdp("each of mdps", mdp)
        diagonal = np.repeat(np.arange(mdp.n_states)[:, None], 2, axis=1)
        result = policy_similarity_metric(
            mdp, discount=discount, policy_x=exact, policy_y=other, cost=cost, tolerance=tolerance, pairs=diagonal
        )
        terms.append(result.distance + result.error_bound)
    return np.asarray(terms[0][:, None] + terms[1][None, :])


def augmentation_invariance(
    mdp: FiniteMDP,
    augmented: FiniteMDP,
    augmentation: ArrayLike,
    *,
    discount: float,
    policy: Policy = None,
    augmented_policy: Policy = None,
    cost: Cost = total_variation,
    tolerance: float | None = None,
) -> FloatArray:
    """How much an augmentation changes optimal behavior: d*(x, psi(x)) for every state x.

    Zero where the augmented state requires the same behavior now and later (proposition on data augmentation,
    appendix of arXiv:2101.05265).

    Args:
        mdp: the MDP, n states.
        augmented: the MDP of augmented states.
        augmentation: psi, the state of `augmented` that each state becomes, integers [n].
        discount: in [0, 1).
        policy: policy of `mdp`; None for the optimal one.
        augmented_policy: policy of `augmented`; None for the optimal one.
        cost: cost between policies.
        tolerance: certified error of the distances; 1e-6 if None.

    Returns:
        The distances, [n].
    """
    check_mdp("mdp", mdp)
    psi = as_integers("augmentation", augmentation, f"[{mdp.n_states}]")
    if psi.shape != (mdp.n_states,):
        raise UserError(f"expected the augmentation as {mdp.n_states} integers, got shape {list(psi.shape)}")
    pairs = np.stack([np.arange(mdp.n_states), psi], axis=1)
    result = policy_similarity_metric(
        mdp,
        augmented,
        discount=discount,
        policy_x=policy,
        policy_y=augmented_policy,
        cost=cost,
        tolerance=tolerance,
        pairs=pairs,
    )
    return result.distance


def _check_distance(distance: ArrayLike | MetricResult) -> FloatArray:
    matrix = distance.distance if isinstance(distance, MetricResult) else as_reals("distances", distance)
    if matrix.ndim == 1 and isinstance(distance, MetricResult):
        raise UserError(f"expected distances [n, m], got those of {len(matrix)} pairs; leave out pairs=... to get all")
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise UserError(f"expected distances [n, m] with n, m >= 1, got shape {matrix.shape}")
    _check_compared(matrix, axis=0)
    return matrix


def _check_compared(matrix: FloatArray, axis: int) -> None:
    """Raises if a state was compared with no other; `axis` is that of the others."""
    alone = np.flatnonzero(np.isnan(matrix).all(axis=axis))
    if alone.size:
        which = "xy"[1 - axis]
        raise UserError(f"expected a distance to at least one state, got only NaN for state {alone[0]} of {which}")
