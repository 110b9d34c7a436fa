"""Imitation of optimal episodes with an optional behavioural loss: the agent of the jumping task."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from pisces.agents.checkpoint import load_module, tensors_below
from pisces.agents.devices import check_device
from pisces.agents.draws import ITERATION, RESTART, RUN, SHUFFLE, draw_kernel, evaluation_kernels, stream_generator
from pisces.agents.encoders import make_encoder, make_network
from pisces.agents.networks import REPRESENTATION
from pisces.agents.settings import ImitationSettings
from pisces.losses import PolicySimilarityLoss, metric_l2_loss

ADAM_EPSILON = 1e-7
JUMP = 1


@dataclass(frozen=True)
class ImitationData:
    """What the agent learns from."""

    observations: NDArray[np.uint8]
    """Distinct observations in halves, [N, 60, 60, channels]."""
    actions: NDArray[np.int64]
    """The optimal action in each observation, [N]."""
    episodes: NDArray[np.int64]
    """Numbers of the observations of the K episodes that the auxiliary loss compares, [K, copies, T]."""
    metric: NDArray[np.float32] | None = None
    """Distances between the states of every two episodes, [K, K, T, T]; None without an auxiliary loss."""
    copies: int = 1
    """How many versions of each episode there are: itself, and shifted ones."""


@dataclass(frozen=True)
class Losses:
    """The parts of one iteration's loss."""

    imitation: float
    """Cross-entropy of the optimal actions."""
    auxiliary: float
    """The metric embedding loss, before its coefficient."""
    regularisation: float
    """The l2 term, with its coefficient."""


