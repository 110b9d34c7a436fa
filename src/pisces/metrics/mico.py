"""MICo distance, which couples next states independently."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from pisces.errors import RoundingError, UserError
from pisces.metrics.costs import Cost, reward_difference
from pisces.metrics.estimates.sampling import policy_sampling_error
from pisces.metrics.exact.chain import Chain
from pisces.metrics.exact.problem import MetricResult, cost_table
from pisces.metrics.mdp.finite_mdp import FiniteMDP, reward_rounding
from pisces.metrics.setting import Accuracy, Policy, check_options, checked_cost, resolve, reward_scale

FloatArray = NDArray[np.float64]
PATIENCE = 100
"""Sweeps before the distances are computed by doubling, which chains that do not mix need near discount 1."""
LARGEST_SQUARED = 4_000_000
"""The largest number of distances computed so: powers of the chains are dense."""
NEGLIGIBLE = 1e-17
"""Weights below this do not change a sum."""


def mico_distance(
    mdp_x: FiniteMDP,
    mdp_y: FiniteMDP | None = None,
    *,
    discount: float,
    policy_x: Policy = None,
    policy_y: Policy = None,
    cost: Cost = reward_difference,
    tolerance: float | None = None,
    relative_tolerance: float | None = None,
    pairs: ArrayLike | None = None,
) -> MetricResult:
    """MICo distance between all states of two MDPs: pi-bisimulation with independent couplings.

    U(x, y) = |R(x) - R(y)| + discount * E[U(X', Y')], X' ~ P_x(. | x) and Y' ~ P_y(. | y) independent
    (arXiv:2106.08229). It bounds the pi-bisimulation metric from above, and a state's distance to itself is positive
    when its future is random.

    Args:
        mdp_x: the first MDP, n states.
        mdp_y: the second MDP, m states; None for `mdp_x`.
        discount: in [0, 1).
        policy_x: policy of `mdp_x` [n, A] (or actions [n]). None or "optimal" takes the first optimal action of each
            state, "optimal-uniform" all of them with equal probability; see `optimal_policy`.
        policy_y: policy of `mdp_y` [m, A], likewise; None for `policy_x` if `mdp_y` is None.
        cost: cost of every pair of expected rewards, given as arrays [n] and [m].
        tolerance: certified error at which to stop; 1e-6 times the cost of the smallest and the largest reward if both
            tolerances are None, or the rounding error if that is larger.
        relative_tolerance: the same relative to the largest distance.
        pairs: refused, because all distances are computed together; index the result instead.

    Returns:
        Distances [n, m] with a certified error.
    """
    if pairs is not None:
        raise UserError("mico_distance computes all pairs together; leave out pairs and index result.distance")
    check_options(None, None, cost)
    accuracy = Accuracy(tolerance, relative_tolerance)
    setting = resolve(mdp_x, mdp_y, policy_x, policy_y, discount)
    costs = cost_table(checked_cost(cost), *setting.rewards)
    rows_x, rows_y = (_matrix(chain) for chain in setting.chains())
    rounding = reward_rounding(setting.mdp_x, setting.mdp_y)

    def solve(target: float) -> MetricResult:
        return _iterate(rows_x, rows_y, costs, float(discount), target, rounding)

    result = accuracy.solve(solve, reward_scale(setting.mdp_x, setting.mdp_y, cost), discount)
    return replace(
        result,
        definition=setting.definition("mico", discount, cost),
        sampling=policy_sampling_error(result, setting, cost, discount, of_rewards=True),
    )


def _squared(
    rows_x: scipy.sparse.csr_array, rows_y: scipy.sparse.csr_array, costs: FloatArray, discount: float
) -> FloatArray:
    """The sum of discount^t P^t costs (Q^t)^T over all t, by doubling the number of terms: not yet certified."""
    p, q, total = rows_x.toarray(), rows_y.toarray(), costs.copy()
    while discount > NEGLIGIBLE:
        total += discount * (p @ total @ q.T)
        p, q, discount = p @ p, q @ q, discount**2
    return total


def _matrix(chain: Chain) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array(chain.rows[::-1], shape=(chain.n_states, chain.n_states))


def _iterate(
    rows_x: scipy.sparse.csr_array,
    rows_y: scipy.sparse.csr_array,
    costs: FloatArray,
    discount: float,
    tolerance: float,
    cost_rounding: float,
) -> MetricResult:
    # T(U + constant) = T(U) + discount * constant, so the middle of the residual is removed at once, and the error is
    # half its range: chains that mix fast need few sweeps even near discount 1.
    distance, iterations = costs.copy(), 0
    while True:
        if iterations == PATIENCE and costs.size <= LARGEST_SQUARED:
            distance = _squared(rows_x, rows_y, costs, discount)
        image = costs + discount * (rows_y @ (rows_x @ distance).T).T
        low, high = float((image - distance).min()), float((image - distance).max())
        iterations += 1
        shift = discount / (1 - discount) * (low + high) / 2
        image += shift
        largest = float(np.abs(image).max())
        widest = max(2, *(int(np.diff(rows.indptr).max()) for rows in (rows_x, rows_y)))
        hidden = 2.0**-53 * largest * 8 * widest + cost_rounding
        error = (discount * (high - low) / 2 + hidden) / (1 - discount)
        if error <= tolerance:
            return MetricResult(image, error, iterations)
        if discount * (high - low) / 2 <= hidden:
            raise RoundingError(1.1 * error, tolerance)
        distance = image
