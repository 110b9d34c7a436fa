"""Behavioural metrics between the states of finite MDPs, exact up to a certified error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pisces.errors import UserError
from pisces.metrics.costs import Cost, reward_difference, total_variation
from pisces.metrics.markov_chain import Chain, Reduction, reduce_chain
from pisces.metrics.markov_pairs import Pairs, all_pairs, reached_pairs
from pisces.metrics.markov_progress import ProgressBar
from pisces.metrics.markov_solver import Progress, Solver
from pisces.metrics.markov_workers import Workers
from pisces.metrics.mdp import FiniteMDP, reward_rounding
from pisces.metrics.planning import given_or_optimal
from pisces.validation import check_discount, check_tolerance

FloatArray = NDArray[np.float64]
CHUNK = 1 << 17
"""Pairs per call into compiled code; between calls Python can be interrupted."""


@dataclass(frozen=True, eq=False)
class MetricResult:
    """Distances between the states of two MDPs and how exact they are."""

    distance: FloatArray
    """Distance of every pair of states, [n, m]; NaN for pairs that were neither requested nor reached."""

    error_bound: float
    """|distance - exact distance| <= error_bound for every pair, rounding included."""

    iterations: int
    """How often all transports (or, for MICo and Sinkhorn, the whole matrix) were solved."""


def policy_similarity_metric(
    mdp_x: FiniteMDP,
    policy_x: ArrayLike | None,
    mdp_y: FiniteMDP,
    policy_y: ArrayLike | None,
    discount: float,
    cost: Cost = total_variation,
    tolerance: float = 1e-6,
    *,
    pairs: ArrayLike | None = None,
    threads: int | None = None,
    progress: bool | Progress = False,
) -> MetricResult:
    """Policy similarity metric (PSM) between all states of two MDPs.

    d(x, y) = cost(policy_x(x), policy_y(y)) + discount * W1(d)(P_x^policy_x(. | x), P_y^policy_y(. | y))
    (Eq. 3, arXiv:2101.05265; with two different policies on one MDP, the generalised PSM of its appendix). Distances
    within one MDP: give it, and its policy, twice.

    Args:
        mdp_x: the first MDP, n states.
        policy_x: its policy [n, A] (or actions [n]); None for the optimal one.
        mdp_y: the second MDP, m states, with the same actions if the cost compares them.
        policy_y: its policy [m, A]; None for the optimal one.
        discount: in [0, 1).
        cost: cost of every pair of policy rows, e.g. total variation; it need not be symmetric or a metric.
        tolerance: the solver stops when the certified error is at most this.
        pairs: only these pairs [k, 2] of states, and the pairs they reach, are solved.
        threads: number of threads; all cores (at most 8) if None. The answer does not depend on it.
        progress: True for a progress bar, or a function of (rounds, certified error).

    Returns:
        Distances [n, m] with a certified error.
    """
    x, y = _policies(mdp_x, policy_x, mdp_y, policy_y, discount)
    side_x = (mdp_x.policy_chain(x), x)
    side_y = side_x if y is x else (mdp_y.policy_chain(y), y)
    return _solve((side_x, side_y), [cost], discount, tolerance, pairs, threads, progress)


def pi_bisimulation_metric(
    mdp_x: FiniteMDP,
    policy_x: ArrayLike | None,
    mdp_y: FiniteMDP,
    policy_y: ArrayLike | None,
    discount: float,
    cost: Cost = reward_difference,
    tolerance: float = 1e-6,
    *,
    pairs: ArrayLike | None = None,
    threads: int | None = None,
    progress: bool | Progress = False,
) -> MetricResult:
    """Bisimulation metric of two policies.

    d(x, y) = |R^policy_x(x) - R^policy_y(y)| + discount * W1(d)(P_x^policy_x(. | x), P_y^policy_y(. | y))
    (Eq. 1, arXiv:2101.05265).

    Args:
        mdp_x: the first MDP, n states.
        policy_x: its policy [n, A] (or actions [n]); None for the optimal one.
        mdp_y: the second MDP, m states.
        policy_y: its policy; None for the optimal one.
        discount: in [0, 1).
        cost: cost of every pair of expected rewards, given as arrays [n] and [m].
        tolerance: the solver stops when the certified error is at most this.
        pairs: only these pairs [k, 2] of states, and the pairs they reach, are solved.
        threads: number of threads; all cores (at most 8) if None. The answer does not depend on it.
        progress: True for a progress bar, or a function of (rounds, certified error).

    Returns:
        Distances [n, m] with a certified error.
    """
    x, y = _policies(mdp_x, policy_x, mdp_y, policy_y, discount)
    side_x = (mdp_x.policy_chain(x), mdp_x.policy_rewards(x)[:, None])
    side_y = side_x if y is x else (mdp_y.policy_chain(y), mdp_y.policy_rewards(y)[:, None])
    rounding = reward_rounding(mdp_x, mdp_y)
    return _solve((side_x, side_y), [_of_column(cost, 0)], discount, tolerance, pairs, threads, progress, rounding)


def bisimulation_metric(
    mdp_x: FiniteMDP,
    mdp_y: FiniteMDP,
    discount: float,
    tolerance: float = 1e-6,
    *,
    cost: Cost = reward_difference,
    pairs: ArrayLike | None = None,
    threads: int | None = None,
    progress: bool | Progress = False,
) -> MetricResult:
    """Bisimulation metric: states are close if every action has similar rewards and leads to similar states.

    d(x, y) = max_a |R(x, a) - R(y, a)| + discount * W1(d)(P_x(. | x, a), P_y(. | y, a))
    (appendix of arXiv:2101.05265).

    Args:
        mdp_x: the first MDP, n states.
        mdp_y: the second MDP, m states, with the same number of actions; action a means the same in both.
        discount: in [0, 1).
        tolerance: the solver stops when the certified error is at most this.
        cost: cost of every pair of rewards of one action, given as arrays [n] and [m].
        pairs: only these pairs [k, 2] of states, and the pairs they reach, are solved.
        threads: number of threads; all cores (at most 8) if None. The answer does not depend on it.
        progress: True for a progress bar, or a function of (rounds, certified error).

    Returns:
        Distances [n, m] with a certified error.
    """
    check_discount(discount)
    if mdp_x.actions != mdp_y.actions:
        raise UserError(f"expected the same number of actions in both MDPs, got {mdp_x.actions} and {mdp_y.actions}")
    side_x = (mdp_x.chain(), mdp_x.rewards)
    side_y = side_x if mdp_x is mdp_y else (mdp_y.chain(), mdp_y.rewards)
    costs = [_of_column(cost, action) for action in range(mdp_x.actions)]
    return _solve((side_x, side_y), costs, discount, tolerance, pairs, threads, progress)


Side = tuple[Chain, FloatArray]
"""A chain and the features [S, F] of its states that the cost compares."""


def _policies(
    mdp_x: FiniteMDP, policy_x: ArrayLike | None, mdp_y: FiniteMDP, policy_y: ArrayLike | None, discount: float
) -> tuple[FloatArray, FloatArray]:
    # One array twice if the MDP and the policy are the same, so that the symmetry can be used.
    x = given_or_optimal(policy_x, mdp_x, discount)
    if mdp_x is mdp_y and policy_x is policy_y:
        return x, x
    y = given_or_optimal(policy_y, mdp_y, discount)
    return x, x if mdp_x is mdp_y and np.array_equal(x, y) else y


def _of_column(cost: Cost, column: int) -> Cost:
    return lambda x, y: cost(np.asarray(x)[:, column], np.asarray(y)[:, column])


def _solve(
    sides: tuple[Side, Side],
    costs: Sequence[Cost],
    discount: float,
    tolerance: float,
    requested: ArrayLike | None,
    threads: int | None,
    progress: bool | Progress,
    cost_rounding: float = 0.0,
) -> MetricResult:
    check_tolerance(tolerance)
    (chain_x, features_x), (chain_y, features_y) = sides
    tables = [cost_table(cost, features_x, features_y) for cost in costs]
    symmetric = chain_x is chain_y and _is_symmetric(tables)
    x = reduce_chain(chain_x, tables)
    y = x if symmetric else reduce_chain(chain_y, [table.T for table in tables])
    pairs = _listed(x, y, requested, symmetric)
    chosen = (x.member[pairs.first], y.member[pairs.second])
    packed = np.stack([table[chosen] for table in tables], axis=1).ravel()
    del tables, chosen  # large beside what the solver needs
    with Workers(threads, CHUNK) as workers, _reporting(progress, tolerance) as report:
        solver = Solver(x.chain, y.chain, pairs, packed, float(discount), workers)
        solver.cost_rounding = cost_rounding
        solver.merged = len(x.member) < chain_x.states or len(y.member) < chain_y.states
        solution = solver.solve(tolerance, report)
        matrix = solver.matrix(solution.values)
    del solver
    return MetricResult(matrix[np.ix_(x.class_of, y.class_of)], solution.error, solution.rounds)


def cost_table(cost: Cost, features_x: FloatArray, features_y: FloatArray) -> FloatArray:
    """The cost of every pair of states, [n, m], checked."""
    table = np.asarray(cost(features_x, features_y), dtype=np.float64)
    if table.shape != (len(features_x), len(features_y)):
        raise UserError(f"expected a cost of shape {(len(features_x), len(features_y))}, got {table.shape}")
    if not np.isfinite(table).all():
        raise UserError("expected finite costs, got NaN or infinity")
    return table


def _is_symmetric(tables: Sequence[FloatArray]) -> bool:
    # Half the pairs suffice only if d(i, j) = d(j, i) and d(i, i) = 0, which these three properties imply.
    return all(
        not table.diagonal().any() and bool((table >= 0).all()) and np.array_equal(table, table.T) for table in tables
    )


def _listed(x: Reduction, y: Reduction, requested: ArrayLike | None, symmetric: bool) -> Pairs:
    if requested is None:
        return all_pairs(x.chain.states, y.chain.states, symmetric)
    pairs = np.asarray(requested)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise UserError(f"expected pairs of states as integers [k, 2], got {pairs.dtype} {list(pairs.shape)}")
    if pairs.size and (pairs.min() < 0 or (pairs.max(axis=0) >= (len(x.class_of), len(y.class_of))).any()):
        raise UserError(f"expected states below {len(x.class_of)} and {len(y.class_of)}, got {pairs.max(axis=0)}")
    classes = np.stack([x.class_of[pairs[:, 0]], y.class_of[pairs[:, 1]]], axis=1)
    return reached_pairs(x.chain, y.chain, classes, symmetric)


def _reporting(
    progress: bool | Progress, tolerance: float
) -> AbstractContextManager[Callable[[int, float], None] | None]:
    if isinstance(progress, bool):
        return ProgressBar(tolerance) if progress else nullcontext(None)
    if not callable(progress):
        raise UserError(f"expected progress as True, False or a function, got {progress!r}")
    return nullcontext(progress)
