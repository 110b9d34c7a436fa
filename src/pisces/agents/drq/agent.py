"""SAC with DrQ's shifted views, and an optional policy similarity loss (App. H, arXiv:2101.05265)."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from pisces.agents.checkpoint import load_module, load_optimizer, optimizer_tensors
from pisces.agents.devices import check_device
from pisces.agents.drq.networks import Actor, Convolutions, Critic
from pisces.agents.drq.replay import TransitionBatch
from pisces.agents.drq.settings import DrQSettings
from pisces.augment import shift_frames
from pisces.losses import ContrastiveMetricLoss
from pisces.pairs import Pair

# Each purpose and number has its own generator, so that a resumed run needs no saved generator state.
WEIGHTS, UPDATE, ACT, AUXILIARY = range(4)


class DrQAgent:
    """Actor, critics, their optimizers, and the number of updates so far.

    The convolutions belong to the critic: the actor's loss stops before them, and the policy similarity loss, which
    has an optimizer of its own, reaches them together with the actor's trunk and hidden layers.

    Args:
        frame_size: height and width of the observations.
        channels: channels of the observations, all stacked frames together.
        action_size: entries of an action.
        settings: the hyperparameters.
        seed: seeds the weights and all sampling.
        device: the torch device.
    """

    def __init__(
        self,
        frame_size: int,
        channels: int,
        action_size: int,
        settings: DrQSettings,
        seed: int,
        device: str = "cpu",
    ) -> None:
        self.settings, self.seed, self.action_size = settings, seed, action_size
        self.device = check_device(device)
        generator = torch.Generator().manual_seed(int(self._rng(WEIGHTS).integers(2**62)))
        convolutions = Convolutions(channels, settings.channels, settings.second_stride, generator)
        inputs, features, hidden = convolutions.output_size(frame_size), settings.feature_size, settings.hidden_size
        self.critic = Critic(convolutions, inputs, features, hidden, action_size, generator).to(self.device)
        bounds = (settings.log_std_low, settings.log_std_high)
        self.actor = Actor(inputs, features, hidden, action_size, bounds, generator).to(self.device)
        self.target = copy.deepcopy(self.critic).requires_grad_(False)
        self.log_alpha = torch.tensor(math.log(settings.initial_alpha), device=self.device, requires_grad=True)
        self.loss = ContrastiveMetricLoss(
            hidden,
            settings.embedding_size,
            temperature=settings.temperature,
            scale=settings.scale,
            symmetric=False,
            generator=generator,
        ).to(self.device)
        self.updates = 0
        self.optimizers = self._make_optimizers()

    def _make_optimizers(self) -> dict[str, torch.optim.Adam]:
        groups: dict[str, list[Tensor]] = {
            "critic": list(self.critic.parameters()),
            "actor": list(self.actor.parameters()),
            "alpha": [self.log_alpha],
        }
        if self.settings.auxiliary:
            groups["auxiliary"] = self.auxiliary_parameters()
        return {
            name: torch.optim.Adam(group, self.settings.learning_rate, fused=True) for name, group in groups.items()
        }

    def auxiliary_parameters(self) -> list[Tensor]:
        """Returns what the policy similarity loss updates: encoder, the actor's hidden layers, projection."""
        parts: list[nn.Module] = [
            self.critic.convolutions,
            self.actor.trunk,
            self.actor.hidden1,
            self.actor.hidden2,
            self.loss,
        ]
        return [parameter for part in parts for parameter in part.parameters()]

    @property
    def alpha(self) -> float:
        """The entropy's temperature."""
        return float(self.log_alpha.detach().exp())

    @property
    def auxiliary_due(self) -> bool:
        """Whether the next update uses the policy similarity loss, if it is given a pair."""
        return self.updates % self.settings.auxiliary_frequency == 0

    @torch.no_grad()
    def act(self, observation: NDArray[np.uint8], noise: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """Chooses an action [A] for one observation [H, W, C]: greedy, or with standard normal noise [A]."""
        features = self.critic.convolutions(self._tensor(observation[None]).permute(0, 3, 1, 2))
        if noise is None:
            action = self.actor.greedy(features)
        else:
            action = self.actor.sample(features, self._tensor(noise[None])).actions
        return np.asarray(action[0].cpu().numpy(), dtype=np.float32)

    @torch.no_grad()
    def act_all(self, observations: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The greedy actions [n, A] for observations [n, H, W, C]."""
        features = self.critic.convolutions(self._tensor(observations).permute(0, 3, 1, 2))
        return np.asarray(self.actor.greedy(features).cpu().numpy(), dtype=np.float32)

    @torch.no_grad()
    def represent(self, observations: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The actor's last hidden layer [n, k] for observations [n, H, W, C]."""
        features = self.critic.convolutions(self._tensor(observations).permute(0, 3, 1, 2))
        return np.asarray(self.actor.represent(features).cpu().numpy(), dtype=np.float32)

    def exploration_noise(self, decision: int) -> NDArray[np.float32]:
        """The noise of a decision, by its number in the run."""
        return self._rng(ACT, decision).standard_normal(self.action_size, dtype=np.float32)

    def random_action(self, decision: int) -> NDArray[np.float32]:
        """Samples an action uniformly, by the number of the decision."""
        return self._rng(ACT, decision).uniform(-1, 1, self.action_size).astype(np.float32)

    def update(self, batch: TransitionBatch, pair: Pair | None = None) -> dict[str, float]:
        """Takes the optimizer steps that are due; returns the losses."""
        rng, settings = self._rng(UPDATE, self.updates), self.settings
        losses = {"critic": self._update_critic(batch, rng)}
        if self.updates % settings.actor_frequency == 0:
            losses |= self._update_actor(batch, rng)
        if self.updates % settings.target_frequency == 0:
            self._update_target()
        if pair is not None and self.auxiliary_due:
            losses["auxiliary"] = self._update_auxiliary(pair)
        self.updates += 1
        return losses

    def _views(self, observations: NDArray[np.uint8], rng: np.random.Generator, views: int) -> Tensor:
        """Shifted copies of observations [n, H, W, C]: [views n, C, H, W], copy after copy."""
        copies = self._tensor(observations).repeat(views, 1, 1, 1)
        # Converted to floats here, because the targets need them twice.
        return shift_frames(copies, self._offsets(rng, len(copies)), self.settings.padding).float()

    def _offsets(self, rng: np.random.Generator, count: int) -> Tensor:
        return torch.from_numpy(rng.integers(0, 2 * self.settings.padding + 1, (2, count))).to(self.device)

    @torch.no_grad()
    def target_values(self, batch: TransitionBatch, rng: np.random.Generator) -> Tensor:
        """y = r + discount * mean over K views of [min Q'(s', a') - alpha log pi(a' | s')], [n, 1]."""
        views = self.settings.views
        images = self._views(batch.next_observations, rng, views)
        noise = self._tensor(rng.standard_normal((len(images), self.action_size), dtype=np.float32))
        sample = self.actor.sample(self.critic.convolutions(images), noise)
        value = torch.minimum(*self.target(self.target.convolutions(images), sample.actions))
        soft = value - self.log_alpha.exp() * sample.log_probability
        mean = soft.view(views, -1, 1).mean(dim=0)
        return self._tensor(batch.rewards) + self.settings.discount * self._tensor(batch.continues) * mean

    def _update_critic(self, batch: TransitionBatch, rng: np.random.Generator) -> float:
        views = self.settings.views
        target = self.target_values(batch, rng).repeat(views, 1)
        features = self.critic.convolutions(self._views(batch.observations, rng, views))
        first, second = self.critic(features, self._tensor(batch.actions).repeat(views, 1))
        loss = functional.mse_loss(first, target) + functional.mse_loss(second, target)
        self._step("critic", loss)
        return float(loss.detach())

    def _update_actor(self, batch: TransitionBatch, rng: np.random.Generator) -> dict[str, float]:
        with torch.no_grad():  # actor and critic share these features, and neither may change the convolutions here
            features = self.critic.convolutions(self._views(batch.observations, rng, 1))
        noise = self._tensor(rng.standard_normal((len(features), self.action_size), dtype=np.float32))
        sample = self.actor.sample(features, noise)
        self.critic.requires_grad_(False)
        value = torch.minimum(*self.critic(features, sample.actions))
        loss = (self.log_alpha.exp().detach() * sample.log_probability - value).mean()
        self._step("actor", loss)
        self.critic.requires_grad_(True)
        entropy_gap = (-sample.log_probability.detach() + self.action_size).mean()
        self._step("alpha", self.log_alpha.exp() * entropy_gap)
        return {"actor": float(loss.detach()), "alpha": self.alpha}

    def _update_target(self) -> None:
        with torch.no_grad():
            pairs = zip(self.target.parameters(), self.critic.parameters(), strict=True)
            olds, news = zip(*pairs, strict=True)
            torch._foreach_lerp_(olds, news, self.settings.tau)

    def auxiliary_loss(self, pair: Pair) -> Tensor:
        """The contrastive loss (Eq. 4) of some anchors of one episode against all states of the other."""
        rng, settings = self._rng(AUXILIARY, self.updates), self.settings
        x, y, metric = pair.observations_x, pair.observations_y, pair.metric
        if rng.random() < 0.5:
            x, y, metric = y, x, metric.T
        anchors = torch.from_numpy(np.sort(rng.permutation(len(x))[: settings.anchors]))
        offsets = self._offsets(rng, 1)
        images = shift_frames(torch.cat([x[anchors], y]).to(self.device), offsets, settings.padding)
        features = self.actor.represent(self.critic.convolutions(images))
        distances = metric[anchors].contiguous().to(self.device)
        loss: Tensor = self.loss(features[: len(anchors)], features[len(anchors) :], distances)
        return loss

    def _update_auxiliary(self, pair: Pair) -> float:
        loss = self.auxiliary_loss(pair)
        self._step("auxiliary", self.settings.coefficient * loss)
        return float(loss.detach())

    def _step(self, name: str, loss: Tensor) -> None:
        optimizer = self.optimizers[name]
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    def _tensor(self, values: NDArray[Any]) -> Tensor:
        return torch.from_numpy(values).to(self.device)

    def _rng(self, *stream: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, 7, *stream])

    def _modules(self) -> dict[str, nn.Module]:
        return {"critic.": self.critic, "target.": self.target, "actor.": self.actor, "loss.": self.loss}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Returns everything that training needs to resume: tensors, and numbers fit for JSON."""
        tensors = {"log_alpha": self.log_alpha.detach()}
        for prefix, module in self._modules().items():
            tensors |= {f"{prefix}{name}": value for name, value in module.state_dict().items()}
        for name, optimizer in self.optimizers.items():
            tensors |= optimizer_tensors(optimizer, f"adam.{name}.")
        return tensors, {"updates": self.updates}

    def restore(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Restores a state that `state` returned."""
        with torch.no_grad():
            self.log_alpha.copy_(tensors["log_alpha"])
        for prefix, module in self._modules().items():
            load_module(module, prefix, dict(tensors))
        for name, optimizer in self.optimizers.items():
            load_optimizer(optimizer, f"adam.{name}.", tensors)
        self.updates = int(numbers["updates"])

    def restore_policy(self, tensors: Mapping[str, Tensor]) -> None:
        """Loads only the actor and the shared convolutions of another agent."""
        load_module(self.actor, "actor.", dict(tensors))
        load_module(self.critic.convolutions, "critic.convolutions.", dict(tensors))
        load_module(self.target.convolutions, "critic.convolutions.", dict(tensors))
