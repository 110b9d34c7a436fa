"""Optimal policies of finite MDPs, and values of any policy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import ArrayLike, NDArray

from pisces.metrics.exact.chain import Chain
from pisces.metrics.mdp.finite_mdp import FiniteMDP, check_policy
from pisces.validation import check_discount, check_tolerance

FloatArray = NDArray[np.float64]
SOLVE_STATES = 1000
"""Up to this many states, linear systems are solved directly."""


@dataclass(frozen=True, eq=False)
class Plan:
    """An optimal policy and its values."""

    policy: FloatArray
    """Deterministic policy as probabilities, [S, A]; among equally good actions the first."""

    values: FloatArray
    """Optimal value of every state, [S]."""

    error_bound: float
    """|values - optimal values| <= error_bound for every state."""


def policy_iteration(mdp: FiniteMDP, discount: float, *, tolerance: float = 1e-9) -> Plan:
    """Computes an optimal policy and its values by policy iteration.

    V(s) = max_a R(s, a) + discount * sum_s' P(s' | s, a) V(s')

    Each improvement of the policy is followed by its exact evaluation, so few are needed even near discount 1. Actions
    whose values differ by less than the tolerance count as equally good; the first of them is taken.

    Args:
        mdp: the MDP.
        discount: in [0, 1).
        tolerance: certified error of the values, relative to the largest reward; > 0.
    """
    check_discount(discount)
    check_tolerance(tolerance)
    values, greedy = np.zeros(mdp.n_states), np.full(mdp.n_states, -1)
    scale = float(np.abs(mdp.rewards).max()) or 1.0
    floor = 512 * 2.0**-53 * scale / (1 - discount) ** 2
    while True:
        quality = mdp.rewards + discount * (mdp.transitions @ values).reshape(mdp.n_states, mdp.n_actions)
        best = quality.max(axis=1)
        choice = np.argmax(quality >= best[:, None] - tolerance * scale, axis=1)
        error = float(np.abs(best - values).max()) / (1 - discount) + floor
        last, greedy = greedy, np.argmax(quality, axis=1)
        # A policy that is greedy for its own values is optimal, whatever rounding error is left.
        if error <= max(tolerance * scale, 2 * floor) or np.array_equal(greedy, last):
            return Plan(np.eye(mdp.n_actions)[choice], best, error)
        values = policy_values(mdp, greedy, discount)


def optimal_policy(mdp: FiniteMDP, discount: float) -> FloatArray:
    """The optimal policy as probabilities [S, A]; among equally good actions the first."""
    return policy_iteration(mdp, discount).policy


def given_or_optimal(policy: ArrayLike | None, mdp: FiniteMDP, discount: float) -> FloatArray:
    """A given policy, checked, or the optimal one if it is None."""
    check_discount(discount)
    return optimal_policy(mdp, discount) if policy is None else check_policy(policy, mdp)


def policy_values(mdp: FiniteMDP, policy: ArrayLike, discount: float) -> FloatArray:
    """Value of every state under a policy: V = R_pi + discount * P_pi V, [S]."""
    return discounted_sums(mdp.policy_chain(policy), mdp.policy_rewards(policy), discount)


def discounted_sums(chain: Chain, amounts: FloatArray, discount: float) -> FloatArray:
    """Expected discounted sum of amounts [S] along a chain: the solution v of v = amounts + discount * P v."""
    check_discount(discount)
    size = chain.n_states
    rows = scipy.sparse.csr_array((chain.probability, chain.next_state, chain.pointer), shape=(size, size))
    if size > SOLVE_STATES:  # the factors of a large random chain are dense; plain iteration needs little memory
        return _iterated(rows, amounts, discount)
    system = scipy.sparse.csc_array(scipy.sparse.eye_array(size) - discount * rows)
    return np.atleast_1d(scipy.sparse.linalg.spsolve(system, amounts))


def _iterated(rows: scipy.sparse.csr_array, amounts: FloatArray, discount: float) -> FloatArray:
    values = np.zeros(len(amounts))
    scale = max(float(np.abs(amounts).max()), np.finfo(float).tiny)
    while True:
        image = amounts + discount * (rows @ values)
        if np.abs(image - values).max() <= 1e-14 * scale / (1 - discount):
            return np.asarray(image)
        values = image
