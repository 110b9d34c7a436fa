"""Behavioral metrics between the states of finite MDPs and Markov chains, exact up to a certified error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pisces.errors import UserError
from pisces.metrics.costs import Cost, reward_difference, total_variation
from pisces.metrics.definition import MetricDefinition
from pisces.metrics.estimates.sampling import action_sampling_error, policy_sampling_error
from pisces.metrics.exact.chain import markov_chain
from pisces.metrics.exact.pair_costs import FeatureCosts, MatrixCosts
from pisces.metrics.exact.problem import Costs, MetricResult, Options, check_cost, solve_chains
from pisces.metrics.exact.records import Progress
from pisces.metrics.graphs import Sinks, state_features, transition_matrix
from pisces.metrics.mdp.finite_mdp import FiniteMDP, reward_rounding
from pisces.metrics.setting import (
    Accuracy,
    Policy,
    check_mdps,
    check_options,
    checked_cost,
    cost_name,
    resolve,
    reward_scale,
)
from pisces.validation import as_reals, check_discount

FloatArray = NDArray[np.float64]


def policy_similarity_metric(
    mdp_x: FiniteMDP,
    mdp_y: FiniteMDP | None = None,
    *,
    discount: float,
    policy_x: Policy = None,
    policy_y: Policy = None,
    cost: Cost = total_variation,
    tolerance: float | None = None,
    relative_tolerance: float | None = None,
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
        policy_x: policy of `mdp_x` [n, A] (or actions [n]). None or "optimal" takes the first optimal action of each
            state, "optimal-uniform" all of them with equal probability; see `optimal_policy`.
        policy_y: policy of `mdp_y` [m, A], likewise; None for `policy_x` if `mdp_y` is None.
        cost: cost of every pair of policy rows, e.g. total variation; it need not be symmetric or a metric.
        tolerance: the solver stops when the certified error is at most this; 1e-6 if both tolerances are None, or the
            rounding error if that is larger.
        relative_tolerance: the same relative to the largest distance.
        pairs: only these pairs [k, 2] of states are solved, and what they need; the result's distances are [k] then.
        threads: number of threads; all cores (at most 8) if None. The result does not depend on it.
        progress: called after each round with (rounds, certified error).

    Returns:
        Distances [n, m], or [k] of the pairs given, with a certified error.
    """
    check_options(pairs, threads, cost)
    accuracy = Accuracy(tolerance, relative_tolerance)
    setting = resolve(mdp_x, mdp_y, policy_x, policy_y, discount)
    chain_x, chain_y = setting.chains()
    costs = checked_cost(cost)

    def solve(target: float) -> MetricResult:
        options = Options(discount, target, pairs, threads, progress)
        return solve_chains(chain_x, chain_y, FeatureCosts(costs, [setting.policies]), options)

    result = accuracy.solve(solve, 1.0, discount)
    return replace(
        result,
        definition=setting.definition("policy-similarity", discount, cost),
        sampling=policy_sampling_error(result, setting, cost, discount, of_rewards=False),
    )


