"""Behavioral metrics between the states of finite MDPs and Markov chains, exact up to a certified error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pisces.errors import UserError
from pisces.metrics.costs import Cost, reward_difference, total_variation
from pisces.metrics.exact.chain import markov_chain
from pisces.metrics.exact.problem import MetricResult, Options, check_cost, cost_table, solve_chains
from pisces.metrics.exact.solver import Progress
from pisces.metrics.mdp.finite_mdp import FiniteMDP, reward_rounding
from pisces.metrics.mdp.planning import given_or_optimal

FloatArray = NDArray[np.float64]


def policy_similarity_metric(
    mdp_x: FiniteMDP,
    mdp_y: FiniteMDP | None = None,
    *,
    discount: float,
    policy_x: ArrayLike | None = None,
    policy_y: ArrayLike | None = None,
    cost: Cost = total_variation,
    tolerance: float = 1e-6,
    pairs: ArrayLike | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> MetricResult:
    """Policy similarity metric (PSM) between all states of two MDPs, or within one.

    d(x, y) = cost(policy_x(x), policy_y(y)) + discount * W1(d)(P_x^policy_x(. | x), P_y^policy_y(. | y))
    (Eq. 3, arXiv:2101.05265; with two different policies on one MDP, the generalized PSM of its appendix).

    Args:
        mdp_x: the first MDP, n states.
        mdp_y: the second MDP, m states, with the same actions if the cost compares them; None for `mdp_x`.
        discount: in [0, 1).
        policy_x: policy of `mdp_x` [n, A] (or actions [n]); None for the optimal one.
        policy_y: policy of `mdp_y` [m, A]; None for the optimal one, or for `policy_x` if `mdp_y` is None.
        cost: cost of every pair of policy rows, e.g. total variation; it need not be symmetric or a metric.
        tolerance: the solver stops when the certified error is at most this.
        pairs: only these pairs [k, 2] of states, and the pairs that they reach, are solved.
        threads: number of threads; all cores (at most 8) if None. The result does not depend on it.
        progress: called after each round with (rounds, certified error).

    Returns:
        Distances [n, m] with a certified error.
    """
    options = Options(discount, tolerance, pairs, threads, progress)
    mdp_y, x, y = resolve_policies(mdp_x, mdp_y, policy_x, policy_y, discount)
    chain_x = mdp_x.policy_chain(x)
    chain_y = chain_x if y is x else mdp_y.policy_chain(y)
    return solve_chains(chain_x, chain_y, lambda: [cost_table(cost, x, y)], options)


def pi_bisimulation_metric(
    mdp_x: FiniteMDP,
    mdp_y: FiniteMDP | None = None,
    *,
    discount: float,
    policy_x: ArrayLike | None = None,
    policy_y: ArrayLike | None = None,
    cost: Cost = reward_difference,
    tolerance: float = 1e-6,
    pairs: ArrayLike | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> MetricResult:
    """Bisimulation metric of two policies, between all states of two MDPs or within one.

    d(x, y) = |R^policy_x(x) - R^policy_y(y)| + discount * W1(d)(P_x^policy_x(. | x), P_y^policy_y(. | y))
    (Eq. 1, arXiv:2101.05265).

    Args:
        mdp_x: the first MDP, n states.
        mdp_y: the second MDP, m states; None for `mdp_x`.
        discount: in [0, 1).
        policy_x: policy of `mdp_x` [n, A] (or actions [n]); None for the optimal one.
        policy_y: policy of `mdp_y` [m, A]; None for the optimal one, or for `policy_x` if `mdp_y` is None.
        cost: cost of every pair of expected rewards, given as arrays [n] and [m].
        tolerance: the solver stops when the certified error is at most this.
        pairs: only these pairs [k, 2] of states, and the pairs that they reach, are solved.
        threads: number of threads; all cores (at most 8) if None. The result does not depend on it.
        progress: called after each round with (rounds, certified error).

    Returns:
        Distances [n, m] with a certified error.
    """
    options = Options(discount, tolerance, pairs, threads, progress)
    mdp_y, x, y = resolve_policies(mdp_x, mdp_y, policy_x, policy_y, discount)
    chain_x = mdp_x.policy_chain(x)
    chain_y = chain_x if y is x else mdp_y.policy_chain(y)
    rewards = mdp_x.policy_rewards(x), mdp_y.policy_rewards(y)
    return solve_chains(chain_x, chain_y, lambda: [cost_table(cost, *rewards)], options, reward_rounding(mdp_x, mdp_y))


def bisimulation_metric(
    mdp_x: FiniteMDP,
    mdp_y: FiniteMDP | None = None,
    *,
    discount: float,
    cost: Cost = reward_difference,
    tolerance: float = 1e-6,
    pairs: ArrayLike | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> MetricResult:
    """Bisimulation metric: states are close if every action has similar rewards and leads to similar states.

    d(x, y) = max_a |R(x, a) - R(y, a)| + discount * W1(d)(P_x(. | x, a), P_y(. | y, a))
    (appendix of arXiv:2101.05265).

    Args:
        mdp_x: the first MDP, n states.
        mdp_y: the second MDP, m states, with the same number of actions; action a means the same in both. None for
            `mdp_x`.
        discount: in [0, 1).
        cost: cost of every pair of rewards of one action, given as arrays [n] and [m].
        tolerance: the solver stops when the certified error is at most this.
        pairs: only these pairs [k, 2] of states, and the pairs that they reach, are solved.
        threads: number of threads; all cores (at most 8) if None. The result does not depend on it.
        progress: called after each round with (rounds, certified error).

    Returns:
        Distances [n, m] with a certified error.
    """
    options = Options(discount, tolerance, pairs, threads, progress)
    mdp_y = mdp_x if mdp_y is None else mdp_y
    if mdp_x.n_actions != mdp_y.n_actions:
        counts = f"{mdp_x.n_actions} and {mdp_y.n_actions}"
        raise UserError(f"expected the same number of actions in both MDPs, got {counts}")
    chain_x = mdp_x.chain()
    chain_y = chain_x if mdp_x is mdp_y else mdp_y.chain()
    rewards = list(zip(mdp_x.rewards.T, mdp_y.rewards.T, strict=True))
    return solve_chains(chain_x, chain_y, lambda: [cost_table(cost, x, y) for x, y in rewards], options)


def chain_metric(
    P: Any,  # noqa: N803 (the usual name of a transition matrix)
    Q: Any = None,  # noqa: N803
    *,
    cost: ArrayLike,
    discount: float,
    tolerance: float = 1e-6,
    pairs: ArrayLike | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> MetricResult:
    """Discounted metric between all states of two Markov chains, or within one.

    d(x, y) = cost[x, y] + discount * W1(d)(P(. | x), Q(. | y))

    Example:
        >>> chain_metric([[0.5, 0.5], [0.0, 1.0]], cost=[[0.0, 1.0], [1.0, 0.0]], discount=0.5).distance.round(6)
        array([[0.      , 1.333333],
               [1.333333, 0.      ]])

    Args:
        P: transition probabilities of the first chain [n, n], dense or scipy.sparse; rows sum to 1.
        Q: transition probabilities of the second chain [m, m]; None for `P`.
        cost: cost of every pair of states, [n, m].
        discount: in [0, 1).
        tolerance: the solver stops when the certified error is at most this.
        pairs: only these pairs [k, 2] of states, and the pairs that they reach, are solved.
        threads: number of threads; all cores (at most 8) if None. The result does not depend on it.
        progress: called after each round with (rounds, certified error).

    Returns:
        Distances [n, m] with a certified error.
    """
    options = Options(discount, tolerance, pairs, threads, progress)
    chain_x = markov_chain(P)
    chain_y = chain_x if Q is None else markov_chain(Q)
    shape = (chain_x.n_states, chain_y.n_states)
    return solve_chains(chain_x, chain_y, lambda: [check_cost(cost, shape)], options)


def resolve_policies(
    mdp_x: FiniteMDP,
    mdp_y: FiniteMDP | None,
    policy_x: ArrayLike | None,
    policy_y: ArrayLike | None,
    discount: float,
) -> tuple[FiniteMDP, FloatArray, FloatArray]:
    """Returns the second MDP and both policies; one array twice if the MDP and the policy are the same."""
    if mdp_y is None:
        mdp_y, policy_y = mdp_x, policy_x if policy_y is None else policy_y
    x = given_or_optimal(policy_x, mdp_x, discount)
    if mdp_x is mdp_y and policy_x is policy_y:
        return mdp_y, x, x
    y = given_or_optimal(policy_y, mdp_y, discount)
    return mdp_y, x, x if mdp_x is mdp_y and np.array_equal(x, y) else y
