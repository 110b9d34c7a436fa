"""Settings of the linear agents; free of torch, so that the command line can show them at once."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

from pisces.errors import UserError, unknown_name
from pisces.validation import check_kinds

Policy = Literal["two-layer", "ensemble"]
Optimizer = Literal["adam", "momentum", "gradient-descent"]
Precision = Literal["float32", "float64"]


@dataclass(frozen=True)
class LinearSettings:
    """How a linear agent learns."""

    policy: Policy = "two-layer"
    """K = K_2 K_1, where K_1 o is the representation; or the mean of one matrix per environment (IPO)."""
    width: int = 200
    """Size of the representation, ten times the number of actions."""
    initial_scale: float = 1e-3
    """Both layers start as orthogonal matrices times this; the ensemble starts at zero."""
    optimizer: Optimizer = "adam"
    """Adam, gradient descent with momentum 0.9, or plain gradient descent."""
    learning_rate: float = 1e-3
    """Step size."""
    sparsity: float = 0.0
    """Weight of the sum of all weights' absolute values."""
    aggregation: float = 0.0
    """Weight of the squared distance between the representations of paired observations."""
    max_steps: int = 5000
    """Training ends here at the latest."""
    patience: int = 100
    """It ends earlier for seeds whose best training cost fell by less than `tolerance` in so many steps."""
    tolerance: float = 1e-5
    """Relative."""
    starts: int = 100
    """Hidden start states of the trajectories that pairs are looked for in."""
    trajectory_steps: int = 5
    """Length of these trajectories."""
    discount: float = 0.99
    """Discount of the policy similarity metric."""
    pair_threshold: float = 1e-6
    """Observations whose distance is at most this, relative to the mean of their norms, are paired."""
    precision: Precision = "float32"
    """Of the weights; the 20 x 20 matrices of the cost are always float64."""

    def __post_init__(self) -> None:
        check_kinds(self)
        for name, choices in (("policy", Policy), ("optimizer", Optimizer), ("precision", Precision)):
            if getattr(self, name) not in get_args(choices):
                raise unknown_name(name, getattr(self, name), get_args(choices))
        for name in ("initial_scale", "learning_rate", "tolerance", "pair_threshold"):
            if not getattr(self, name) > 0:
                raise UserError(f"expected a positive {name}, got {getattr(self, name)}")
        for name in ("width", "max_steps", "patience", "starts", "trajectory_steps"):
            if getattr(self, name) < 1:
                raise UserError(f"expected {name} of at least 1, got {getattr(self, name)}")
        for name in ("sparsity", "aggregation"):
            if not getattr(self, name) >= 0:
                raise UserError(f"expected {name} of at least 0, got {getattr(self, name)}")
        if self.policy == "ensemble" and (self.aggregation or self.sparsity):
            raise UserError("expected aggregation and sparsity of 0 with the policy 'ensemble', got other values")
        if not 0 <= self.discount < 1:
            raise UserError(f"expected discount in [0, 1), got {self.discount}")

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of all settings."""
        return tuple(field.name for field in fields(cls))
