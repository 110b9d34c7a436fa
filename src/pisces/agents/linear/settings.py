"""Settings of the linear agents; free of torch, so that the command line can show them at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pisces.errors import UserError
from pisces.validation import Count, Discount, NonNegative, Positive, check_settings

Policy = Literal["two-layer", "ensemble"]
Optimizer = Literal["adam", "momentum", "gradient-descent"]
Precision = Literal["float32", "float64"]


@dataclass(frozen=True)
class LinearSettings:
    """How a linear agent learns."""

    policy: Policy = "two-layer"
    """Policy: K = K_2 K_1, where K_1 o is the representation, or the mean of one matrix per environment (IPO)."""
    width: Count = 200
    """Size of the representation, ten times the number of actions."""
    initial_scale: Positive = 1e-3
    """Scale of the orthogonal matrices that both layers start as; the ensemble starts at zero."""
    optimizer: Optimizer = "adam"
    """Optimizer: Adam, gradient descent with momentum 0.9, or plain gradient descent."""
    learning_rate: Positive = 1e-3
    """Learning rate of the optimizer."""
    sparsity: NonNegative = 0.0
    """Weight of the sum of all weights' absolute values."""
    aggregation: NonNegative = 0.0
    """Weight of the squared distance between the representations of paired observations."""
    max_steps: Count = 5000
    """Largest number of training steps."""
    patience: Count = 100
    """Training of a seed stops early once its best cost fell by less than `tolerance` in this many steps."""
    tolerance: Positive = 1e-5
    """Relative decrease of the best training cost that counts as progress; see `patience`."""
    starts: Count = 100
    """Number of hidden start states; pairs are searched in the trajectories from them."""
    trajectory_steps: Count = 5
    """Length of the trajectories in which pairs are searched."""
    discount: Discount = 0.99
    """Discount of the policy similarity metric."""
    pair_threshold: Positive = 1e-6
    """Largest distance of paired observations, relative to the mean of their norms."""
    precision: Precision = "float32"
    """Floating-point type of the weights; the 20 x 20 matrices of the cost are always float64."""

    def __post_init__(self) -> None:
        check_settings(self)
        if self.policy == "ensemble" and (self.aggregation or self.sparsity):
            raise UserError("policy=ensemble requires aggregation=0 and sparsity=0")
