"""Training of a model's features with the contrastive metric loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pisces.agents.checkpoint import load_optimizer, optimizer_tensors, tensors_below
from pisces.errors import UserError
from pisces.integrations.encoders import Layers, evaluating, find_encoder, policy_input
from pisces.losses import ContrastiveMetricLoss
from pisces.losses.checks import check_match_within
from pisces.metrics.alignment import alignment_score, cosine_distance
from pisces.pairs import Pair
from pisces.validation import Count, NonNegativeInt, Positive, check_settings


@dataclass(frozen=True)
class SimilaritySettings:
    """Settings of `PolicySimilarityCallback`.

    Attributes:
        layers: The layers to train: "features" for the features extractor, "hidden" also for the actor's hidden layers.
        updates: The number of updates of the loss per pause between rollouts.
        pairs: The number of pairs of trajectories per update.
        every: The minimum number of environment steps between two such pauses; 0 trains in every pause.
        start: The number of environment steps before the first update, e.g. until greedy episodes are informative.
        learning_rate: The learning rate of the callback's own Adam; it weighs the loss against the agent's own.
        embedding_size: The width of the embeddings.
        temperature: The contrastive temperature (1 / lambda in the paper).
        scale: The scale of the metric's Gaussian kernel (beta in the paper).
        weighted: Whether to weight negatives as in Eq. 4; False keeps only the choice of positives.
        match_within: States whose nearest state is further than this are left out of the loss; None keeps all, as in
            the paper.
        seed: The seed of the projection's initial weights.
    """

    layers: Layers = "features"
    updates: Count = 20
    pairs: Count = 4
    every: NonNegativeInt = 0
    start: NonNegativeInt = 0
    learning_rate: Positive = 3e-4
    embedding_size: Count = 64
    temperature: Positive = 0.5
    scale: Positive = 1.0
    weighted: bool = True
    match_within: float | None = None
    seed: NonNegativeInt = 0

    def __post_init__(self) -> None:
        check_settings(self)
        check_match_within(self.match_within)


class Trainer:
    """The projection and the optimizer that belong to one model of Stable-Baselines3."""

    def __init__(self, model: Any, settings: SimilaritySettings) -> None:
        self.model = model
        self.encoder = find_encoder(model, settings.layers)
        generator = torch.Generator().manual_seed(settings.seed)
        # A new layer samples from torch's global generator, whose state must stay that of the agent's own training.
        with torch.random.fork_rng(devices=[]):
            self.loss = ContrastiveMetricLoss(
                self.encoder.size,
                settings.embedding_size,
                temperature=settings.temperature,
                scale=settings.scale,
                weighted=settings.weighted,
                generator=generator,
                match_within=settings.match_within,
            ).to(model.device)
        self.parameters = [*self.encoder.parameters, *self.loss.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, lr=settings.learning_rate)

    def update(self, pairs: Sequence[Pair], score: bool) -> tuple[float, float]:
        """Takes one optimizer step; returns the loss and, if `score` is set, the mean alignment score."""
        self.model.policy.set_training_mode(True)
        observations = [part for pair in pairs for part in (pair.observations_x, pair.observations_y)]
        # One pass through the encoder for all pairs, which are often short.
        features = torch.split(self._features(torch.cat(observations).numpy()), [len(part) for part in observations])
        triples = list(zip(features[::2], features[1::2], (pair.metric for pair in pairs), strict=True))
        loss: Tensor = torch.stack([self.loss(*triple) for triple in triples]).mean()
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.model.policy.set_training_mode(False)
        return loss.item(), float(np.mean([self._score(*triple) for triple in triples])) if score else 0.0

    @torch.no_grad()
    def _score(self, features_x: Tensor, features_y: Tensor, metric: Tensor) -> float:
        embeddings = [self.loss.embed(values).cpu().numpy() for values in (features_x, features_y)]
        return alignment_score(cosine_distance(*embeddings), metric.numpy())

    @torch.no_grad()
    def embed(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """Returns the embeddings [n, k] of observations [n, ...] of raw environments."""
        with evaluating(self.model.policy):
            embeddings = self.loss.embed(self._features(observations))
        return np.asarray(embeddings.cpu().numpy(), dtype=np.float32)

    def _features(self, observations: NDArray[Any]) -> Tensor:
        return self.encoder.represent(policy_input(self.model, observations))

    def state(self) -> dict[str, Tensor]:
        """Returns the tensors of the projection and of the optimizer."""
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
