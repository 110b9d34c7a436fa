"""Behavior cloning with an optional behavioral loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from pisces.agents.cloning.networks import FEATURES, CloningNetwork, as_images, channels_first
from pisces.agents.cloning.settings import CloningSettings
from pisces.augment.randconv import apply_kernel, random_kernel
from pisces.losses import (
    LOSSES,
    BehavioralLoss,
    ContrastiveMetricLoss,
    TargetNetwork,
    Transitions,
    backward_with_auxiliary,
    loss_options,
    make_loss,
    metric_l2_loss,
)
from pisces.pairs import StatePairs, TrajectoryPairs

TAU = 0.01
"""Share of the encoder that enters a target encoder after each step."""


@dataclass(frozen=True, eq=False)
class CloningData:
    """The training data of the cloning agent."""

    observations: NDArray[np.uint8]
    """All observations, uint8 [N, H, W, C]."""
    demonstrated: NDArray[np.int64]
    """Numbers of the demonstrated observations, [M]."""
    actions: NDArray[np.int64]
    """The expert's action in each demonstrated observation, [M]."""
    following: NDArray[np.int64]
    """Numbers of the observations after the expert's actions, [M]."""
    rewards: NDArray[np.float32]
    """The rewards of the expert's actions, [M]."""
    terminated: NDArray[np.bool_]
    """Whether the expert's actions ended an episode, [M]."""
    n_actions: int
    """The number of actions."""
    cell: int = 1
    """Width and height of a cell of the grid world in pixels."""
    pairs: TrajectoryPairs | StatePairs | None = None
    """Pairs of states for the auxiliary loss, whose observations are numbers of `observations`; None without one."""


@dataclass(frozen=True)
class Losses:
    """The parts of one step's loss."""

    imitation: float
    """Cross-entropy of the expert's actions."""
    auxiliary: float
    """The auxiliary loss, before its weight."""


class CloningAgent:
    """A network that imitates an expert's actions, with its optimizer.

    Args:
        data: the demonstrations.
        settings: the hyperparameters.
        seed: seeds the initial weights and all sampling.
    """

    def __init__(self, data: CloningData, settings: CloningSettings, seed: int) -> None:
        self.data, self.settings, self.iteration = data, settings, 0
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = CloningNetwork(data.observations.shape[1:], data.n_actions, data.cell)
            self.loss = self._make_loss()
        uses_target = isinstance(self.loss, BehavioralLoss) and self.loss.uses_target
        self.target = TargetNetwork(self.network.encoder, TAU) if uses_target else None
        self.generator = np.random.default_rng(seed)
        parameters = [*self.network.parameters(), *self.loss.parameters()]
        self.optimizer = torch.optim.Adam(parameters, lr=settings.learning_rate, fused=True)
        self._encoder = list(self.network.encoder.parameters())
        self._frames = channels_first(data.observations)

    def _make_loss(self) -> ContrastiveMetricLoss | BehavioralLoss:
        settings, name = self.settings, self.settings.auxiliary
        if name in LOSSES:
            options = loss_options(name, {"discount": settings.discount})
            return make_loss(name, FEATURES, self.data.n_actions, **options)
        return ContrastiveMetricLoss(
            FEATURES, temperature=settings.temperature, scale=settings.scale, match_within=settings.match_within
        )

    def train_iteration(self) -> Losses:
        """Takes one optimizer step."""
        drawn = self.generator.integers(len(self.data.actions), size=self.settings.batch_size)
        features = self._represent(torch.from_numpy(self.data.demonstrated[drawn]))
        target = torch.from_numpy(self.data.actions[drawn])
        imitation = functional.cross_entropy(self.network.policy(features), target)
        auxiliary = self._auxiliary_loss()
        self.optimizer.zero_grad(set_to_none=True)
        backward_with_auxiliary(
            imitation,
            auxiliary,
            self._encoder,
            list(self.loss.parameters()),
            weight=self.settings.weight * self._ramp(),
            relative=self.settings.relative,
            project=self.settings.project,
        )
        self.optimizer.step()
        if self.target is not None:
            self.target.update(self.network.encoder)
        self.iteration += 1
        return Losses(float(imitation.detach()), float(auxiliary.detach()))

    def _ramp(self) -> float:
        length = self.settings.ramp * self.settings.steps
        return min(self.iteration / length, 1.0) if length else 1.0

    def _auxiliary_loss(self) -> Tensor:
        if self.settings.auxiliary == "none":
            return torch.zeros(())
        return self._transition_loss() if isinstance(self.loss, BehavioralLoss) else self._pair_loss()

    def _pair_loss(self) -> Tensor:
        assert self.data.pairs is not None
        pairs = [self.data.pairs.sample(self.generator) for _ in range(self.settings.pairs)]
        groups = [numbers for pair in pairs for numbers in (pair.observations_x, pair.observations_y)]
        features = torch.split(self._represent(*groups), [len(numbers) for numbers in groups])
        triples = zip(features[::2], features[1::2], (pair.metric for pair in pairs), strict=True)
        loss = metric_l2_loss if self.settings.auxiliary == "l2" else self.loss
        return torch.stack([loss(*triple) for triple in triples]).mean()

    def _transition_loss(self) -> Tensor:
        data = self.data
        drawn = self.generator.integers(len(data.actions), size=self.settings.batch_size)
        arrays = (data.demonstrated, data.actions, data.rewards, data.following, data.terminated)
        transitions = Transitions(*(torch.from_numpy(values[drawn]) for values in arrays))
        target = None if self.target is None else self._represent_by_target
        loss: Tensor = self.loss(self._represent_view, transitions, target)
        return loss

    def _represent(self, *groups: Tensor) -> Tensor:
        """Represents groups of observations in one pass; with augmentation each group gets its own kernel."""
        return self._represent_images(groups, augmented=self.settings.augmentation == "randconv")

    def _represent_view(self, numbers: Tensor) -> Tensor:
        """Represents observations for a loss on transitions; CURL compares two augmented views of each."""
        augmented = self.settings.auxiliary == "curl" or self.settings.augmentation == "randconv"
        return self._represent_images((numbers,), augmented)

    def _represent_images(self, groups: Sequence[Tensor], augmented: bool) -> Tensor:
        images = [as_images(self._frames[numbers]) for numbers in groups]
        if augmented:
            images = [apply_kernel(part, random_kernel(self.generator, part.shape[1])) for part in images]
        return self.network.represent(torch.cat(images))

    def _represent_by_target(self, numbers: Tensor) -> Tensor:
        assert self.target is not None
        features: Tensor = self.target(as_images(self._frames[numbers]))
        return features

    @torch.no_grad()
    def act(self, observations: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Returns the greedy actions [n] for observations [n, H, W, C]."""
        logits = self.network(as_images(channels_first(observations)))
        return np.asarray(logits.argmax(dim=1).numpy())

    def weights(self) -> dict[str, Tensor]:
        """Returns the weights of the network and, with a contrastive loss, of its projection."""
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        if self.settings.auxiliary == "contrastive":
            tensors |= {f"loss.{name}": value for name, value in self.loss.state_dict().items()}
        return tensors
