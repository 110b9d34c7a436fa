"""What the imitation agent draws at random: a generator for each purpose, and RandConv's kernels."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from pisces.agents.settings import ImitationSettings
from pisces.augment import random_kernel, random_row_kernel

# Streams of randomness: each purpose and iteration has its own generator, so that a run that goes on after a stop
# needs no generator's state.
ITERATION, SHUFFLE, EVALUATION, RUN, RESTART = range(5)


def stream_generator(seed: int, *stream: int) -> np.random.Generator:
    """The generator of one stream of a run's randomness."""
    return np.random.default_rng([seed, *(int(part) for part in stream)])


def draw_kernel(
    rng: np.random.Generator, settings: ImitationSettings, channels: int, pass_probability: float
) -> Tensor | None:
    """Draws a kernel of RandConv for frames of some channels, or None for images that stay as they are."""
    if settings.kernels == "rows":
        return random_row_kernel(rng, pass_probability)
    return random_kernel(rng, channels, pass_probability)


def evaluation_kernels(settings: ImitationSettings, seed: int, iteration: int, channels: int) -> list[Tensor | None]:
    """Draws the kernels whose action probabilities an evaluation averages; a single None without augmentation."""
    if settings.augmentation == "none":
        return [None]
    rng = stream_generator(seed, EVALUATION, iteration)
    return [draw_kernel(rng, settings, channels, settings.pass_probability) for _ in range(settings.evaluation_draws)]
