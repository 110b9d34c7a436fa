"""Random generators of the imitation agent, and the RandConv kernels that it samples with them."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from pisces.agents.imitation.settings import ImitationSettings
from pisces.augment import random_kernel, random_row_kernel

# Each purpose and iteration has its own generator, so that a resumed run needs no saved generator state.
ITERATION, SHUFFLE, EVALUATION, RUN, RESTART = range(5)


def stream_generator(seed: int, *stream: int) -> np.random.Generator:
    """Returns the generator of one purpose of a run, e.g. (ITERATION, 7)."""
    return np.random.default_rng([seed, *(int(part) for part in stream)])


def draw_kernel(
    rng: np.random.Generator, settings: ImitationSettings, channels: int, passthrough_probability: float
) -> Tensor | None:
    """Samples a RandConv kernel for frames with so many channels, or None, which leaves images unchanged."""
    if settings.kernels == "rows":
        return random_row_kernel(rng, passthrough_probability)
    return random_kernel(rng, channels, passthrough_probability)


def evaluation_kernels(settings: ImitationSettings, seed: int, iteration: int, channels: int) -> list[Tensor | None]:
    """Samples the kernels whose action probabilities an evaluation averages; a single None without augmentation."""
    if settings.augmentation == "none":
        return [None]
    rng = stream_generator(seed, EVALUATION, iteration)
    return [
        draw_kernel(rng, settings, channels, settings.passthrough_probability) for _ in range(settings.evaluation_draws)
    ]
