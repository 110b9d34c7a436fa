"""Behavior cloning with an optional behavioral loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from pisces.agents.cloning.networks import FEATURES, CloningNetwork, as_cells, join_blocks
from pisces.agents.cloning.settings import Augmentation, CloningSettings
from pisces.augment.colors import mix_colors, random_color_matrices
from pisces.augment.randconv import apply_kernel, random_kernel
from pisces.losses import (
    LOSSES,
    BehavioralLoss,
    ContrastiveMetricLoss,
    TargetNetwork,
    Transitions,
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
    """The auxiliary loss."""


class CloningAgent:
    """A network that imitates an expert's actions, with its optimizers.

    An auxiliary loss has an Adam of its own, which takes a step after each step of the imitation: Adam's steps do not
    depend on a loss's size, so neither loss drowns the other, and the auxiliary one still shapes the encoder when the
    expert's actions are learned and their gradients vanish.

    Args:
        data: the demonstrations.
        settings: the hyperparameters.
        seed: seeds the initial weights and all sampling.
    """

    def __init__(self, data: CloningData, settings: CloningSettings, seed: int) -> None:
        self.data, self.settings, self.iteration = data, settings, 0
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            shape = data.observations.shape[1:]
            self.network = CloningNetwork(shape, data.n_actions, data.cell, settings.layer_norm)
            self.loss = self._make_loss()
        uses_target = isinstance(self.loss, BehavioralLoss) and self.loss.uses_target
        self.target = TargetNetwork(self.network.encoder, TAU) if uses_target else None
        self.generator = np.random.default_rng(seed)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=settings.learning_rate, fused=True)
        shaped = [*self.network.encoder.parameters(), *self.loss.parameters()]
        self.auxiliary_optimizer = torch.optim.Adam(shaped, lr=settings.auxiliary_rate, fused=True)
        self._cells = as_cells(data.observations, data.cell)

    def _make_loss(self) -> ContrastiveMetricLoss | BehavioralLoss:
        settings, name = self.settings, self.settings.auxiliary
        if name in LOSSES:
            options = loss_options(name, {"discount": settings.discount})
            return make_loss(name, FEATURES, self.data.n_actions, **options)
        return ContrastiveMetricLoss(
            FEATURES,
            projection=nn.Linear(FEATURES, FEATURES),
            temperature=settings.temperature,
            scale=settings.scale or None,
            match_within=settings.match_within,
        )

    def train_iteration(self) -> Losses:
        """Takes one optimizer step of the imitation, then one of the auxiliary loss."""
        drawn = self.generator.integers(len(self.data.actions), size=self.settings.batch_size)
        features = self._represent(torch.from_numpy(self.data.demonstrated[drawn]))
        target = torch.from_numpy(self.data.actions[drawn])
        imitation = functional.cross_entropy(self.network.policy(features), target)
        cloned, auxiliary = _take_step(self.optimizer, imitation), 0.0
        if self.settings.auxiliary != "none":
            loss = self._transition_loss() if isinstance(self.loss, BehavioralLoss) else self._pair_loss()
            auxiliary = _take_step(self.auxiliary_optimizer, loss) if loss.requires_grad else 0.0
        if self.target is not None:
            self.target.update(self.network.encoder)
        self.iteration += 1
        return Losses(cloned, auxiliary)

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
        """Represents groups of observations in one pass; with RandConv each group gets its own kernel."""
        return self._represent_images(groups, self.settings.augmentation)

    def _represent_view(self, numbers: Tensor) -> Tensor:
        """Represents observations for a loss on transitions; CURL compares an augmented view with the frame itself."""
        augmentation = self.settings.augmentation
        if augmentation == "none" and self.settings.auxiliary == "curl":
            augmentation = "randconv"
        return self._represent_images((numbers,), augmentation)

    def _represent_images(self, groups: Sequence[Tensor], augmentation: Augmentation) -> Tensor:
        if augmentation == "randconv":
            return self.network.represent(torch.cat([self._convolved(numbers) for numbers in groups]))
        cells = self._cells[torch.cat(tuple(groups))]
        if augmentation == "colors":
            cells = mix_colors(cells, random_color_matrices(self.generator, len(cells)))
        return self.network.represent(cells)

    def _convolved(self, numbers: Tensor) -> Tensor:
        images = torch.from_numpy(self.data.observations[numbers.numpy()]).permute(0, 3, 1, 2) / 255
        changed = apply_kernel(images, random_kernel(self.generator, images.shape[1]))
        return join_blocks(255 * changed.permute(0, 2, 3, 1), self.data.cell)

    def _represent_by_target(self, numbers: Tensor) -> Tensor:
        assert self.target is not None
        features: Tensor = self.target(self._cells[numbers])
        return features

    @torch.no_grad()
    def act(self, observations: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Returns the greedy actions [n] for observations [n, H, W, C]."""
        logits = self.network(as_cells(observations, self.data.cell))
        return np.asarray(logits.argmax(dim=1).numpy())

    @torch.no_grad()
    def represent(self, observations: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Returns the features [n, 64] of observations [n, H, W, C]."""
        features = self.network.represent(as_cells(observations, self.data.cell))
        return np.asarray(features.numpy(), dtype=np.float32)

    def weights(self) -> dict[str, Tensor]:
        """Returns the weights of the network and, with a contrastive loss, of its projection."""
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        if self.settings.auxiliary == "contrastive":
            tensors |= {f"loss.{name}": value for name, value in self.loss.state_dict().items()}
        return tensors


def _take_step(optimizer: torch.optim.Optimizer, loss: Tensor) -> float:
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return float(loss.detach())