def pi_bisimulation_metric(
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
        policy_x: policy of `mdp_x` [n, A] (or actions [n]). None or "optimal" takes the first optimal action of each
            state, "optimal-uniform" all of them with equal probability; see `optimal_policy`.
        policy_y: policy of `mdp_y` [m, A], likewise; None for `policy_x` if `mdp_y` is None.
        cost: cost of every pair of expected rewards, given as arrays [n] and [m].
        tolerance: the solver stops when the certified error is at most this; 1e-6 times the cost of the
            smallest and the largest reward if both tolerances are None, or the rounding error if that is larger.
        relative_tolerance: the same relative to the largest distance.
        pairs: only these pairs [k, 2] of states are solved, and what they need; the result's distances are [k] then.
        threads: number of threads; all cores (at most 8) if None. The result does not depend on it.
        progress: called after each round with (rounds, certified error).

    Returns:
        Distances [n, m], or [k] of the pairs given, with a certified error.
    """
    check_options(pairs, threads, cost)
    accuracy = Accuracy(tolerance, relative_tolerance)
    setting = resolve(mdp_x, mdp_y, policy_x, policy_y, discount)
    chain_x, chain_y = setting.chains()
    costs, rounding = checked_cost(cost), reward_rounding(setting.mdp_x, setting.mdp_y)

    def solve(target: float) -> MetricResult:
        options = Options(discount, target, pairs, threads, progress)
        return solve_chains(chain_x, chain_y, FeatureCosts(costs, [setting.rewards]), options, rounding)

    result = accuracy.solve(solve, reward_scale(setting.mdp_x, setting.mdp_y, cost), discount)
    return replace(
        result,
        definition=setting.definition("pi-bisimulation", discount, cost),
        sampling=policy_sampling_error(result, setting, cost, discount, of_rewards=True),
    )


def bisimulation_metric(
    mdp_x: FiniteMDP,
    mdp_y: FiniteMDP | None = None,
    *,
    discount: float,
    cost: Cost = reward_difference,
    tolerance: float | None = None,
    relative_tolerance: float | None = None,
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
        tolerance: the solver stops when the certified error is at most this; 1e-6 times the cost of the
            smallest and the largest reward if both tolerances are None, or the rounding error if that is larger.
        relative_tolerance: the same relative to the largest distance.
        pairs: only these pairs [k, 2] of states are solved, and what they need; the result's distances are [k] then.
        threads: number of threads; all cores (at most 8) if None. The result does not depend on it.
        progress: called after each round with (rounds, certified error).

    Returns:
        Distances [n, m], or [k] of the pairs given, with a certified error.
    """
    check_options(pairs, threads, cost)
    accuracy = Accuracy(tolerance, relative_tolerance)
    mdp_x, mdp_y = check_mdps(mdp_x, mdp_y, discount)
    counts = (mdp_x.n_actions, mdp_y.n_actions)
    if counts[0] != counts[1]:
        raise UserError(f"expected the same number of actions in both MDPs, got {counts[0]} and {counts[1]}")
    chain_x = mdp_x.chain()
    chain_y = chain_x if mdp_x is mdp_y else mdp_y.chain()
    rewards, costs = list(zip(mdp_x.rewards.T, mdp_y.rewards.T, strict=True)), checked_cost(cost)

    def solve(target: float) -> MetricResult:
        options = Options(discount, target, pairs, threads, progress)
        return solve_chains(chain_x, chain_y, FeatureCosts(costs, rewards), options)

    result = accuracy.solve(solve, reward_scale(mdp_x, mdp_y, cost), discount)
    states = (mdp_x.n_states, mdp_y.n_states)
    within = mdp_x is mdp_y
    definition = MetricDefinition("bisimulation", float(discount), cost_name(cost), states, counts, within)
    return replace(result, definition=definition, sampling=action_sampling_error(result, mdp_x, mdp_y, cost, discount))


def chain_metric(
    P: Any,  # noqa: N803 (the usual name of a transition matrix)
    Q: Any = None,  # noqa: N803
    *,
    cost: ArrayLike | None = None,
    labels: Any = None,
    discount: float,
    sinks: Sinks = "self-loop",
    tolerance: float | None = None,
    relative_tolerance: float | None = None,
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
        P: transition probabilities of the first chain [n, n], dense or scipy.sparse; rows sum to 1. Or a networkx
            graph: its random walk, in the order of `P.nodes`, where the probability of an edge is its share of the
            "weight" (1 without one) that leaves its node.
        Q: the second chain, m states; None for `P`.
        cost: cost of every pair of states, [n, m].
        labels: instead of `cost`, what states are compared by: one label or row of features per state, for two chains
            a pair of both, or the name of a node attribute. Floats, and integers beside
            floats, cost their L1 distance, other labels 0 or 1.
        discount: in [0, 1).
        sinks: "self-loop" keeps nodes without outgoing weight where they are, "error" refuses them.
        tolerance: the solver stops when the certified error is at most this; 1e-6 times the largest cost if both
            tolerances are None, or the rounding error if that is larger.
        relative_tolerance: the same relative to the largest distance.
        pairs: only these pairs [k, 2] of states are solved, and what they need; the result's distances are [k] then.
        threads: number of threads; all cores (at most 8) if None. The result does not depend on it.
        progress: called after each round with (rounds, certified error).

    Returns:
        Distances [n, m], or [k] of the pairs given, with a certified error.
    """
    check_options(pairs, threads, reward_difference)
    accuracy = Accuracy(tolerance, relative_tolerance)
    chain_x = markov_chain(transition_matrix("P", P, sinks))
    chain_y = chain_x if Q is None else markov_chain(transition_matrix("Q", Q, sinks))
    shape = (chain_x.n_states, chain_y.n_states)
    costs = _chain_costs(cost, labels, (P, Q), shape)

    def solve(target: float) -> MetricResult:
        return solve_chains(chain_x, chain_y, costs, Options(discount, target, pairs, threads, progress))

    check_discount(discount)
    result = accuracy.solve(solve, max(abs(bound) for bound in costs.bounds()), discount)
    return replace(
        result,
        definition=MetricDefinition(
            "chain", float(discount), "labels" if cost is None else "matrix", shape, (1, 1), chain_x is chain_y
        ),
    )


def _chain_costs(cost: ArrayLike | None, labels: Any, chains: tuple[Any, Any], shape: tuple[int, int]) -> Costs:
    if (cost is None) == (labels is None):
        raise UserError("pass either cost [n, m] or labels")
    if labels is None:
        return MatrixCosts(check_cost(as_reals("cost", cost), shape))
    compared, first, second = state_features(labels, chains)
    if (len(first), len(second)) != shape:
        raise UserError(f"expected one label per state, {shape[0]} and {shape[1]}, got {len(first)} and {len(second)}")
    return FeatureCosts(compared, [(first, second)])
