"""What the metrics of MDPs have in common: checked arguments, policies, tolerances, and what results record."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pisces.errors import RoundingError, UserError
from pisces.metrics.costs import Cost, l1_distance, reward_difference, total_variation
from pisces.metrics.definition import MetricDefinition
from pisces.metrics.exact.chain import Chain
from pisces.metrics.exact.problem import MetricResult
from pisces.metrics.mdp.finite_mdp import FiniteMDP, check_mdp
from pisces.metrics.mdp.planning import PolicyChoice, choose_policy
from pisces.validation import as_integers, as_reals, check_discount, check_tolerance

FloatArray = NDArray[np.float64]
Policy = ArrayLike | Literal["optimal", "optimal-uniform"] | None
"""A policy [S, A] or actions [S]; None or "optimal" for the first optimal action of each state; "optimal-uniform" for
all optimal actions with equal probability."""
TOLERANCE = 1e-6
"""Default certified error, relative to the scale of the costs."""
SMALLEST = 1e-12
"""A relative tolerance is not pursued below this share of the largest possible distance."""
KNOWN_COSTS = (total_variation, l1_distance, reward_difference)


@dataclass(frozen=True, eq=False)
class Setting:
    """Two MDPs under policies."""

    mdp_x: FiniteMDP
    """The first MDP."""
    mdp_y: FiniteMDP
    """The second MDP; the same object for distances within one."""
    x: PolicyChoice
    """The policy of the first MDP."""
    y: PolicyChoice
    """The policy of the second; the same object if MDP and policy are the same."""

    @property
    def policies(self) -> tuple[FloatArray, FloatArray]:
        """Both policies, [n, A] and [m, A]."""
        return self.x.weights, self.y.weights

    @property
    def rewards(self) -> tuple[FloatArray, FloatArray]:
        """The expected rewards under the policies, [n] and [m]."""
        return self.mdp_x.policy_rewards(self.x.weights), self.mdp_y.policy_rewards(self.y.weights)

    def chains(self) -> tuple[Chain, Chain]:
        """The chains under the policies; one object twice if they are the same."""
        chain_x = self.mdp_x.policy_chain(self.x.weights)
        return chain_x, chain_x if self.y is self.x else self.mdp_y.policy_chain(self.y.weights)

    def definition(self, metric: str, discount: float, cost: Cost) -> MetricDefinition:
        """What a result of a metric with policies records."""
        return MetricDefinition(
            metric,
            float(discount),
            cost_name(cost),
            (self.mdp_x.n_states, self.mdp_y.n_states),
            (self.mdp_x.n_actions, self.mdp_y.n_actions),
            self.x is self.y,
            self.policies,
            (self.x.tied_states, self.y.tied_states),
        )


def resolve(mdp_x: FiniteMDP, mdp_y: FiniteMDP | None, policy_x: Policy, policy_y: Policy, discount: float) -> Setting:
    """Checks MDPs and policies and computes optimal ones where asked for."""
    check_discount(discount)
    if mdp_y is None and policy_y is None:
        policy_y = policy_x
    mdp_x, mdp_y = check_mdps(mdp_x, mdp_y, discount)
    x = choose_policy(policy_x, mdp_x, discount)
    if mdp_x is mdp_y and policy_x is policy_y:
        return Setting(mdp_x, mdp_y, x, x)
    y = choose_policy(policy_y, mdp_y, discount)
    return Setting(mdp_x, mdp_y, x, x if mdp_x is mdp_y and np.array_equal(x.weights, y.weights) else y)


def check_mdps(mdp_x: FiniteMDP, mdp_y: FiniteMDP | None, discount: float) -> tuple[FiniteMDP, FiniteMDP]:
    """Returns both MDPs, the first one twice if the second is None."""
    check_discount(discount)
    check_mdp("mdp_x", mdp_x)
    return mdp_x, mdp_x if mdp_y is None else check_mdp("mdp_y", mdp_y)


@dataclass(frozen=True)
class Accuracy:
    """The certified error at which a solver stops."""

    tolerance: float | None
    """The error; None for `TOLERANCE` times the scale of the costs, or the rounding error if that is larger."""
    relative: float | None
    """The error relative to the largest distance; None for an absolute one."""

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            check_tolerance(self.tolerance)
        if self.relative is not None:
            check_tolerance(self.relative, "relative_tolerance")
        if self.tolerance is not None and self.relative is not None:
            raise UserError("pass tolerance (absolute) or relative_tolerance, not both")

    def solve(self, solver: Callable[[float], MetricResult], scale: float, discount: float) -> MetricResult:
        """Runs a solver that takes an absolute tolerance; a relative one needs it twice if distances are small.

        Args:
            solver: returns a result whose error is at most its argument.
            scale: the largest cost, or about that.
            discount: in [0, 1).
        """
        if self.tolerance is not None:
            return solver(self.tolerance)
        if self.relative is None:
            try:
                return solver(TOLERANCE * (scale or 1.0))
            except RoundingError as error:  # nobody has asked for that tolerance, and the result tells its error
                return solver(error.reachable)
        limit = (scale or 1.0) / (1 - float(discount))
        target = self.relative * limit
        while True:
            result = solver(target)
            largest = float(np.nanmax(np.abs(result.distance), initial=0.0))
            if result.error_bound <= self.relative * (largest - result.error_bound):
                return result
            if target <= SMALLEST * limit:
                if largest > 0:
                    words = f"the error bound is {result.error_bound:.2g}, the largest distance {largest:.2g}"
                    warnings.warn(f"relative_tolerance={self.relative:g} is not reached: {words}", stacklevel=4)
                return result
            target = max(self.relative * (largest - result.error_bound), 1e-3 * target, SMALLEST * limit)


ROUNDING = 1e-12
"""Relative differences below this are taken for rounding."""


def reward_scale(mdp_x: FiniteMDP, mdp_y: FiniteMDP, cost: Cost) -> float:
    """The cost of the smallest and the largest reward; the largest reward if that is zero."""
    rewards = np.concatenate([mdp_x.rewards.ravel(), mdp_y.rewards.ravel()])
    ends, largest = np.array([rewards.min(), rewards.max()]), float(np.abs(rewards).max())
    spread = float(np.abs(as_reals("costs", cost(ends, ends))).max())
    return spread if spread > ROUNDING * largest else largest


def check_options(pairs: ArrayLike | None, threads: int | None, cost: Any) -> None:
    """Checks arguments that the solver itself takes as they are."""
    if pairs is not None:
        as_integers("pairs", pairs, "[k, 2]")
    whole = isinstance(threads, numbers.Integral) and not isinstance(threads, bool)
    if threads is not None and not (whole and threads >= 1):
        raise UserError(f"threads must be an integer >= 1, got {threads!r}: expected at least 1 thread")
    if not callable(cost):
        raise UserError(f"cost must be a function of two arrays, e.g. total_variation, got {cost!r}")


def checked_cost(cost: Cost) -> Cost:
    """Returns a cost function whose values are checked to be real numbers."""
    if cost in KNOWN_COSTS:
        return cost
    return lambda x, y: as_reals("costs", cost(x, y))


def cost_name(cost: Any) -> str:
    """The name of a cost function."""
    return str(getattr(cost, "__name__", type(cost).__name__))
