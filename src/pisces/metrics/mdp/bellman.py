"""Bellman equations of finite MDPs: solutions, and errors certified for each state."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pisces.metrics.exact.chain import Rows
from pisces.metrics.mdp.linear import discounted_solution

FloatArray = NDArray[np.float64]
UNIT = 2.0**-52
"""Relative spacing of double precision numbers."""
TINY = 2.0**-1070
"""More than the absolute error of a product that underflows."""
SWEEPS = 4
"""Sweeps between two evaluations of a policy; they spread values faster than one improvement does."""
MAX_SWEEPS = 5000
"""Sweeps at most before the errors are certified."""
MAX_IMPROVEMENTS = 1000
"""Improvements of the policy at most; what is missing then shows in the certified errors."""
CERTIFICATE_ATTEMPTS = 100
"""Times that a bound is raised to what it must exceed, before one bound for all states is taken."""
LARGEST = 2.0**900
"""The unit that rewards are scaled to, so that values may lie 590 decades apart before they underflow."""


@dataclass(frozen=True)
class ActionValues:
    """Values of all actions, with certified errors."""

    values: FloatArray
    """R(s, a) + discount * sum_s' P(s' | s, a) V(s') for the optimal V, [S, A]; -inf for actions left out."""

    errors: FloatArray
    """|values - exact values| <= errors, [S, A], also if the MDP's numbers were rounded by a few units."""

    optimal: NDArray[np.bool_]
    """Whether an action may be optimal: value + error >= the largest value - error of its state, [S, A]."""


def optimal_action_values(transitions: scipy.sparse.csr_array, rewards: FloatArray, discount: float) -> ActionValues:
    """Computes the optimal action values with a certified error for each state and action.

    For approximate values v with rounding errors rho(s, a) of their action values Q(s, a), any w >= 0 with
    w(s) >= Q(s, a) - v(s) + rho(s, a) + discount * P(. | s, a) w for all actions, and the same with |Q(s, a) - v(s)|
    for a greedy one, bounds |v - V*|: v + w does not grow under the Bellman operator and v - w does not shrink. Errors
    are thus as small as values are: rounding at states with large values counts only as far as it is reached.

    Args:
        transitions: next-state probabilities, [S * A, S].
        rewards: [S, A]; -inf for actions that are not available.
        discount: in [0, 1).
    """
    largest = float(np.abs(rewards, where=np.isfinite(rewards), out=np.zeros_like(rewards)).max())
    exponent = np.frexp(LARGEST)[1] - np.frexp(largest)[1] if largest else 0
    rewards = np.ldexp(rewards, exponent)
    rows = Rows(transitions.indptr.astype(np.int64), transitions.indices.astype(np.int64), transitions.data)
    values = solve_bellman(rows, rewards, discount)
    quality, rounding = _action_values(rows, rewards, discount, values)
    excess = np.where(np.isfinite(rewards), quality - values[:, None], -np.inf)
    greedy = (np.arange(len(values)), quality.argmax(axis=1))
    excess[greedy] = np.abs(excess[greedy])
    reached = _certified_bound(rows, excess, rounding, discount)
    errors = rounding + discount * _expected(rows, reached).reshape(rewards.shape)
    optimal = quality + errors >= (quality - errors).max(axis=1, keepdims=True)
    return ActionValues(np.ldexp(quality, -exponent), np.ldexp(errors, -exponent), optimal)


def solve_bellman(rows: Rows, rewards: FloatArray, discount: float) -> FloatArray:
    """Returns V with V(s) = max_a R(s, a) + discount * P(. | s, a) V up to rounding, by policy iteration, [S]."""
    values = np.zeros(len(rewards))
    policy = np.full(len(rewards), -1)
    for _ in range(MAX_IMPROVEMENTS):
        for sweep in range(SWEEPS):
            _sweep(rows, rewards, discount, sweep % 2 == 1, values)
        quality, rounding = _action_values(rows, rewards, discount, values)
        best = quality.argmax(axis=1)
        # An action is replaced only by one that is better beyond rounding, so that improvements come to an end.
        kept = np.arange(len(policy)), policy
        worth = (quality.max(axis=1) - quality[kept] > 2 * rounding[kept]) | (policy < 0)
        if not worth.any():
            break
        policy = np.where(worth, best, policy)
        values = _policy_values(rows, rewards, discount, policy)
    for sweep in range(MAX_SWEEPS):
        if _sweep(rows, rewards, discount, sweep % 2 == 1, values) <= 4 * UNIT:
            break
    return values


def _policy_values(rows: Rows, rewards: FloatArray, discount: float, policy: NDArray[np.int64]) -> FloatArray:
    states, actions = rewards.shape
    shape = (states * actions, states)
    chosen = np.arange(states) * actions + policy
    matrix = scipy.sparse.csr_array((rows.probability, rows.next_state, rows.pointer), shape=shape)[chosen]
    return discounted_solution(matrix, rewards.ravel()[chosen], discount)


def _action_values(
    rows: Rows, rewards: FloatArray, discount: float, values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Returns action values [S, A] and bounds on their rounding errors; the numbers of the MDP may be rounded, too."""
    quality = rewards + discount * _expected(rows, values).reshape(rewards.shape)
    size = np.abs(rewards) + discount * _expected(rows, np.abs(values)).reshape(rewards.shape)
    entries = np.diff(rows.pointer).reshape(rewards.shape)
    rounding = np.where(np.isfinite(rewards), (2 * entries + 8) * (UNIT * size + TINY), 0.0)
    return quality, rounding


def _expected(rows: Rows, values: FloatArray) -> FloatArray:
    shape = (len(rows.pointer) - 1, len(values))
    matrix = scipy.sparse.csr_array((rows.probability, rows.next_state, rows.pointer), shape=shape)
    return np.asarray(matrix @ values)


def _certified_bound(rows: Rows, excess: FloatArray, rounding: FloatArray, discount: float) -> FloatArray:
    """Returns w with w(s) >= excess(s, a) + rounding(s, a) + discount * P(. | s, a) w for all actions."""
    bound = solve_bellman(rows, excess + 2 * rounding, discount)
    for _ in range(CERTIFICATE_ATTEMPTS):
        needed = (excess + rounding + discount * _expected(rows, bound).reshape(excess.shape)).max(axis=1)
        if (needed <= bound).all():
            return bound
        bound = np.maximum(bound, needed) * (1 + 1e-9)
    return np.full(len(bound), 1.01 * (excess + rounding).max() / (1 - discount))


@numba.njit(cache=True, nogil=True)
def _sweep(rows, rewards, discount, backward, values):  # type: ignore[no-untyped-def]
    # Updates all states in place, in one direction, and returns the largest change relative to the sum's terms.
    pointer, next_state, probability = rows
    states, actions = rewards.shape
    largest = 0.0
    for position in range(states):
        state = states - 1 - position if backward else position
        best, best_size = -np.inf, 0.0
        for action in range(actions):
            total, size = 0.0, 0.0
            for e in range(pointer[state * actions + action], pointer[state * actions + action + 1]):
                term = probability[e] * values[next_state[e]]
                total += term
                size += abs(term)
            total = rewards[state, action] + discount * total
            if total > best:
                best, best_size = total, abs(rewards[state, action]) + discount * size
        change = abs(best - values[state])
        if change > largest * best_size:
            largest = change / best_size if best_size > 0.0 else np.inf
        values[state] = best
    return largest
