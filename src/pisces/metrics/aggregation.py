"""State aggregation: classes of states that a metric puts close together, the quotient MDP and its value loss."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from pisces.errors import UserError, unknown_name
from pisces.metrics.exact.chain import Rows
from pisces.metrics.exact.metrics import bisimulation_metric, pi_bisimulation_metric, policy_similarity_metric
from pisces.metrics.exact.problem import MetricResult
from pisces.metrics.exact.reduction import reduce_chain
from pisces.metrics.mdp.bellman import solve_bellman
from pisces.metrics.mdp.finite_mdp import FiniteMDP, check_mdp
from pisces.metrics.mdp.planning import Plan, discounted_sums, policy_iteration, restricted_plan
from pisces.validation import as_integers, as_reals, check_discount

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Aggregation = Literal["bisimulation", "pi-bisimulation", "policy-similarity"]
METRICS: dict[str, Callable[..., MetricResult]] = {
    "bisimulation": bisimulation_metric,
    "pi-bisimulation": pi_bisimulation_metric,
    "policy-similarity": policy_similarity_metric,
}


class StateAggregation:
    """Merges states of a finite MDP that a metric puts within a distance, or into a number of classes.

    Representatives are chosen one by one, each the state furthest from those before (which needs at most the classes
    that the best cover with half the radius has). With `epsilon=0` the classes are those of exact equivalence, by
    partition refinement without any distance. Policies are the optimal ones.

    Attributes:
        labels_: class of every state, [S].
        representatives_: one state of every class, [C].
        radius_: certified bound on the distance of any state to its representative.
        quotient_: the FiniteMDP of the classes: rewards and transitions of the representatives.
        policy_: what to do in every class, [C, A]: the optimal policy of the quotient for "bisimulation", that of the
            representatives in the whole MDP for the others. In estimated MDPs only actions that have samples are
            taken, so states share a class only if these suit: for "bisimulation" the same ones. The quotient itself
            does not know which actions have samples.
        value_loss_bound_: bound on V*(s) - V(s) for every state s, where V is the value of acting by `policy_`. For
            "bisimulation" at most 2 radius / (1 - discount)^2, less if few states are far from their representatives;
            for "policy-similarity" min(radius, 1) / (1 - discount) times the largest loss of a single action;
            pi-bisimulation says nothing about actions, so its bound is that with a radius of 1. Never more than the
            range of values.

    Example:
        >>> import numpy as np
        >>> mdp = FiniteMDP(np.eye(3)[[1, 0, 1]][:, None, :], [[1.0], [0.0], [1.0]])
        >>> found = StateAggregation(epsilon=0, discount=0.9).fit(mdp)
        >>> found.labels_, found.quotient_.n_states, found.value_loss_bound_
        (array([0, 1, 0]), 2, 0.0)
    """

    labels_: IntArray
    representatives_: IntArray
    radius_: float
    quotient_: FiniteMDP
    policy_: FloatArray
    value_loss_bound_: float

    def __init__(
        self,
        metric: Aggregation = "bisimulation",
        *,
        discount: float,
        epsilon: float | None = None,
        n_clusters: int | None = None,
    ) -> None:
        """Stores the settings.

        Args:
            metric: "bisimulation", "pi-bisimulation" or "policy-similarity".
            discount: in [0, 1).
            epsilon: largest distance of a state to its representative; 0 merges equivalent states only.
            n_clusters: number of classes, instead of `epsilon`.
        """
        self.metric, self.discount, self.epsilon, self.n_clusters = metric, discount, epsilon, n_clusters

    def fit(self, mdp: FiniteMDP) -> Self:
        """Finds the classes of an MDP's states."""
        self._check()
        check_mdp("mdp", mdp)
        plan = policy_iteration(mdp, self.discount)
        if self.epsilon == 0:
            self.labels_, self.representatives_ = self._equivalent(mdp, plan)
            radii = np.zeros(mdp.n_states)
        else:
            result = self._distances(mdp, plan)
            distance = np.where(self._may_join(mdp, plan), result.distance, np.inf)
            largest = -np.inf if self.epsilon is None else self.epsilon - result.error_bound
            self.representatives_, self.labels_ = _cover(distance, largest, self.n_clusters)
            reached = result.distance[np.arange(mdp.n_states), self.representatives_[self.labels_]]
            radii = np.where(
                self.representatives_[self.labels_] == np.arange(mdp.n_states), 0, reached + result.error_bound
            )
        self.radius_ = float(radii.max())
        self.quotient_ = quotient_mdp(mdp, self.labels_, self.representatives_)
        if self.metric == "bisimulation":
            available = mdp.available[self.representatives_]
            self.policy_ = restricted_plan(self.quotient_, available, self.discount).policy
        else:
            self.policy_ = plan.policy[self.representatives_]
        self.value_loss_bound_ = self._loss_bound(mdp, plan, radii)
        return self

    def transform(self, states: ArrayLike) -> IntArray:
        """Returns the classes of states."""
        self._check_fitted()
        chosen = as_integers("states", states, "[n]")
        if chosen.size and (chosen.min() < 0 or chosen.max() >= len(self.labels_)):
            raise UserError(f"states must be from 0 to {len(self.labels_) - 1}, got {chosen.min()} to {chosen.max()}")
        return self.labels_[chosen]

    def fit_transform(self, mdp: FiniteMDP) -> IntArray:
        """Fits, and returns the classes of all states."""
        return self.fit(mdp).labels_

    def lift_policy(self, policy: ArrayLike | None = None) -> NDArray[Any]:
        """Returns the policy of all states that does in each what a policy of the classes does; None for `policy_`."""
        self._check_fitted()
        values = self.policy_ if policy is None else as_reals("policy", policy)
        if values.ndim == 0 or len(values) != len(self.representatives_):
            raise UserError(f"expected a policy of {len(self.representatives_)} classes, got shape {values.shape}")
        return np.asarray(values[self.labels_])

    def _check(self) -> None:
        check_discount(self.discount)
        if self.metric not in METRICS:
            raise unknown_name("metric", self.metric, METRICS)
        if (self.epsilon is None) == (self.n_clusters is None):
            raise UserError("pass either epsilon or n_clusters")
        epsilon, count = self.epsilon, self.n_clusters
        if epsilon is not None and not (isinstance(epsilon, numbers.Real) and 0 <= epsilon < np.inf):
            raise UserError(f"epsilon must be a distance >= 0, got {epsilon!r}")
        if count is not None and not (isinstance(count, numbers.Integral) and count >= 1):
            raise UserError(f"n_clusters must be an integer >= 1, got {count!r}")

    def _check_fitted(self) -> None:
        if not hasattr(self, "labels_"):
            raise UserError("this StateAggregation is not fitted yet; call fit(mdp) first")

    def _equivalent(self, mdp: FiniteMDP, plan: Plan) -> tuple[IntArray, IntArray]:
        if self.metric == "bisimulation":
            chain, features = mdp.chain(), [mdp.rewards[:, [action]] for action in range(mdp.n_actions)]
        else:
            chain = mdp.policy_chain(plan.policy)
            rewards = mdp.policy_rewards(plan.policy)[:, None]
            features = [rewards if self.metric == "pi-bisimulation" else plan.policy]
        if not mdp.available.all():
            # What a class does must have samples in every member.
            features.append(mdp.available.astype(np.float64) if self.metric == "bisimulation" else plan.policy)
        classes = reduce_chain(chain, features).class_of
        _, first, labels = np.unique(classes, return_index=True, return_inverse=True)
        order = np.argsort(first)  # classes are numbered by their first states
        return np.argsort(order)[labels], first[order]

    def _may_join(self, mdp: FiniteMDP, plan: Plan) -> NDArray[np.bool_]:
        """Whether a state may join the class of a representative [S, S]: what the class does has samples in it."""
        if self.metric != "bisimulation":
            return mdp.available[:, plan.policy.argmax(axis=1)]
        sets = np.unique(mdp.available, axis=0, return_inverse=True)[1].ravel()
        return np.asarray(sets[:, None] == sets)

    def _distances(self, mdp: FiniteMDP, plan: Plan) -> MetricResult:
        # A certified error far below epsilon wastes little of it.
        options: dict[str, Any] = {} if self.epsilon is None else {"tolerance": 1e-3 * self.epsilon}
        if self.metric != "bisimulation":
            options["policy_x"] = plan.policy
        return METRICS[self.metric](mdp, discount=self.discount, **options)

    def _loss_bound(self, mdp: FiniteMDP, plan: Plan, radii: FloatArray) -> float:
        if not radii.any() and self.metric != "pi-bisimulation":
            return 0.0
        horizon = 1 / (1 - float(self.discount))
        gaps = plan.values[:, None] - np.where(np.isfinite(plan.action_values), plan.action_values, np.inf)
        gap = max(0.0, float(gaps.max())) + 2 * plan.error_bound
        limit = min(gap * horizon, float(plan.values.max() - mdp.rewards.min() * horizon) + plan.error_bound)
        if self.metric == "bisimulation":
            # Distances bound differences of values only if all states have the same actions.
            return min(limit, self._bisimulation_loss(mdp, radii)) if mdp.available.all() else limit
        return min(limit, gap * horizon * min(self.radius_, 1.0)) if self.metric == "policy-similarity" else limit

    def _bisimulation_loss(self, mdp: FiniteMDP, radii: FloatArray) -> float:
        # |V*(s) - V_quotient| <= e(s) = radius(s) + discount * max_a P(. | r, a) e, where r represents s, as optimal
        # values differ by at most the distance. One step by the quotient's policy then loses at most 2 e(s) in V*.
        rows = (self.representatives_[self.labels_][:, None] * mdp.n_actions + np.arange(mdp.n_actions)).ravel()
        chosen = scipy.sparse.csr_array(mdp.transitions[rows])
        moves = Rows(chosen.indptr.astype(np.int64), chosen.indices.astype(np.int64), chosen.data)
        local = np.repeat(radii[:, None], mdp.n_actions, axis=1)
        error = solve_bellman(moves, local, float(self.discount))
        losses = discounted_sums(mdp.policy_chain(self.lift_policy()), 2 * error, self.discount)
        return float(losses.max()) * (1 + 1e-9)


