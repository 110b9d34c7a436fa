"""Costs between the states of two sequences at one step, as [n, m] matrices.

Each takes one array per sequence and returns the cost of every pair. A metric adds the discounted costs of later steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pisces.errors import UserError
from pisces.validation import as_array, as_reals, check_finite, check_probabilities

FloatArray = NDArray[np.float64]
Cost = Callable[[ArrayLike, ArrayLike], FloatArray]
"""A function of one array per sequence, e.g. policies [n, A] and [m, A], that returns the cost of every pair [n, m]."""


def total_variation(policies_x: ArrayLike, policies_y: ArrayLike) -> FloatArray:
    """Total variation between the policies of every pair of states.

    TV(p, q) = 1/2 sum_a |p(a) - q(a)|; for integer actions, 0 where they are equal and 1 elsewhere.

    Args:
        policies_x: integer actions [n], or action probabilities [n, A].
        policies_y: integer actions [m], or action probabilities [m, A].

    Returns:
        The cost of every pair, [n, m], in [0, 1].
    """
    x, y = as_array("policies", policies_x), as_array("policies", policies_y)
    if x.ndim == 1 and y.ndim == 1:
        _check_integers(x)
        _check_integers(y)
        return np.asarray(x[:, None] != y[None, :], dtype=np.float64)
    check_probabilities("action probabilities", x)
    check_probabilities("action probabilities", y)
    _check_same_width(x, y)
    return 0.5 * _pairwise_l1(x.astype(np.float64), y.astype(np.float64))


def l1_distance(actions_x: ArrayLike, actions_y: ArrayLike) -> FloatArray:
    """L1 distance between the (mean) actions of every pair of states, summed over the action's dimensions.

    Args:
        actions_x: continuous actions [n] or [n, D].
        actions_y: continuous actions [m] or [m, D].

    Returns:
        The cost of every pair, [n, m].
    """
    x, y = _as_rows(actions_x), _as_rows(actions_y)
    _check_same_width(x, y)
    return _pairwise_l1(x, y)


def reward_difference(rewards_x: ArrayLike, rewards_y: ArrayLike) -> FloatArray:
    """Absolute difference between the rewards of every pair of states: the cost of pi-bisimulation (Eq. 1).

    Args:
        rewards_x: rewards [n].
        rewards_y: rewards [m].

    Returns:
        The cost of every pair, [n, m].
    """
    x, y = as_reals("rewards", rewards_x), as_reals("rewards", rewards_y)
    if x.ndim != 1 or y.ndim != 1:
        raise UserError(f"expected one reward per state, got arrays of shape {x.shape} and {y.shape}")
    check_finite("rewards", x)
    check_finite("rewards", y)
    return np.abs(x[:, None] - y[None, :])


def _pairwise_l1(x: FloatArray, y: FloatArray) -> FloatArray:
    # One dimension at a time, so that memory stays at one [n, m] matrix whatever the number of dimensions.
    total = np.zeros((len(x), len(y)))
    for column_x, column_y in zip(x.T, y.T, strict=True):
        total += np.abs(column_x[:, None] - column_y[None, :])
    return total


def _as_rows(actions: ArrayLike) -> FloatArray:
    values = as_array("actions", actions)
    if values.ndim not in (1, 2):
        raise UserError(f"expected actions of shape [n] or [n, D], got {values.shape}")
    check_finite("actions", values)
    rows = values.astype(np.float64)
    return rows[:, None] if rows.ndim == 1 else rows


def _check_integers(actions: NDArray[np.generic]) -> None:
    if not np.issubdtype(actions.dtype, np.integer):
        raise UserError(
            f"expected integer actions [n] or action probabilities [n, A], got {actions.dtype} {actions.shape}; "
            "continuous actions need l1_distance"
        )


def _check_same_width(x: NDArray[np.generic], y: NDArray[np.generic]) -> None:
    if x.shape[1] != y.shape[1]:
        raise UserError(f"expected the same number of action entries, got {x.shape[1]} and {y.shape[1]}")
