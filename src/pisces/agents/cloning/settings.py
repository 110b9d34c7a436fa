"""Settings of the cloning agent; free of torch, so that the command line can show them at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pisces.errors import UserError
from pisces.validation import Count, Discount, NonNegative, Positive, check_settings

Augmentation = Literal["none", "randconv", "colors"]
Auxiliary = Literal["none", "contrastive", "l2", "dbc", "dbc-normalized", "deepmdp", "mico", "simsr", "spr", "curl"]
Metric = Literal["psm", "pi-bisimulation", "bisimulation"]
States = Literal["expert", "all"]


@dataclass(frozen=True)
class CloningSettings:
    """How the agent learns."""

    steps: Count = 1200
    """Number of optimizer steps."""
    batch_size: Count = 32
    """Demonstrated states per step."""
    learning_rate: Positive = 3e-3
    """Learning rate of Adam."""
    layer_norm: bool = True
    """Whether the network normalizes its features."""
    augmentation: Augmentation = "none"
    """Augmentation of frames: random convolutions, one per batch, or random mixtures of colors, one per frame."""
    auxiliary: Auxiliary = "none"
    """Loss beside the imitation of actions: on pairs of states (contrastive, l2), or on the expert's transitions."""
    metric: Metric = "psm"
    """Metric of the auxiliary loss."""
    states: States = "expert"
    """States that the auxiliary loss compares: those of the expert's episodes, or all with their exact metric."""
    pairs: Count = 1
    """Pairs of environments per step."""
    discount: Discount = 0.9
    """Discount of the metric."""
    temperature: Positive = 0.1
    """Contrastive temperature (1 / lambda)."""
    scale: NonNegative = 0.0
    """Scale of the metric's Gaussian kernel (beta); 0 takes it from the distances of each pair."""
    match_within: NonNegative = 0.01
    """Largest distance of a state to its nearest match; the contrastive loss leaves out other states."""
    auxiliary_rate: Positive = 1e-3
    """Learning rate of the auxiliary loss's own Adam."""

    def __post_init__(self) -> None:
        check_settings(self)
        if self.metric == "bisimulation" and self.states == "expert" and self.auxiliary in ("contrastive", "l2"):
            raise UserError("metric='bisimulation' compares all actions of a state; it needs states='all'")