class ImitationAgent:
    """A network, its optimiser, and how far its training has come.

    Args:
        data: the training tasks' optimal episodes.
        settings: how to learn.
        seed: decides the initial weights and everything drawn in training.
        device: where to compute.
    """

    def __init__(self, data: ImitationData, settings: ImitationSettings, seed: int, device: str = "cpu") -> None:
        self.data, self.settings, self.seed = data, settings, seed
        self.device = check_device(device)
        self._start(seed)
        self.encoder = make_encoder(data.observations, self.device)
        self.iteration = 0
        self._starts_ended = 0
        self._kept: dict[str, Tensor] = {}
        self._kept_score = -math.inf
        self._classes = [np.flatnonzero(data.actions != JUMP), np.flatnonzero(data.actions == JUMP)]
        self._drawn = [0, 0]
        self._metric = None if data.metric is None else torch.from_numpy(data.metric).to(self.device)
        self._run_passes = self._rng(RUN).random() < settings.pass_probability

    def _start(self, weights_seed: int) -> None:
        generator = torch.Generator().manual_seed(weights_seed)
        channels = self.data.observations.shape[3]
        self.network = make_network(self.settings.network, channels, generator).to(self.device)
        self.loss = self._make_loss(generator)
        self.parameters = [*self.network.parameters(), *(self.loss.parameters() if self.loss else ())]
        rate = self.settings.learning_rate
        self.optimiser = torch.optim.Adam(self.parameters, lr=rate, eps=ADAM_EPSILON, fused=True)

    def _make_loss(self, generator: torch.Generator) -> PolicySimilarityLoss | None:
        settings = self.settings
        if settings.auxiliary != "contrastive":
            return None
        return PolicySimilarityLoss(
            REPRESENTATION,
            settings.embedding_size,
            settings.temperature,
            settings.scale,
            settings.weighted,
            settings.symmetric,
            generator,
        ).to(self.device)

    @property
    def iterations_per_epoch(self) -> int:
        """Iterations in one pass over the data, of which copies are no part."""
        return len(self.data.actions) // self.data.copies // self.settings.batch_size + 1

    @property
    def iterations_per_start(self) -> int:
        """Iterations from initial weights to the end of the schedule."""
        return self.settings.epochs * self.iterations_per_epoch

    @property
    def total_iterations(self) -> int:
        """Iterations of the whole training, of all restarts together."""
        return self.settings.restarts * self.iterations_per_start

    @property
    def start_ends(self) -> bool:
        """Whether the schedule has ended, so that `keep_or_drop` is due; never with a single start."""
        return self.settings.restarts > 1 and self.iteration == (self._starts_ended + 1) * self.iterations_per_start

    @property
    def learning_rate(self) -> float:
        """The step size of the present iteration."""
        start = min(self.iteration // self.iterations_per_start, self.settings.restarts - 1)
        iteration = self.iteration - start * self.iterations_per_start
        rate = self.settings.learning_rate * self.settings.learning_rate_decay ** (
            iteration // self.iterations_per_epoch
        )
        if self.settings.schedule == "cosine":
            rate *= 0.5 * (1 + math.cos(math.pi * iteration / self.iterations_per_start))
        return rate

    def keep_or_drop(self, score: float) -> None:
        """Ends one of several starts: keeps its weights if its score is the best so far, then starts again.

        After the last start the agent has the kept weights.

        Args:
            score: how well the present weights do on validation tasks; of equal ones the first is kept.
        """
        self._starts_ended += 1
        if score > self._kept_score:
            self._kept, self._kept_score = {name: value.clone() for name, value in self._weights().items()}, score
        if self.iteration < self.total_iterations:
            self._start(int(self._rng(RESTART, self.iteration).integers(2**63)))
        else:
            self._load_weights(self._kept)
            self._kept = {}

    def train_iteration(self) -> Losses:
        """Takes one optimiser step on an imitation batch and, if there is an auxiliary loss, two episodes."""
        rng = self._rng(ITERATION, self.iteration)
        batch = self._draw_batch(rng)
        groups, kernels = [batch], [self._draw_kernel(rng, batch=True)]
        pair = self._draw_pair(rng)
        if pair is not None:
            groups += [self._draw_copy(task, rng) for task in pair]
            kernels += [self._draw_kernel(rng), self._draw_kernel(rng)]
        parts = self._represent(groups, kernels)
        imitation = self._imitation_loss(parts[0], batch, rng)
        auxiliary = torch.zeros(()) if pair is None else self._auxiliary_loss(parts[1], parts[2], pair)
        regularisation = self._regularisation()
        self._step(imitation + self.settings.coefficient * auxiliary + regularisation)
        return Losses(float(imitation.detach()), float(auxiliary.detach()), float(regularisation.detach()))

    def _step(self, loss: Tensor) -> None:
        for group in self.optimiser.param_groups:
            group["lr"] = self.learning_rate
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        self.iteration += 1

    def _represent(self, groups: list[NDArray[np.int64]], kernels: list[Tensor | None]) -> tuple[Tensor, ...]:
        """Represents each group, computing repeated observations once; groups without a kernel share theirs."""
        merged: list[tuple[NDArray[np.int64], Tensor | None]] = []
        plain = [group for group, kernel in zip(groups, kernels, strict=True) if kernel is None]
        if plain:
            merged.append((np.unique(np.concatenate(plain)), None))
        merged += [(np.unique(g), kernel) for g, kernel in zip(groups, kernels, strict=True) if kernel is not None]
        rows = self.encoder.represent(self.network, [numbers for numbers, _ in merged], [k for _, k in merged])
        starts = np.cumsum([0, *(len(numbers) for numbers, _ in merged)])
        place = {id(kernel): k for k, (_, kernel) in enumerate(merged)}
        parts = []
        for group, kernel in zip(groups, kernels, strict=True):
            k = place[id(kernel)]
            parts.append(rows[torch.from_numpy(starts[k] + np.searchsorted(merged[k][0], group)).to(self.device)])
        return tuple(parts)

    def _imitation_loss(self, representations: Tensor, batch: NDArray[np.int64], rng: np.random.Generator) -> Tensor:
        dropout = self.settings.dropout
        if dropout:
            keep = torch.from_numpy(rng.random(representations.shape, dtype=np.float32) >= dropout)
            representations = representations * keep.to(self.device) / (1 - dropout)
        target = torch.from_numpy(self.data.actions[batch]).to(self.device)
        return functional.cross_entropy(self.network.policy(representations), target)

    def _auxiliary_loss(self, x: Tensor, y: Tensor, pair: tuple[int, int]) -> Tensor:
        assert self._metric is not None
        metric = self._metric[pair]
        return metric_l2_loss(x, y, metric) if self.loss is None else self.loss(x, y, metric)

    def _regularisation(self) -> Tensor:
        if not self.settings.l2_coefficient:
            return torch.zeros(())
        squares = torch.stack([parameter.square().sum() for parameter in self.parameters])
        return self.settings.l2_coefficient * 0.5 * squares.mean()

    def _draw_batch(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draws each element from the jumps with probability 1/2, each class from its own shuffled stream.

        Where the data has only one of the classes, all elements are of that one.
        """
        classes = (rng.random(self.settings.batch_size) < 0.5).astype(np.int64)
        batch = np.empty(len(classes), dtype=np.int64)
        for label, members in enumerate(self._classes):
            if len(members) == 0:
                classes[:] = 1 - label
        for label, members in enumerate(self._classes):
            count = int((classes == label).sum())
            if count:
                batch[classes == label] = self._take(label, members, count)
        return batch

    def _take(self, label: int, members: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        wanted = np.arange(self._drawn[label], self._drawn[label] + count)
        self._drawn[label] += count
        taken = np.empty(count, dtype=np.int64)
        for turn in np.unique(wanted // len(members)):
            shuffled = self._rng(SHUFFLE, label, turn).permutation(members)
            inside = wanted // len(members) == turn
            taken[inside] = shuffled[wanted[inside] % len(members)]
        return taken

    def _draw_pair(self, rng: np.random.Generator) -> tuple[int, int] | None:
        if self.settings.auxiliary == "none":
            return None
        x, y = rng.choice(len(self.data.episodes), 2, replace=False)
        return int(x), int(y)

    def _draw_copy(self, task: int, rng: np.random.Generator) -> NDArray[np.int64]:
        copy = rng.integers(self.data.copies) if self.data.copies > 1 else 0
        return np.asarray(self.data.episodes[task, copy])

    def _draw_kernel(self, rng: np.random.Generator, batch: bool = False) -> Tensor | None:
        settings = self.settings
        if settings.augmentation == "none":
            return None
        probability = settings.pass_probability
        if batch and settings.coin == "run":
            probability = float(self._run_passes)
        return draw_kernel(rng, settings, self.data.observations.shape[3] // 2, probability)

    def _rng(self, *stream: int) -> np.random.Generator:
        return stream_generator(self.seed, *stream)

    def evaluation_kernels(self) -> list[Tensor | None]:
        """The kernels to average over at the present iteration; a single None without augmentation."""
        return evaluation_kernels(self.settings, self.seed, self.iteration, self.data.observations.shape[3] // 2)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything that training needs to go on: tensors, and numbers fit for JSON."""
        tensors = self._weights() | {f"kept.{name}": value for name, value in self._kept.items()}
        for number, parameter in enumerate(self.parameters):
            for name, value in self.optimiser.state[parameter].items():
                tensors[f"adam.{number}.{name}"] = value
        numbers: dict[str, Any] = {"iteration": self.iteration, "drawn": self._drawn}
        if self._starts_ended:
            numbers |= {"starts_ended": self._starts_ended, "kept_score": self._kept_score}
        return tensors, numbers

    def restore(self, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
        """Takes up a state that `state` returned."""
        self._load_weights(tensors)
        for number, parameter in enumerate(self.parameters):
            self.optimiser.state[parameter] = tensors_below(f"adam.{number}.", tensors)
        self._kept, self._kept_score = tensors_below("kept.", tensors), float(numbers.get("kept_score", -math.inf))
        self._starts_ended = int(numbers.get("starts_ended", 0))
        self.iteration, self._drawn = int(numbers["iteration"]), [int(count) for count in numbers["drawn"]]

    def _weights(self) -> dict[str, Tensor]:
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        if self.loss is not None:
            tensors |= {f"loss.{name}": value for name, value in self.loss.state_dict().items()}
        return tensors

    def _load_weights(self, tensors: dict[str, Tensor]) -> None:
        load_module(self.network, "network.", tensors)
        if self.loss is not None:
            load_module(self.loss, "loss.", tensors)
