"""Settings of the SAC + DrQ agent; free of torch, so that the command line can show them at once."""

from __future__ import annotations

from dataclasses import dataclass

from pisces.errors import UserError
from pisces.validation import Count, Discount, Fraction, NonNegative, NonNegativeInt, Positive, check_settings


@dataclass(frozen=True)
class DrQSettings:
    """How the agent learns. The defaults are the paper's (App. H, arXiv:2101.05265)."""

    batch_size: Count = 512
    """Transitions per update."""
    buffer_size: Count = 100_000
    """Transitions that the replay keeps."""
    learning_starts: Count = 1000
    """Decisions before the first update, taken at random."""
    steps_per_update: NonNegativeInt = 0
    """Environment steps per update, action repeats counted; 0 is one update per decision."""
    discount: Discount = 0.99
    """Discount of the return."""
    return_steps: Count = 1
    """Decisions whose rewards enter a target before it bootstraps; the paper uses 1."""
    learning_rate: Positive = 1e-3
    """Learning rate of all optimizers (Adam)."""
    actor_frequency: Count = 2
    """The actor and the temperature are updated at every n-th update."""
    target_frequency: Count = 2
    """The target critic is updated at every n-th update."""
    tau: Fraction = 0.01
    """Share of the critic that enters the target critic."""
    initial_alpha: Positive = 0.1
    """Temperature (alpha) of the entropy at the start."""
    log_std_low: float = -10.0
    """Lowest logarithm of the policy's standard deviation."""
    log_std_high: float = 2.0
    """Highest logarithm of the policy's standard deviation."""
    channels: Count = 32
    """Channels of the four convolutions."""
    second_stride: Count = 1
    """Stride of the second convolution; the first has 2, the others 1."""
    feature_size: Count = 50
    """Width of the encoder's output."""
    hidden_size: Count = 1024
    """Width of the hidden layers."""
    padding: NonNegativeInt = 4
    """Largest random shift, in pixels."""
    views: Count = 2
    """Shifted copies per observation, for the target (K) and for the loss (M)."""
    auxiliary: bool = False
    """Whether the policy similarity loss is used."""
    coefficient: NonNegative = 1.0
    """Weight of the policy similarity loss (alpha)."""
    temperature: Positive = 0.1
    """Contrastive temperature of the policy similarity loss (1 / lambda)."""
    scale: Positive = 0.1
    """Scale of the Gaussian kernel of the policy similarity metric (beta)."""
    metric_discount: Discount = 0.99
    """Discount of the policy similarity metric."""
    anchors: Count = 128
    """States of one episode that are compared with all states of the other."""
    embedding_size: Count = 256
    """Width of the embeddings that the policy similarity loss compares."""
    auxiliary_frequency: Count = 1
    """The policy similarity loss is used at every n-th update."""

    def __post_init__(self) -> None:
        check_settings(self)
        if self.log_std_low >= self.log_std_high:
            raise UserError(f"log_std_low must be below log_std_high, got {self.log_std_low} and {self.log_std_high}")
