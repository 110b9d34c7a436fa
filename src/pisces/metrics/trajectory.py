"""Policy similarity metric between two trajectories, with a cost that suits their actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.errors import UserError
from pisces.metrics.costs import l1_distance, total_variation
from pisces.metrics.sequence import Last, sequence_metric
from pisces.trajectories import Trajectory
from pisces.validation import check_discount, check_distances

FloatArray = NDArray[np.float64]
TrajectoryCost = Callable[[Trajectory, Trajectory], FloatArray]
"""A function of two trajectories of n and m states that returns the cost of every pair of states, [n, m]."""


def behavior_cost(x: Trajectory, y: Trajectory) -> FloatArray:
    """Cost between the actions of two trajectories in every pair of states.

    Total variation between policies (an integer action is a policy that always takes it if only one trajectory has
    policies), or else between integer actions (of several parts, [T, D]: 0 where all parts are equal and 1 elsewhere);
    L1 distance between continuous actions. For Gaussian policies, the 2-Wasserstein distance of every dimension of the
    action, sqrt((mean - mean')^2 + (std - std')^2), summed; a trajectory without `action_stds` has deviations of 0.

    Args:
        x: a trajectory of n states.
        y: a trajectory of m states in the same action space.

    Returns:
        The costs, [n, m].
    """
    policies = [_policies(one, other) for one, other in ((x, y), (y, x))]
    if policies[0] is not None and policies[1] is not None:
        return total_variation(policies[0], policies[1])
    if x.actions is None or y.actions is None:
        raise UserError("expected actions in both trajectories, or policies in both, got a mixture")
    discrete = [is_discrete(actions) for actions in (x.actions, y.actions)]
    if discrete[0] != discrete[1] or x.actions.shape[1:] != y.actions.shape[1:]:
        kinds = " and ".join(f"{t.dtype} {t.shape}" for t in (x.actions, y.actions))
        raise UserError(f"expected trajectories of one action space, got actions {kinds}")
    if not discrete[0]:
        return _continuous_cost(x, y)
    _, numbers = np.unique(np.concatenate([x.actions, y.actions]), axis=0, return_inverse=True)
    numbers = numbers.reshape(-1)
    return total_variation(numbers[: len(x)], numbers[len(x) :])


def _policies(trajectory: Trajectory, other: Trajectory) -> NDArray[Any] | None:
    """Returns a trajectory's policies; if only the other has some, those that always take its integer actions."""
    actions = trajectory.actions
    if trajectory.policies is not None or other.policies is None:
        return trajectory.policies
    if actions is None or actions.ndim != 1 or not is_discrete(actions):
        return None
    width = other.policies.shape[1]
    if actions.min() < 0 or actions.max() >= width:
        given = f"{actions.min()} to {actions.max()}"
        raise UserError(f"expected actions 0 to {width - 1} beside policies of {width} actions, got {given}")
    return np.asarray(np.eye(width)[actions.astype(np.int64)])


def _continuous_cost(x: Trajectory, y: Trajectory) -> FloatArray:
    if x.action_stds is None and y.action_stds is None:
        return l1_distance(x.actions, y.actions)  # type: ignore[arg-type]  # both are known to have actions
    total = np.zeros((len(x), len(y)))
    for (mean_x, std_x), (mean_y, std_y) in zip(_gaussians(x), _gaussians(y), strict=True):
        total += np.hypot(mean_x[:, None] - mean_y[None, :], std_x[:, None] - std_y[None, :])
    return total


def _gaussians(trajectory: Trajectory) -> list[tuple[FloatArray, FloatArray]]:
    """Returns mean and standard deviation [T] of every dimension of the actions."""
    means = np.asarray(trajectory.actions, dtype=np.float64).reshape(len(trajectory), -1)
    stds = np.zeros_like(means)
    if trajectory.action_stds is not None:
        stds = trajectory.action_stds.astype(np.float64).reshape(means.shape)
    return list(zip(means.T, stds.T, strict=True))


def check_trajectories(name: str, given: Any) -> int:
    """Returns the number of trajectories in a list, or raises if it is not one."""
    if not isinstance(given, Sequence) or not all(isinstance(one, Trajectory) for one in given):
        raise UserError(f"{name} must be a list of trajectories, got {type(given).__name__}")
    return len(given)


def is_discrete(actions: NDArray[Any]) -> bool:
    """Returns whether actions are discrete (boolean or integer) and not continuous."""
    return actions.dtype.kind in "biu"


def trajectory_metric(
    x: Trajectory,
    y: Trajectory,
    discount: float,
    cost: TrajectoryCost = behavior_cost,
    last: Last | None = None,
) -> FloatArray:
    """Distances between all states of two trajectories (Eq. 3 for deterministic dynamics, arXiv:2101.05265).

    A trajectory that terminated waits in its last state, as in `sequence_metric` with `last="self-loop"`. After the
    last state of a truncated one (`terminated=False`) nothing is known, so the sum stops there: d[n-1, j] is
    cost[n-1, j] if x is truncated, and d[i, m-1] is cost[i, m-1] if y is. Such distances are lower bounds, which leave
    out at most discount^k times the largest distance where k recorded steps follow.

    Example:
        >>> import numpy as np
        >>> x = Trajectory(np.zeros((3, 2)), actions=np.array([0, 1, 0]))
        >>> y = Trajectory(np.zeros((2, 2)), actions=np.array([1, 0]))
        >>> trajectory_metric(x, y, discount=0.5)
        array([[1.5, 0.5],
               [0. , 1. ],
               [1. , 0. ]])

    Args:
        x: a trajectory of n states.
        y: a trajectory of m states.
        discount: in [0, 1).
        cost: the cost at one step; the default gives the PSM.
        last: treats the ends of both trajectories alike, whether they terminated or not; see `sequence_metric`. None
            for the rule above.

    Returns:
        The distances, [n, m].
    """
    for name, one in (("x", x), ("y", y)):
        if not isinstance(one, Trajectory):
            raise UserError(f"{name} must be a Trajectory, got {type(one).__name__}; compare lists one pair at a time")
    if not callable(cost):
        raise UserError(f"cost must be a function of two trajectories, got {cost!r}")
    check_distances(len(x), len(y))
    costs = cost(x, y)
    if np.shape(costs) != (len(x), len(y)):
        raise UserError(f"the cost of trajectories of {len(x)} and {len(y)} states has shape {np.shape(costs)}")
    if last is None and not (x.terminated and y.terminated):
        return _truncated_metric(costs, discount, x.terminated, y.terminated)
    return sequence_metric(costs, discount=discount, last=last or "self-loop")


def _truncated_metric(cost: FloatArray, discount: float, x_terminated: bool, y_terminated: bool) -> FloatArray:
    """The metric of two trajectories of which at least one is truncated."""
    distance = sequence_metric(cost, discount=0.0)  # a checked copy of the costs
    check_discount(discount)
    n, m = distance.shape
    if x_terminated:
        for j in range(m - 2, -1, -1):
            distance[-1, j] += discount * distance[-1, j + 1]
    for i in range(n - 2, -1, -1):
        distance[i, :-1] += discount * distance[i + 1, 1:]
        if y_terminated:
            distance[i, -1] += discount * distance[i + 1, -1]
    return distance
