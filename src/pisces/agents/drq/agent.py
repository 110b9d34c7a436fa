"""SAC or DrQ-v2 with shifted views, and an optional auxiliary loss (App. H, arXiv:2101.05265)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from pisces.agents.checkpoint import load_module, load_optimizer, optimizer_tensors
from pisces.agents.drq.networks import Critic
from pisces.agents.drq.policy import AUXILIARY, UPDATE, PixelPolicy
from pisces.agents.drq.replay import TransitionBatch
from pisces.agents.drq.settings import DrQSettings
from pisces.agents.drq.views import Views
from pisces.losses import BehavioralLoss, TargetNetwork, Transitions
from pisces.pairs import Pair


class DrQAgent(PixelPolicy):
    """Actor, critics, their optimizers, and the number of updates so far.

    The convolutions belong to the critic: the actor's loss stops before them. The policy similarity loss reaches them
    together with the actor's trunk and hidden layers.

    Args:
        frame_size: height and width of the observations.
        channels: channels of the observations, all stacked frames together.
        action_size: entries of an action.
        settings: the hyperparameters.
        seed: seeds the weights and all sampling.
        device: the torch device.
        largest_reward: of a decision; the smallest is 0.
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
        super().__init__(frame_size, channels, action_size, settings, seed, device, largest_reward)
        self.views = Views(settings.padding, settings.strong_share, self.device)
        sizes = (self.inputs, settings.feature_size, settings.hidden_size, action_size)
        self.critic = Critic(*sizes, settings.critic_norm, self._generator).to(self.device)
        self.target = copy.deepcopy(self.critic).requires_grad_(False)
        self.target_convolutions = self.convolutions
        if settings.target_convolutions:
            self.target_convolutions = copy.deepcopy(self.convolutions).requires_grad_(False)
        self.log_alpha = torch.tensor(math.log(settings.initial_alpha), device=self.device, requires_grad=True)
        # What losses on transitions shape: the critic's encoder, up to the trunk.
        self.encoder = nn.Sequential(self.convolutions, self.critic.trunk)
        self.target_encoder = None
        if isinstance(self.loss, BehavioralLoss) and self.loss.uses_target:
            self.target_encoder = TargetNetwork(self.encoder, settings.auxiliary_tau)
        self.optimizers = self._make_optimizers()

    def restore_policy(self, tensors: Mapping[str, Tensor]) -> None:
        """Loads only the actor and the shared convolutions of another agent."""
        super().restore_policy(tensors)
        if self.settings.target_convolutions:
            load_module(self.target_convolutions, "convolutions.", tensors)
        if self.target_encoder is not None:
            convolutions, _ = self.target_encoder.network.children()
            load_module(convolutions, "convolutions.", tensors)

    def _make_optimizers(self) -> dict[str, torch.optim.Adam]:
        groups: dict[str, list[Tensor]] = {
            "critic": [*self.convolutions.parameters(), *self.critic.parameters()],
            "actor": list(self.actor.parameters()),
            "alpha": [self.log_alpha],
        }
        if self.settings.auxiliary:
            shared = self.settings.auxiliary_optimizer == "shared"
            groups["auxiliary"] = list(self.loss.parameters()) if shared else self.auxiliary_parameters()
        rates = dict.fromkeys(groups, self.settings.learning_rate)
        if self.settings.auxiliary_optimizer == "own":
            # Adam cancels a factor of the loss, so the weight enters the step instead.
            rates["auxiliary"] = self.settings.coefficient * self.settings.learning_rate
        return {
            name: torch.optim.Adam(group, rates[name], fused=True)
            for name, group in groups.items()
            if group  # some losses have no parameters
        }

    def auxiliary_parameters(self) -> list[Tensor]:
        """Returns what the auxiliary loss updates: encoder and heads; for policy similarity the actor's layers."""
        if isinstance(self.loss, BehavioralLoss):
            return [*self.encoder.parameters(), *self.loss.parameters()]
        parts: list[nn.Module] = [
            self.convolutions,
            self.actor.trunk,
            self.actor.hidden1,
            self.actor.hidden2,
            self.loss,
        ]
        return [parameter for part in parts for parameter in part.parameters()]

    @property
    def alpha(self) -> float:
        """The entropy's temperature; 0 for a deterministic policy."""
        return float(self.log_alpha.detach().exp()) if self.settings.policy == "gaussian" else 0.0

    @property
    def auxiliary_due(self) -> bool:
        """Whether the next update uses the auxiliary loss; policy similarity needs a pair for it."""
        return self.updates % self.settings.auxiliary_frequency == 0

    def update(self, batch: TransitionBatch, pair: Pair | None = None) -> dict[str, float]:
        """Takes the optimizer steps that are due; returns the losses."""
        rng, settings = self._rng(UPDATE, self.updates), self.settings
        auxiliary = self._due_loss(batch, pair)
        shared = auxiliary if settings.auxiliary_optimizer == "shared" else None
        losses, features = self._update_critic(batch, rng, shared)
        if self.updates % settings.actor_frequency == 0:
            # Strong augmentation is for the critic alone.
            reused = settings.reuse_features and not settings.strong_share
            losses |= self._update_actor(batch, rng, features if reused else None)
        elif shared is not None:
            self.optimizers["actor"].step()
        if self.updates % settings.target_frequency == 0:
            self._update_target()
        if auxiliary is not None and shared is None:
            losses |= self._update_auxiliary(auxiliary)
        if self.target_encoder is not None:
            self.target_encoder.update(self.encoder)
        self.updates += 1
        return losses

    def _due_loss(self, batch: TransitionBatch, pair: Pair | None) -> Callable[[], Tensor] | None:
        """The function that computes the auxiliary loss of this update, if it has one."""
        if not self.auxiliary_due:
            return None
        if isinstance(self.loss, BehavioralLoss):
            return partial(self.transition_loss, batch)
        return None if pair is None else partial(self.auxiliary_loss, pair)

    @torch.no_grad()
    def target_values(self, batch: TransitionBatch, rng: np.random.Generator) -> Tensor:
        """y = r + discount * mean over K views of [min Q'(s', a') - alpha log pi(a' | s')], [n, 1]."""
        views, settings = self.settings.views, self.settings
        images = self.views.shifted(batch.next_observations, rng, views)
        features = self.convolutions(images)
        sample = self.actor.sample(features, self._normal(rng, len(images)), self.noise, settings.noise_clip)
        if settings.target_convolutions:
            features = self.target_convolutions(images)
        value = torch.minimum(*self.target(features, sample.actions))
        soft = value - self.log_alpha.exp() * sample.log_probability
        mean = soft.view(views, -1, 1).mean(dim=0)
        return self._tensor(batch.rewards) + settings.discount * self._tensor(batch.continues) * mean

    def _update_critic(
        self, batch: TransitionBatch, rng: np.random.Generator, auxiliary: Callable[[], Tensor] | None = None
    ) -> tuple[dict[str, float], Tensor]:
        """Updates the critic, by the auxiliary loss too if it is given; returns the losses and the features."""
        views = self.settings.views
        target = self.target_values(batch, rng).repeat(views, 1)
        images = self.views.strong(self.views.shifted(batch.observations, rng, views), rng)
        features = self.convolutions(images)
        first, second = self.critic(features, self._tensor(batch.actions).repeat(views, 1))
        loss = functional.mse_loss(first, target) + functional.mse_loss(second, target)
        losses, total, names = {"critic": float(loss.detach())}, loss, ["critic"]
        if auxiliary is not None:
            similarity = auxiliary()
            losses["auxiliary"] = float(similarity.detach())
            total, names = loss + self.settings.coefficient * similarity, ["critic", "auxiliary"]
        self._backward(total, ("critic", "auxiliary", "actor"))
        self._step(names)
        return losses, features.detach()[: len(batch.actions)]

    def _update_actor(
        self, batch: TransitionBatch, rng: np.random.Generator, features: Tensor | None = None
    ) -> dict[str, float]:
        """Updates the actor and the temperature; gradients that the actor has are kept."""
        if features is None:
            with torch.no_grad():  # actor and critic share these features, and neither may change the convolutions here
                features = self.convolutions(self.views.shifted(batch.observations, rng))
        noise = self._normal(rng, len(features))
        sample = self.actor.sample(features, noise, self.noise, self.settings.noise_clip)
        self.critic.requires_grad_(False)
        value = torch.minimum(*self.critic(features, sample.actions))
        loss = (self.log_alpha.exp().detach() * sample.log_probability - value).mean()
        self._backward(loss)
        self._step(["actor"])
        self.critic.requires_grad_(True)
        if self.settings.policy == "gaussian":
            entropy_gap = (-sample.log_probability.detach() + self.action_size).mean()
            self._backward(self.log_alpha.exp() * entropy_gap, ["alpha"])
            self._step(["alpha"])
        return {"actor": float(loss.detach()), "alpha": self.alpha}

    def _update_target(self) -> None:
        pairs = [(self.target, self.critic)]
        if self.settings.target_convolutions:
            pairs.append((self.target_convolutions, self.convolutions))  # type: ignore[arg-type]
        with torch.no_grad():
            olds, news = ([value for part in side for value in part.parameters()] for side in zip(*pairs, strict=True))
            torch._foreach_lerp_(olds, news, self.settings.tau)

    def auxiliary_loss(self, pair: Pair) -> Tensor:
        """The contrastive loss (Eq. 4) of the states of one episode, the anchors, against those of the other."""
        rng, count = self._rng(AUXILIARY, self.updates), len(pair.observations_x)
        images = self.views.shifted_alike(torch.cat([pair.observations_x, pair.observations_y]), rng)
        features = self.actor.represent(self.convolutions(images))
        loss: Tensor = self.loss(features[:count], features[count:], pair.metric.to(self.device))
        return loss

    def transition_loss(self, batch: TransitionBatch) -> Tensor:
        """The loss on transitions, each set of observations with its own shifts; no episode terminates.

        With several return steps, a transition spans as many decisions, and the metric's discount is that of all.
        """
        rng = self._rng(AUXILIARY, self.updates)
        transitions = Transitions(
            batch.observations, self._tensor(batch.actions), self._tensor(batch.rewards), batch.next_observations
        )

        def encode(network: nn.Module, observations: NDArray[np.uint8]) -> Tensor:
            features: Tensor = network(self.views.shifted(observations, rng))
            return features

        target = None if self.target_encoder is None else partial(encode, self.target_encoder)
        loss: Tensor = self.loss(partial(encode, self.encoder), transitions, target)
        return loss

    def _update_auxiliary(self, auxiliary: Callable[[], Tensor]) -> dict[str, float]:
        loss = auxiliary()
        self._backward(loss, ["auxiliary"])
        self._step(["auxiliary"])
        return {"auxiliary": float(loss.detach())}

    def _backward(self, loss: Tensor, cleared: Iterable[str] = ()) -> None:
        """Adds the gradients of a loss, after clearing those of some optimizers."""
        for name in cleared:
            if name in self.optimizers:
                self.optimizers[name].zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]

    def _step(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self.optimizers:
                self.optimizers[name].step()

    def _normal(self, rng: np.random.Generator, count: int) -> Tensor:
        return self._tensor(rng.standard_normal((count, self.action_size), dtype=np.float32))

    def _modules(self) -> dict[str, nn.Module]:
        modules: dict[str, nn.Module] = {
            "convolutions.": self.convolutions,
            "critic.": self.critic,
            "target.": self.target,
            "actor.": self.actor,
            "loss.": self.loss,
        }
        if self.settings.target_convolutions:
            modules["target_convolutions."] = self.target_convolutions
        if self.target_encoder is not None:
            modules["target_encoder."] = self.target_encoder
        return modules

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
