"""Settings of PPO on MiniGrid; free of torch, so that the command line can show them at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pisces.validation import Count, Discount, NonNegative, NonNegativeInt, Positive, check_settings

Similarity = Literal["none", "greedy", "expert"]


@dataclass(frozen=True)
class PPOSettings:
    """How PPO of Stable-Baselines3 learns."""

    steps: Count = 100_000
    """Environment steps of the run."""
    learning_rate: Positive = 3e-3
    """Learning rate of PPO."""
    epochs: Count = 8
    """Passes over each rollout."""
    shaping: NonNegative = 0.1
    """Reward for each step nearer to the goal in training; without it, PPO does not find the goal in so few steps."""
    similarity: Similarity = "none"
    """Policy similarity loss: none, on pairs of the agent's own greedy episodes, or on pairs of the expert's."""
    start: NonNegativeInt = 25_000
    """Environment steps before the first update of the policy similarity loss."""
    updates: Count = 24
    """Updates of the policy similarity loss between two rollouts."""
    pairs: Count = 2
    """Pairs of episodes per update of the policy similarity loss."""
    refresh: Count = 96
    """Pairs drawn before the agent's greedy episodes are played again."""
    similarity_rate: Positive = 1e-3
    """Learning rate of the policy similarity loss."""
    discount: Discount = 0.9
    """Discount of the policy similarity metric."""
    temperature: Positive = 0.1
    """Contrastive temperature of the policy similarity loss (1 / lambda)."""
    scale: NonNegative = 0.0
    """Scale of the metric's Gaussian kernel (beta); 0 takes it from the distances of each pair."""
    match_within: NonNegative = 0.01
    """Largest distance of a state to its nearest match; the policy similarity loss leaves out other states."""

    def __post_init__(self) -> None:
        check_settings(self)
