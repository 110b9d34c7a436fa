"""A policy on pixels: convolutions, the actor on top of them, and the heads of the auxiliary loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pisces.agents.checkpoint import load_module
from pisces.agents.devices import check_device
from pisces.agents.drq.networks import Actor, Convolutions, DeterministicActor, GaussianActor
from pisces.agents.drq.settings import DrQSettings
from pisces.losses import BehavioralLoss, ContrastiveMetricLoss, loss_options, make_loss, spanning_options

# Each purpose and number has its own generator, so that a resumed run needs no saved generator state.
WEIGHTS, UPDATE, ACT, AUXILIARY = range(4)


class PixelPolicy:
    """Chooses actions for observations; `DrQAgent` teaches it.

    Args:
        frame_size: height and width of the observations.
        channels: channels of the observations, all stacked frames together.
        action_size: entries of an action.
        settings: the hyperparameters.
        seed: seeds the weights and all sampling.
        device: the torch device.
        largest_reward: of a decision; the smallest is 0. Losses that bound distances by rewards need it.
    """

    def __init__(
        self,
        frame_size: int,
        channels: int,
        action_size: int,
        settings: DrQSettings,
        seed: int,
        device: str = "cpu",
        largest_reward: float = 1.0,
    ) -> None:
        self.largest_reward = largest_reward
        self.settings, self.seed, self.action_size = settings, seed, action_size
        self.device = check_device(device)
        self.updates = 0
        self._generator = torch.Generator().manual_seed(int(self._rng(WEIGHTS).integers(2**62)))
        strides = (settings.first_stride, settings.second_stride, *[1] * settings.layers)[: settings.layers]
        self.convolutions = Convolutions(channels, settings.channels, strides, self._generator).to(self.device)
        self.inputs = self.convolutions.output_size(frame_size)
        self.actor = self._make_actor().to(self.device)
        self.loss = self._make_loss().to(self.device)

    def _make_loss(self) -> ContrastiveMetricLoss | BehavioralLoss:
        settings = self.settings
        if settings.auxiliary_loss != "pse":
            largest_value = self.largest_reward / (1 - settings.discount)
            values = {"discount": settings.discount, "reward_scale": 2 / largest_value}  # scaled values differ by 2
            if settings.auxiliary_loss == "dbc-normalized":
                values["reward_range"] = self.largest_reward
            options = loss_options(settings.auxiliary_loss, values)
            options = spanning_options(settings.auxiliary_loss, options, settings.return_steps)
            sizes = (settings.feature_size, self.action_size)
            return make_loss(settings.auxiliary_loss, *sizes, generator=self._generator, **options)
        return ContrastiveMetricLoss(
            settings.hidden_size,
            settings.embedding_size,
            temperature=settings.temperature,
            scale=settings.scale,
            symmetric=False,
            generator=self._generator,
        )

    def _make_actor(self) -> Actor:
        settings, actions = self.settings, self.action_size
        sizes = (self.inputs, settings.feature_size, settings.hidden_size, actions)
        if settings.policy == "deterministic":
            return DeterministicActor(*sizes, self._generator)
        return GaussianActor(*sizes, (settings.log_std_low, settings.log_std_high), self._generator)

    @property
    def noise(self) -> float:
        """Standard deviation of a deterministic policy's exploration noise."""
        settings = self.settings
        return 1 + (settings.noise_end - 1) * min(self.updates / settings.noise_updates, 1.0)

    @torch.no_grad()
    def act(self, observation: NDArray[np.uint8], noise: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """Chooses an action [A] for one observation [H, W, C]: greedy, or with standard normal noise [A]."""
        features = self._features(observation[None])
        if noise is None:
            action = self.actor.greedy(features)
        else:
            action = self.actor.sample(features, self._tensor(noise[None]), self.noise).actions
        return np.asarray(action[0].cpu().numpy(), dtype=np.float32)

    @torch.no_grad()
    def act_all(self, observations: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The greedy actions [n, A] for observations [n, H, W, C]."""
        return np.asarray(self.actor.greedy(self._features(observations)).cpu().numpy(), dtype=np.float32)

    @torch.no_grad()
    def represent(self, observations: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The actor's last hidden layer [n, k] for observations [n, H, W, C]."""
        return np.asarray(self.actor.represent(self._features(observations)).cpu().numpy(), dtype=np.float32)

    def _features(self, observations: NDArray[np.uint8]) -> Tensor:
        features: Tensor = self.convolutions(self._tensor(observations).permute(0, 3, 1, 2))
        return features

    def exploration_noise(self, decision: int) -> NDArray[np.float32]:
        """The noise of a decision, by its number in the run."""
        return self._rng(ACT, decision).standard_normal(self.action_size, dtype=np.float32)

    def random_action(self, decision: int) -> NDArray[np.float32]:
        """Samples an action uniformly, by the number of the decision."""
        return self._rng(ACT, decision).uniform(-1, 1, self.action_size).astype(np.float32)

    def policy_state(self) -> dict[str, Tensor]:
        """Returns a copy of the actor and the convolutions, as `restore_policy` takes them."""
        parts: dict[str, nn.Module] = {"actor.": self.actor, "convolutions.": self.convolutions}
        return {
            f"{prefix}{name}": value.clone()
            for prefix, part in parts.items()
            for name, value in part.state_dict().items()
        }

    def restore_policy(self, tensors: Mapping[str, Tensor]) -> None:
        """Loads what `policy_state` returned, and nothing else that a checkpoint may have."""
        load_module(self.actor, "actor.", tensors)
        load_module(self.convolutions, "convolutions.", tensors)

    def _tensor(self, values: NDArray[Any]) -> Tensor:
        return torch.from_numpy(values).to(self.device)

    def _rng(self, *stream: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, 7, *stream])
