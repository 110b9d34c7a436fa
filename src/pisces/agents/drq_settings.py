"""Settings of the SAC + DrQ agent; free of torch, so that the command line can show them at once."""

from __future__ import annotations

from dataclasses import dataclass, fields

from pisces.errors import UserError
from pisces.validation import check_kinds


@dataclass(frozen=True)
class DrQSettings:
    """How the agent learns. The defaults are the paper's (App. H, arXiv:2101.05265)."""

    batch_size: int = 512
    """Transitions per update."""
    capacity: int = 100_000
    """Transitions that the replay keeps."""
    seed_steps: int = 1000
    """Decisions before the first update, taken at random."""
    steps_per_update: int = 0
    """Environment steps per update, action repeats counted; 0 is one update per decision."""
    discount: float = 0.99
    """Discount of the return."""
    return_steps: int = 1
    """Decisions whose rewards enter a target before it bootstraps; 1 is the paper's."""
    learning_rate: float = 1e-3
    """Adam's step size, of all optimisers."""
    actor_frequency: int = 2
    """The actor and the temperature are updated at every n-th update."""
    target_frequency: int = 2
    """So is the target critic."""
    target_rate: float = 0.01
    """Share of the critic that enters the target critic."""
    initial_temperature: float = 0.1
    """Temperature (alpha) of the entropy at the start."""
    log_std_low: float = -10.0
    """Lowest logarithm of the policy's standard deviation."""
    log_std_high: float = 2.0
    """Highest."""
    channels: int = 32
    """Channels of the four convolutions."""
    second_stride: int = 1
    """Stride of the second convolution; the first has 2, the others 1."""
    feature_size: int = 50
    """Width of the encoder's output."""
    hidden_size: int = 1024
    """Width of the hidden layers."""
    padding: int = 4
    """Largest random shift, in pixels."""
    views: int = 2
    """Shifted copies per observation, for the target (K) and for the loss (M)."""
    auxiliary: bool = False
    """Whether the policy similarity loss is used."""
    coefficient: float = 1.0
    """Weight of that loss (alpha)."""
    temperature: float = 0.1
    """Its contrastive temperature (1 / lambda)."""
    scale: float = 0.1
    """Scale of the metric's Gaussian kernel (beta)."""
    metric_discount: float = 0.99
    """Discount of the metric."""
    anchors: int = 128
    """States of one episode that are compared with all states of the other."""
    embedding_size: int = 256
    """Width of the embeddings."""
    auxiliary_frequency: int = 1
    """The policy similarity loss is used at every n-th update."""

    def __post_init__(self) -> None:
        check_kinds(self)
        for name in ("learning_rate", "initial_temperature", "temperature", "scale", "target_rate"):
            if not getattr(self, name) > 0:
                raise UserError(f"expected a positive {name}, got {getattr(self, name)}")
        for name in _WHOLE:
            if getattr(self, name) < 1:
                raise UserError(f"expected {name} of at least 1, got {getattr(self, name)}")
        for name in ("discount", "metric_discount"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"expected {name} in [0, 1), got {getattr(self, name)}")
        if self.log_std_low >= self.log_std_high or self.padding < 0 or self.steps_per_update < 0:
            raise UserError("expected log_std_low < log_std_high, padding >= 0 and steps_per_update >= 0")

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of all settings."""
        return tuple(field.name for field in fields(cls))


_WHOLE = (
    *(
        "batch_size",
        "capacity",
        "seed_steps",
        "return_steps",
        "actor_frequency",
        "target_frequency",
        "channels",
        "second_stride",
    ),
    *("feature_size", "hidden_size", "views", "anchors", "embedding_size", "auxiliary_frequency"),
)