def quotient_mdp(mdp: FiniteMDP, labels: ArrayLike, representatives: ArrayLike) -> FiniteMDP:
    """Returns the MDP of classes with the rewards and transitions of their representatives.

    R(c, a) = R(r_c, a), P(c' | c, a) = sum of P(s' | r_c, a) over the states s' of class c'.

    Args:
        mdp: the MDP, S states.
        labels: class of every state, integers [S].
        representatives: one state of every class, integers [C].
    """
    check_mdp("mdp", mdp)
    classes = as_integers("labels", labels, f"[{mdp.n_states}]")
    chosen = as_integers("representatives", representatives, "[C]")
    if not len(chosen):
        raise UserError("expected at least one representative, got none")
    for name, values, size, limit in (
        ("labels", classes, mdp.n_states, len(chosen)),
        ("representatives", chosen, len(chosen), mdp.n_states),
    ):
        if len(values) != size or values.min() < 0 or values.max() >= limit:
            raise UserError(f"expected {size} {name} from 0 to {limit - 1}, got {values.tolist()[:10]}")
    if (classes[chosen] != np.arange(len(chosen))).any():
        raise UserError("representatives must be states of their own classes, in the order of the classes")
    merge = scipy.sparse.csr_array(
        (np.ones(mdp.n_states), (np.arange(mdp.n_states), classes)), shape=(mdp.n_states, len(chosen))
    )
    rows = (chosen[:, None] * mdp.n_actions + np.arange(mdp.n_actions)).ravel()
    return FiniteMDP(scipy.sparse.csr_array(mdp.transitions[rows] @ merge), mdp.rewards[chosen])


def _cover(distance: FloatArray, largest: float, count: int | None) -> tuple[IntArray, IntArray]:
    """Chooses representatives, each furthest from those before, until all are near or there are enough.

    Distances are infinite where a state must not join a representative.
    """
    chosen = [0]
    nearest = distance[:, 0].copy()
    limit = min(len(distance), len(distance) if count is None else int(count))
    while len(chosen) < limit and nearest.max() > max(largest, 0.0):
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, distance[:, chosen[-1]])
    if not np.isfinite(nearest.max()):
        raise UserError(f"{count} classes are too few: states with different sampled actions cannot share one")
    return np.array(chosen), np.asarray(distance[:, chosen].argmin(axis=1), dtype=np.int64)
