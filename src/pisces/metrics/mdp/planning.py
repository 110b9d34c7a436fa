"""Optimal policies of finite MDPs, and values of any policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from pisces.errors import unknown_name
from pisces.metrics.exact.chain import Chain
from pisces.metrics.mdp.bellman import optimal_action_values
from pisces.metrics.mdp.finite_mdp import FiniteMDP, check_mdp, check_policy
from pisces.metrics.mdp.linear import discounted_solution
from pisces.validation import check_discount

FloatArray = NDArray[np.float64]
Ties = Literal["first", "uniform"]
"""What a policy does where several actions are optimal: it takes the first, or all with equal probability."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Optimal values and all optimal actions of an MDP, each certified for its state."""

    values: FloatArray
    """Optimal value of every state, [S]."""

    action_values: FloatArray
    """Optimal value of every action, [S, A]; -inf for an action without samples in an estimated MDP."""

    action_errors: FloatArray
    """|action_values - exact action values| <= action_errors, [S, A], rounding of the MDP's numbers included."""

    optimal_actions: NDArray[np.bool_]
    """Whether an action is optimal or cannot be told apart from an optimal one by its certified value, [S, A]."""

    @property
    def error_bound(self) -> float:
        """|values - exact optimal values| <= error_bound for every state."""
        return float(self.action_errors[self.optimal_actions].max())

    @property
    def tied_states(self) -> NDArray[np.bool_]:
        """Whether a state has several optimal actions, or several that cannot be told apart, [S]."""
        return np.asarray(self.optimal_actions.sum(axis=1) > 1)

    @property
    def policy(self) -> FloatArray:
        """The policy that takes the first optimal action, [S, A]; rounding does not change the choice between ties."""
        return np.asarray(np.eye(self.optimal_actions.shape[1])[self.optimal_actions.argmax(axis=1)])

    @property
    def uniform_policy(self) -> FloatArray:
        """The policy that takes all optimal actions with equal probability, [S, A]."""
        return np.asarray(self.optimal_actions / self.optimal_actions.sum(axis=1, keepdims=True))


def policy_iteration(mdp: FiniteMDP, discount: float) -> Plan:
    """Computes the optimal values and all optimal actions by policy iteration.

    V(s) = max_a R(s, a) + discount * sum_s' P(s' | s, a) V(s')

    Each action value has a certified error of its own, which shrinks with the values around it: far from a sparse
    reward, actions are told apart by values of 1e-19 as they are by values of 1 next to it. Actions whose intervals
    (value - error, value + error) overlap with that of the best one count as optimal.

    Args:
        mdp: the MDP.
        discount: in [0, 1).
    """
    check_mdp("mdp", mdp)
    return restricted_plan(mdp, mdp.available, discount)


def restricted_plan(mdp: FiniteMDP, available: NDArray[np.bool_], discount: float) -> Plan:
    """`policy_iteration` among the available actions [S, A], of which every state has one."""
    check_discount(discount)
    rewards = np.where(available, mdp.rewards, -np.inf)
    found = optimal_action_values(mdp.transitions, rewards, float(discount))
    return Plan(found.values.max(axis=1), found.values, found.errors, found.optimal)


def optimal_policy(mdp: FiniteMDP, discount: float, *, ties: Ties = "first") -> FloatArray:
    """The optimal policy as probabilities [S, A].

    Args:
        mdp: the MDP.
        discount: in [0, 1).
        ties: "first" takes the first optimal action of each state, "uniform" all with equal probability.
    """
    if ties not in ("first", "uniform"):
        raise unknown_name("ties", ties, ("first", "uniform"))
    plan = policy_iteration(mdp, discount)
    return plan.policy if ties == "first" else plan.uniform_policy


@dataclass(frozen=True, eq=False)
class PolicyChoice:
    """A policy that a metric uses."""

    weights: FloatArray
    """The policy, [S, A]."""

    tied_states: int
    """The number of states in which an optimal policy chose between several optimal actions; 0 for given policies."""


def choose_policy(policy: ArrayLike | str | None, mdp: FiniteMDP, discount: float) -> PolicyChoice:
    """A given policy, checked, or an optimal one for None, "optimal" or "optimal-uniform"."""
    check_discount(discount)
    if policy is not None and not isinstance(policy, str):
        return PolicyChoice(check_policy(policy, mdp), 0)
    if policy not in (None, "optimal", "optimal-uniform"):
        raise unknown_name("policy", policy, ("optimal", "optimal-uniform"))
    plan = policy_iteration(mdp, discount)
    weights = plan.uniform_policy if policy == "optimal-uniform" else plan.policy
    return PolicyChoice(weights, int(plan.tied_states.sum()))


def policy_values(mdp: FiniteMDP, policy: ArrayLike, discount: float) -> FloatArray:
    """Value of every state under a policy: V = R_pi + discount * P_pi V, [S]."""
    return discounted_sums(mdp.policy_chain(policy), mdp.policy_rewards(policy), discount)


def discounted_sums(chain: Chain, amounts: FloatArray, discount: float) -> FloatArray:
    """Expected discounted sum of amounts [S] along a chain: the solution v of v = amounts + discount * P v."""
    check_discount(discount)
    size = chain.n_states
    rows = scipy.sparse.csr_array((chain.probability, chain.next_state, chain.pointer), shape=(size, size))
    return discounted_solution(rows, amounts, float(discount))
