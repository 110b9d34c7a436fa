"""Settings of the SAC + DrQ agent; free of torch, so that the command line can show them at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pisces.errors import UserError
from pisces.validation import (
    Count,
    Discount,
    Fraction,
    NonNegative,
    NonNegativeInt,
    Positive,
    Probability,
    check_settings,
)

Policy = Literal["gaussian", "deterministic"]
AuxiliaryLoss = Literal["pse", "dbc", "dbc-normalized", "deepmdp", "mico", "simsr", "spr", "curl"]
Optimizer = Literal["shared", "own"]


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
    policy: Policy = "gaussian"
    """Policy: SAC's squashed Gaussian, or DrQ-v2's deterministic one with scheduled exploration noise."""
    noise_end: Positive = 0.1
    """Standard deviation of a deterministic policy's exploration noise in the end; it starts at 1."""
    noise_updates: Count = 50_000
    """Updates until a deterministic policy's exploration noise has reached its end."""
    noise_clip: Positive = 0.3
    """Largest noise of a deterministic policy in targets and in the actor's loss."""
    channels: Count = 32
    """Channels of the convolutions."""
    layers: Count = 4
    """Number of convolutions."""
    first_stride: Count = 2
    """Stride of the first convolution."""
    second_stride: Count = 1
    """Stride of the second convolution; later ones have 1."""
    target_convolutions: bool = True
    """Whether the target critic has convolutions of its own; DrQ-v2's uses the critic's."""
    reuse_features: bool = False
    """Whether the actor learns from the critic's features of an update, instead of those of newly shifted
    views; not with a strong augmentation, which is for the critic alone."""
    critic_norm: bool = False
    """Whether the critic's hidden layers are normalized (LayerNorm)."""
    average_rewards: bool = False
    """Whether the agent learns from the mean, instead of the sum, of the rewards of a repeated action."""
    feature_size: Count = 50
    """Width of the encoder's output."""
    hidden_size: Count = 1024
    """Width of the hidden layers."""
    padding: NonNegativeInt = 4
    """Largest random shift, in pixels."""
    views: Count = 2
    """Shifted copies per observation, for the target (K) and for the loss (M)."""
    strong_share: Probability = 0.0
    """Share of a batch that the critic sees after a random convolution; targets are free of it (SVEA)."""
    auxiliary: bool = False
    """Whether an auxiliary loss is used."""
    auxiliary_loss: AuxiliaryLoss = "pse"
    """The auxiliary loss: policy similarity of pairs of episodes, or one on the transitions of the batch."""
    auxiliary_tau: Fraction = 0.05
    """Share of the encoder that enters the target encoder of a loss on transitions, at every update."""
    auxiliary_optimizer: Optimizer = "shared"
    """Optimizers of the auxiliary loss: the critic's and the actor's, or its own as in the published code."""
    coefficient: NonNegative = 1.0
    """Weight of the auxiliary loss (alpha); its own optimizer's learning rate is multiplied by it."""
    temperature: Positive = 0.1
    """Contrastive temperature of the policy similarity loss (1 / lambda)."""
    scale: Positive = 0.1
    """Scale of the Gaussian kernel of the policy similarity metric (beta)."""
    metric_discount: Discount = 0.99
    """Discount of the policy similarity metric."""
    anchors: Count = 128
    """States of one episode that are compared with states of the other."""
    candidates: NonNegativeInt = 0
    """States of the other episode that anchors are compared with; 0 compares with all."""
    embedding_size: Count = 256
    """Width of the embeddings that the policy similarity loss compares."""
    auxiliary_frequency: Count = 1
    """The auxiliary loss is used at every n-th update."""

    def __post_init__(self) -> None:
        check_settings(self)
        if self.log_std_low >= self.log_std_high:
            raise UserError(f"log_std_low must be below log_std_high, got {self.log_std_low} and {self.log_std_high}")
