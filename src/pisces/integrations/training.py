"""Training of a model's own features by the policy similarity loss, one update at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pisces.agents.checkpoint import tensors_below
from pisces.errors import UserError, unknown_name
from pisces.integrations.encoders import Encoder, Layers, evaluating, find_encoder, policy_input
from pisces.losses import Pair, PolicySimilarityLoss
from pisces.losses.checks import check_match_within
from pisces.metrics.alignment import alignment_score, cosine_distance
from pisces.validation import check_kinds


@dataclass(frozen=True)
class SimilaritySettings:
    """How the callback trains."""

    layers: Layers = "features"
    """What it trains: the features extractor, or with "hidden" also the hidden layers of the actor."""
    updates: int = 20
    """Updates of the loss per pause between rollouts."""
    pairs: int = 4
    """Pairs of trajectories per update."""
    every: int = 0
    """Environment steps from one such pause to the next at least; 0 for every pause."""
    start: int = 0
    """Environment steps before the first update, e.g. until greedy episodes mean something."""
    learning_rate: float = 3e-4
    """Step size of the callback's own Adam: the weight of the loss against the agent's own."""
    embedding_size: int = 64
    """Width of the embeddings."""
    temperature: float = 0.5
    """Contrastive temperature (1 / lambda)."""
    scale: float = 1.0
    """Scale of the metric's Gaussian kernel (beta)."""
    weighted: bool = True
    """Eq. 4 with its weights; False keeps only the choice of positives."""
    match_within: float | None = None
    """States whose nearest one is further than this are left out of the loss; None keeps all, as in the paper."""
    seed: int = 0
    """Draws the projection's initial weights."""

    def __post_init__(self) -> None:
        check_kinds(self)
        if self.layers not in get_args(Layers):
            raise unknown_name("layers", self.layers, get_args(Layers))
        for name in ("updates", "pairs", "embedding_size"):
            if getattr(self, name) < 1:
                raise UserError(f"expected {name} of at least 1, got {getattr(self, name)}")
        for name in ("every", "start", "seed"):
            if getattr(self, name) < 0:
                raise UserError(f"expected {name} of at least 0, got {getattr(self, name)}")
        for name in ("learning_rate", "temperature", "scale"):
            if not getattr(self, name) > 0:
                raise UserError(f"expected a positive {name}, got {getattr(self, name)}")
        check_match_within(self.match_within)


class Trainer:
    """The projection and the optimiser that belong to one model of Stable-Baselines3."""

    def __init__(self, model: Any, settings: SimilaritySettings) -> None:
        self.model = model
        self.encoder: Encoder = find_encoder(model, settings.layers)
        generator = torch.Generator().manual_seed(settings.seed)
        sizes = (self.encoder.size, settings.embedding_size)
        # A new layer draws from torch's global generator, whose draws belong to the agent.
        with torch.random.fork_rng(devices=[]):
            self.loss = PolicySimilarityLoss(
                *sizes,
                settings.temperature,
                settings.scale,
                settings.weighted,
                generator=generator,
                match_within=settings.match_within,
            ).to(model.device)
        self.parameters = [*self.encoder.parameters, *self.loss.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, lr=settings.learning_rate)

    def update(self, pairs: Sequence[Pair], score: bool) -> tuple[float, float]:
        """One step of the optimiser; returns the loss and, if asked for, the mean alignment score."""
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
        """Embeddings [n, k] of observations [n, ...] of raw environments."""
        with evaluating(self.model.policy):
            embeddings = self.loss.embed(self._features(observations))
        return np.asarray(embeddings.cpu().numpy(), dtype=np.float32)

    def _features(self, observations: NDArray[Any]) -> Tensor:
        return self.encoder.represent(policy_input(self.model, observations))

    def state(self) -> tuple[dict[str, Tensor], list[int]]:
        """Tensors of the projection and of the optimiser, and the steps that the latter has made per parameter."""
        tensors = {f"loss.{name}": value for name, value in self.loss.state_dict().items()}
        steps = []
        for index, parameter in enumerate(self.parameters):
            state = self.optimizer.state.get(parameter, {})
            steps.append(int(state["step"]) if state else 0)
            for name in ("exp_avg", "exp_avg_sq") if state else ():
                tensors[f"optimizer.{index}.{name}"] = state[name]
        return {name: value.detach().clone() for name, value in tensors.items()}, steps

    def restore(self, tensors: Mapping[str, Tensor], steps: list[int]) -> None:
        """Takes up what `state` gave."""
        if len(steps) != len(self.parameters):
            raise UserError(f"expected a callback for {len(self.parameters)} parameters of the model, got {len(steps)}")
        loss = tensors_below("loss.", tensors)
        own = self.loss.state_dict()
        same = {name: value.shape for name, value in loss.items()} == {name: own[name].shape for name in own}
        moved = [(tensors.get(f"optimizer.{index}.exp_avg"), value) for index, value in enumerate(self.parameters)]
        if not same or any(moment is not None and moment.shape != value.shape for moment, value in moved):
            raise UserError("expected the callback of a model with layers of these widths, got one of other widths")
        self.loss.load_state_dict(loss)
        for index, (parameter, step) in enumerate(zip(self.parameters, steps, strict=True)):
            if step:
                names = ("exp_avg", "exp_avg_sq")
                moments = {name: tensors[f"optimizer.{index}.{name}"].to(parameter.device) for name in names}
                self.optimizer.state[parameter] = {"step": torch.tensor(float(step)), **moments}
