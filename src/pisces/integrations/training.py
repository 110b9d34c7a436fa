"""Training of a model's features with a behavioral loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor, nn

from pisces.agents.checkpoint import load_module, load_optimizer, optimizer_tensors, tensors_below
from pisces.errors import UserError
from pisces.integrations.encoders import evaluating, find_encoder, policy_encoder
from pisces.integrations.observations import Observations, policy_input
from pisces.integrations.settings import SimilaritySettings
from pisces.losses import ContrastiveMetricLoss, TargetNetwork, Transitions, make_loss, spanning_options
from pisces.metrics.alignment import alignment_score, cosine_distance
from pisces.pairs import Pair


class Trainer:
    """The loss and the optimizer that belong to one model of Stable-Baselines3."""

    loss: nn.Module

    def __init__(self, model: Any, settings: SimilaritySettings) -> None:
        self.model, self.settings = model, settings
        self.encoder = find_encoder(model, settings.layers)
        generator = torch.Generator().manual_seed(settings.seed)
        # A new layer samples from torch's global generator, whose state must stay that of the agent's own training.
        with torch.random.fork_rng(devices=[]):
            self.loss = self._make_loss(generator).to(model.device)
        self.parameters = [*self.encoder.parameters, *self.loss.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, lr=settings.learning_rate)

    def _make_loss(self, generator: torch.Generator) -> nn.Module:
        raise NotImplementedError

    def embed(self, observations: Observations) -> NDArray[np.float32]:
        """Returns the embeddings [n, k] of observations [n, ...]."""
        with torch.no_grad(), evaluating(self.model.policy):
            embeddings = self._embed(self._features(observations))
        return np.asarray(embeddings.cpu().numpy(), dtype=np.float32)

    def _embed(self, features: Tensor) -> Tensor:
        return features

    def _features(self, observations: Observations) -> Tensor:
        return self.encoder.represent(policy_input(self.model, observations))

    def _step(self, loss: Tensor) -> float:
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()

    def state(self) -> dict[str, Tensor]:
        """Returns the tensors of the loss and of the optimizer."""
        tensors = {f"loss.{name}": value for name, value in self.loss.state_dict().items()}
        tensors |= optimizer_tensors(self.optimizer, "adam.")
        return {name: value.detach().clone() for name, value in tensors.items()}

    def restore(self, tensors: Mapping[str, Tensor], parameters: int | None) -> None:
        """Loads what `state` returned, of a model with so many trained parameters."""
        if parameters != len(self.parameters):
            raise UserError(
                f"the callback was saved with {parameters} parameters; the model has {len(self.parameters)}"
            )
        loss, own = tensors_below("loss.", tensors), self.loss.state_dict()
        if {name: value.shape for name, value in loss.items()} != {name: value.shape for name, value in own.items()}:
            raise UserError("the callback was saved for a model with layers of other widths")
        self.loss.load_state_dict(loss)
        load_optimizer(self.optimizer, "adam.", tensors)


class PairTrainer(Trainer):
    """Trains with pairs of trajectories and the metric between them: policy similarity embeddings."""

    loss: ContrastiveMetricLoss

    def _make_loss(self, generator: torch.Generator) -> nn.Module:
        settings = self.settings
        return ContrastiveMetricLoss(
            self.encoder.size,
            settings.embedding_size,
            temperature=settings.temperature,
            scale=settings.scale,
            weighted=settings.weighted,
            generator=generator,
            match_within=settings.match_within,
        )

    def update(self, pairs: Sequence[Pair], score: bool) -> tuple[float, float]:
        """Takes one optimizer step; returns the loss and, if `score` is set, the mean alignment score before it."""
        self.model.policy.set_training_mode(True)
        observations = [part for pair in pairs for part in (pair.observations_x, pair.observations_y)]
        # One pass through the encoder for all pairs, which are often short.
        features = torch.split(self._features(torch.cat(observations).numpy()), [len(part) for part in observations])
        triples = list(zip(features[::2], features[1::2], (pair.metric for pair in pairs), strict=True))
        before = float(np.mean([self._score(*triple) for triple in triples])) if score else 0.0
        loss = self._step(torch.stack([self.loss(*triple) for triple in triples]).mean())
        self.model.policy.set_training_mode(False)
        return loss, before

    @torch.no_grad()
    def _score(self, features_x: Tensor, features_y: Tensor, metric: Tensor) -> float:
        embeddings = [self.loss.embed(values).cpu().numpy() for values in (features_x, features_y)]
        return alignment_score(cosine_distance(*embeddings), metric.numpy())

    def _embed(self, features: Tensor) -> Tensor:
        return self.loss.embed(features)


class TransitionTrainer(Trainer):
    """Trains with transitions of the agent: the losses of `pisces.losses.LOSSES`."""

    def __init__(self, model: Any, settings: SimilaritySettings, loss: str, options: Mapping[str, Any]) -> None:
        self._name, self._options = loss, options
        super().__init__(model, settings)
        self._target: TargetNetwork | None = None
        if self.loss.uses_target:
            with _without_distributions(model.policy):
                self._target = TargetNetwork(model.policy, settings.tau)
            self._represent_target = policy_encoder(self._target.network, settings.layers).represent

    def _make_loss(self, generator: torch.Generator) -> nn.Module:
        size = _action_size(self.model.action_space)
        steps = getattr(getattr(self.model, "replay_buffer", None), "n_steps", 1)
        options = spanning_options(self._name, self._options, steps)
        return make_loss(self._name, self.encoder.size, size, generator=generator, **options)

    def update(self, transitions: Transitions) -> float:
        """Takes one optimizer step; returns the loss."""
        self.model.policy.set_training_mode(True)
        target = None if self._target is None else self._represent_target
        loss = self._step(self.loss(self.encoder.represent, transitions, target))
        self.model.policy.set_training_mode(False)
        if self._target is not None:
            self._target.update(self.model.policy)
        return loss

    def state(self) -> dict[str, Tensor]:
        """Returns the tensors of the loss, of the optimizer and of the target encoder."""
        tensors = {} if self._target is None else self._target.network.state_dict()
        return super().state() | {f"target.{name}": value.detach().clone() for name, value in tensors.items()}

    def restore(self, tensors: Mapping[str, Tensor], parameters: int | None) -> None:
        """Loads what `state` returned."""
        super().restore(tensors, parameters)
        if self._target is not None:
            load_module(self._target.network, "target.", tensors)


@contextmanager
def _without_distributions(policy: nn.Module) -> Iterator[None]:
    """Temporarily removes the action distributions that a policy caches, which deepcopy cannot copy."""
    owners = [module for module in policy.modules() if hasattr(module, "action_dist")]
    kept = [owner.action_dist for owner in owners]
    for owner in owners:
        owner.action_dist = None  # type: ignore[assignment]
    try:
        yield
    finally:
        for owner, distribution in zip(owners, kept, strict=True):
            owner.action_dist = distribution


def _action_size(space: spaces.Space[Any]) -> int:
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if isinstance(space, spaces.Box):
        return int(np.prod(space.shape))
    raise UserError(f"expected Discrete or Box actions for a loss on transitions, got {type(space).__name__}")
