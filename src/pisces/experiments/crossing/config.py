"""Configs of the crossing: PPO on levels of a grid world that it has not seen. A benchmark of our own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pisces.experiments.config import Config
from pisces.validation import Count, Discount, Interval, NonNegative, NonNegativeInt, Positive, check_settings

VALIDATION_LEVELS = range(200)
"""Levels that settings were chosen on."""
TEST_LEVELS = range(1000, 1500)
"""Levels that results are reported on; nothing was chosen on them."""
FIRST_TRAINING_LEVEL = 10_000
MOST_TRAINING_LEVELS = 32
"""Number of environments that run at once; the training levels share them."""
EVALUATIONS = 4
"""Evaluations per run, on training and validation levels."""


@dataclass(frozen=True)
class CrossingSettings:
    """How the agent learns."""

    steps: Count = 16_000
    """Environment steps of the run."""
    training_levels: Annotated[int, Interval(2, MOST_TRAINING_LEVELS)] = 12
    """Number of training levels; every seed has its own."""
    contrast: Annotated[int, Interval(0, 255)] = 60
    """Brightest value of the background."""
    learning_rate: Positive = 1e-3
    """Learning rate of PPO."""
    similarity_rate: NonNegative = 0.0
    """Learning rate of the policy similarity loss; 0 is PPO alone."""
    similarity_start: NonNegativeInt = 4000
    """Environment steps before the first update of the policy similarity loss."""
    updates: Count = 6
    """Updates of the policy similarity loss between two rollouts."""
    pairs: Count = 8
    """Pairs of episodes per update of the policy similarity loss."""
    refresh: Count = 48
    """Pairs drawn before the agent's greedy episodes are played again."""
    match_within: NonNegative = 0.01
    """Largest distance of a state to its nearest match; the policy similarity loss leaves out other states."""
    discount: Discount = 0.9
    """Discount of the policy similarity metric."""
    temperature: Positive = 0.5
    """Contrastive temperature of the policy similarity loss (1 / lambda)."""
    scale: Positive = 1.0
    """Scale of the metric's Gaussian kernel (beta)."""

    def __post_init__(self) -> None:
        check_settings(self)


METHODS: Mapping[str, CrossingSettings] = {
    "ppo": CrossingSettings(),
    "ppo+pse": CrossingSettings(similarity_rate=1e-3),
}
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "standard": {},
    "smoke": {"steps": 2048, "similarity_start": 1024, "updates": 2},
}


@dataclass(frozen=True, kw_only=True)
class CrossingConfig(Config):
    """One run of the crossing."""

    experiment = "crossing"
    methods = tuple(METHODS)
    presets = tuple(PRESETS)

    settings: CrossingSettings = field(default_factory=CrossingSettings)
    """How the agent learns."""

    @property
    def where(self) -> str:
        """Nothing sets runs apart but their method."""
        return "crossing"

    def training_levels(self) -> list[int]:
        """The numbers of the training levels."""
        first = FIRST_TRAINING_LEVEL + MOST_TRAINING_LEVELS * self.seed
        return list(range(first, first + self.settings.training_levels))

    def method_settings(self) -> dict[str, Any]:
        """The method's settings, shortened by the preset."""
        return {"settings": replace(METHODS[self.method], **PRESETS[self.preset])}
