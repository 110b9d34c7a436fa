"""The policy similarity metric between two trajectories, with the cost that their actions call for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.errors import UserError
from pisces.metrics.costs import l1_distance, total_variation
from pisces.metrics.sequence import Last, sequence_metric
from pisces.trajectories import Trajectory

FloatArray = NDArray[np.float64]
TrajectoryCost = Callable[[Trajectory, Trajectory], FloatArray]
"""A function of two trajectories of n and m states that returns the cost of every pair of states, [n, m]."""


def behaviour_cost(x: Trajectory, y: Trajectory) -> FloatArray:
    """How differently two trajectories act in every pair of states.

    Total variation between policies where both have them, or else between integer actions (of several parts, [T, D]:
    0 where all parts are equal and 1 elsewhere); L1 distance between continuous actions.

    Args:
        x: a trajectory of n states.
        y: a trajectory of m states in the same action space.

    Returns:
        The costs, [n, m].
    """
    if x.policies is not None and y.policies is not None:
        return total_variation(x.policies, y.policies)
    if x.actions is None or y.actions is None:
        raise UserError("expected actions in both trajectories, or policies in both, got a mixture")
    discrete = [is_discrete(actions) for actions in (x.actions, y.actions)]
    if discrete[0] != discrete[1] or x.actions.shape[1:] != y.actions.shape[1:]:
        kinds = " and ".join(f"{t.dtype} {t.shape}" for t in (x.actions, y.actions))
        raise UserError(f"expected trajectories of one action space, got actions {kinds}")
    if not discrete[0]:
        return l1_distance(x.actions, y.actions)
    _, numbers = np.unique(np.concatenate([x.actions, y.actions]), axis=0, return_inverse=True)
    numbers = numbers.reshape(-1)
    return total_variation(numbers[: len(x)], numbers[len(x) :])


def is_discrete(actions: NDArray[Any]) -> bool:
    """Whether actions are choices, which are equal or not, and not quantities, which are near or far."""
    return actions.dtype.kind in "biu"


def trajectory_metric(
    x: Trajectory,
    y: Trajectory,
    discount: float,
    cost: TrajectoryCost = behaviour_cost,
    last: Last = "self-loop",
) -> FloatArray:
    """Distances between all states of two trajectories (Eq. 3 for deterministic dynamics, arXiv:2101.05265).

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
        cost: the cost at one step; without it the metric is PSM.
        last: what follows the last pair; see `sequence_metric`.

    Returns:
        The distances, [n, m].
    """
    return sequence_metric(cost(x, y), discount, last)
