"""Settings of the callback."""

from __future__ import annotations

from dataclasses import dataclass

from pisces.errors import UserError
from pisces.integrations.encoders import Layers
from pisces.losses.checks import check_positive
from pisces.validation import (
    Count,
    Fraction,
    NonNegativeInt,
    Positive,
    check_match_within,
    check_settings,
    check_tolerance,
)


@dataclass(frozen=True)
class SimilaritySettings:
    """Settings of `PolicySimilarityCallback`.

    Attributes:
        layers: The layers to train: "features" for the features extractor, "hidden" also for the actor's hidden layers.
        updates: The number of updates of the loss per pause between rollouts.
        pairs: The number of pairs of trajectories per update, for the loss "pse".
        every: The minimum number of environment steps between two such pauses; 0 trains in every pause, which SAC, TD3,
            DDPG, DQN and A2C make every few steps.
        start: The number of environment steps before the first update, e.g. until greedy episodes are informative.
        max_overhead: The largest share of the agent's own training time that the updates may take, e.g. 0.25: updates
            that do not fit are left out. None makes all of them. With a share, the number of updates depends on the
            machine's speed, and so do results.
        learning_rate: The learning rate of the callback's own Adam; it weighs the loss against the agent's own.
        batch_size: The number of transitions per update, for losses on transitions.
        tau: The share of the encoder that enters the target encoder at each update, for losses that have one.
        embedding_size: The width of the embeddings (loss "pse", as the settings below).
        temperature: The contrastive temperature (1 / lambda in the paper).
        scale: The scale of the metric's Gaussian kernel (beta in the paper); None takes it from each pair's distances,
            so that half of the states have a match, and leaves out the others.
        weighted: Whether to weight negatives as in Eq. 4; False keeps only the choice of positives.
        match_within: States whose nearest state is further than this are left out of the loss; None keeps all, as in
            the paper, unless `scale` is None.
        seed: The seed of the initial weights of the projection or the loss's heads, and of transitions sampled from
            rollouts; Stable-Baselines3 samples those of replay buffers.
    """

    layers: Layers = "features"
    updates: Count = 20
    pairs: Count = 4
    every: NonNegativeInt = 1000
    start: NonNegativeInt = 0
    max_overhead: float | None = None
    learning_rate: Positive = 3e-4
    batch_size: Count = 128
    tau: Fraction = 0.05
    embedding_size: Count = 64
    temperature: Positive = 0.1
    scale: float | None = None
    weighted: bool = True
    match_within: float | None = None
    seed: NonNegativeInt = 0

    def __post_init__(self) -> None:
        check_settings(self)
        if self.batch_size < 2:
            raise UserError("batch_size must be at least 2, because losses on transitions compare them; got 1")
        check_match_within(self.match_within)
        if self.scale is not None:
            check_positive("scale", self.scale)
        if self.max_overhead is not None:
            check_tolerance(self.max_overhead, "max_overhead")
