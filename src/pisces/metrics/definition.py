"""What a metric result belongs to: the metric, its discount, MDPs and policies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MetricDefinition:
    """The metric, discount, MDPs and policies that a `MetricResult` belongs to."""

    metric: str
    """The metric: "policy-similarity", "pi-bisimulation", "bisimulation", "mico" or "chain"."""

    discount: float
    """The discount."""

    cost: str
    """Name of the cost function; "matrix" or "labels" for chains."""

    n_states: tuple[int, int]
    """The number of states of X and of Y."""

    n_actions: tuple[int, int]
    """The number of actions of X and of Y."""

    within: bool
    """Whether the distances are within one MDP under one policy, so that each state is at distance 0 from itself (for
    MICo, whose distances to itself are positive, too)."""

    policies: tuple[FloatArray, FloatArray] | None = None
    """The policies of X [n, A] and Y [m, A]; None for metrics without policies."""

    tied_states: tuple[int, int] = (0, 0)
    """The number of states of X and of Y in which an optimal policy had to choose between optimal actions; distances
    depend on that choice. 0 for policies that were given."""


@dataclass(frozen=True, eq=False)
class SamplingError:
    """How far distances of estimated MDPs may be from those of the true ones, with a given probability.

    With probability `confidence`, |distance(x, y) - true distance(x, y)| <= error_x[x] + error_y[y] + the solver's
    error for all pairs at once. The bound assumes nothing about the MDPs, so it is wide: `bootstrap_metric` gives
    narrower, approximate intervals.
    """

    confidence: float
    """The probability with which all bounds hold."""

    error_x: FloatArray
    """The part of the states of X, [n]."""

    error_y: FloatArray
    """The part of the states of Y, [m]."""

    limit: float
    """What the distance of any two MDPs with such costs can differ by: a bound as large says nothing."""

    @property
    def error_bound(self) -> float:
        """The largest bound of any pair."""
        return min(self.limit, float(self.error_x.max() + self.error_y.max()))

    def bounds(self) -> FloatArray:
        """The bound of every pair, [n, m]."""
        return np.minimum(self.limit, self.error_x[:, None] + self.error_y[None, :])
