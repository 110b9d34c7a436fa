"""Auxiliary losses of the imitation agent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pisces.agents.imitation.networks import ACTIONS, REPRESENTATION
from pisces.agents.imitation.settings import ImitationSettings, TransitionLoss
from pisces.losses import BehavioralLoss, ContrastiveMetricLoss, TargetNetwork, Transitions, loss_options, make_loss

TRANSITION_LOSSES = get_args(TransitionLoss)


@dataclass(frozen=True)
class EpisodeTransitions:
    """What follows each observation of the training data; the last state of an episode leads to itself."""

    rewards: NDArray[np.float64]
    """The reward of the optimal action, [N]."""
    following: NDArray[np.int64]
    """The number of the next observation, [N]."""


def make_auxiliary(
    settings: ImitationSettings, generator: torch.Generator, device: torch.device
) -> ContrastiveMetricLoss | BehavioralLoss | None:
    """The module of the auxiliary loss; None without one, and for l2 embeddings, which have no weights."""
    if settings.auxiliary in TRANSITION_LOSSES:
        options = loss_options(settings.auxiliary, {"discount": settings.discount})
        return make_loss(settings.auxiliary, REPRESENTATION, ACTIONS, generator=generator, **options).to(device)
    if settings.auxiliary != "contrastive":
        return None
    return ContrastiveMetricLoss(
        REPRESENTATION,
        settings.embedding_size,
        temperature=settings.temperature,
        scale=settings.scale,
        weighted=settings.weighted,
        symmetric=settings.symmetric,
        generator=generator,
    ).to(device)


def draw_transitions(
    transitions: EpisodeTransitions,
    actions: NDArray[np.int64],
    count: int,
    rng: np.random.Generator,
    device: torch.device,
) -> Transitions:
    """Samples transitions, whose observations are numbers of the training data; these numbers stay on the CPU."""
    chosen = rng.integers(len(actions), size=count)
    rewards = torch.from_numpy(transitions.rewards[chosen].astype(np.float32)).to(device)
    taken = torch.from_numpy(actions[chosen]).to(device)
    return Transitions(torch.from_numpy(chosen), taken, rewards, torch.from_numpy(transitions.following[chosen]))


def transition_loss(
    loss: BehavioralLoss,
    batch: Transitions,
    represent: Callable[[Any, NDArray[np.int64]], Tensor],
    network: nn.Module,
    target: TargetNetwork | None,
) -> Tensor:
    """The loss of transitions whose observations are numbers, each represented once per call of the encoder."""

    def encode(used: nn.Module, numbers: Tensor) -> Tensor:
        distinct, places = np.unique(numbers.numpy(), return_inverse=True)
        return represent(used, distinct)[torch.from_numpy(places)]

    encode_target = None if target is None else partial(encode, target.network)
    value: Tensor = loss(partial(encode, network), batch, encode_target)
    return value
