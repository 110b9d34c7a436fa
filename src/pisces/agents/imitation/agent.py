"""Imitation of optimal episodes with an optional behavioral loss: the agent of the jumping task."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from pisces.agents.checkpoint import load_module, load_optimizer, optimizer_tensors, tensors_below
from pisces.agents.devices import check_device
from pisces.agents.imitation.auxiliary import EpisodeTransitions, draw_transitions, make_auxiliary, transition_loss
from pisces.agents.imitation.encoders import make_encoder, make_network
from pisces.agents.imitation.kernels import (
    ITERATION,
    RESTART,
    RUN,
    SHUFFLE,
    draw_kernel,
    evaluation_kernels,
    stream_generator,
)
from pisces.agents.imitation.settings import ImitationSettings
from pisces.losses import BehavioralLoss, TargetNetwork, metric_l2_loss
from pisces.pairs import Pair, TrajectoryPairs

ADAM_EPSILON = 1e-7
JUMP = 1


@dataclass(frozen=True)
class ImitationData:
    """The training data of the imitation agent."""

    observations: NDArray[np.uint8]
    """Distinct observations as stored, uint8 [N, 60, 60, channels]."""
    actions: NDArray[np.int64]
    """The optimal action in each observation, [N]."""
    pairs: TrajectoryPairs | None = None
    """Pairs of episodes for the auxiliary loss, whose observations are numbers of `observations`; None without one."""
    transitions: EpisodeTransitions | None = None
    """What follows each observation, for losses on transitions; None without one."""
    copies: int = 1
    """The number of versions of each episode: itself and shifted ones. Version k of an episode of T states has its
    observations k T further on."""


@dataclass(frozen=True)
class Losses:
    """The parts of one iteration's loss."""

    imitation: float
    """Cross-entropy of the optimal actions."""
    auxiliary: float
    """The metric embedding loss, before its coefficient."""
    regularization: float
    """The l2 term, with its coefficient."""


class ImitationAgent:
    """A network that imitates optimal actions, with its optimizer and its progress.

    Args:
        data: the training tasks' optimal episodes.
        settings: the hyperparameters.
        seed: seeds the initial weights and all sampling.
        device: the torch device.
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
        self._run_passes = self._rng(RUN).random() < settings.passthrough_probability

    def _start(self, weights_seed: int) -> None:
        generator = torch.Generator().manual_seed(weights_seed)
        channels = self.data.observations.shape[3]
        self.network = make_network(self.settings.network, channels, generator).to(self.device)
        self.loss = make_auxiliary(self.settings, generator, self.device)
        targeted = isinstance(self.loss, BehavioralLoss) and self.loss.uses_target
        self.target = TargetNetwork(self.network, self.settings.tau) if targeted else None
        self.parameters = [*self.network.parameters(), *(self.loss.parameters() if self.loss else ())]
        rate = self.settings.learning_rate
        self.optimizer = torch.optim.Adam(self.parameters, lr=rate, eps=ADAM_EPSILON, fused=True)

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
        """The learning rate of the current iteration."""
        start = min(self.iteration // self.iterations_per_start, self.settings.restarts - 1)
        return self.settings.rate_at(self.iteration - start * self.iterations_per_start, self.iterations_per_epoch)

    def keep_or_drop(self, score: float) -> None:
        """Ends one of several starts: keeps its weights if its score is the best so far, then starts again.

        After the last start the agent has the kept weights.

        Args:
            score: the validation score of the current weights; of equal ones the first is kept.
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
        """Takes one optimizer step on an imitation batch and, with an auxiliary loss, a pair of episodes."""
        rng = self._rng(ITERATION, self.iteration)
        batch = self._draw_batch(rng)
        groups, kernels = [batch], [self._draw_kernel(rng, batch=True)]
        pair = self._draw_pair(rng)
        if pair is not None:
            groups += [self._draw_copy(numbers, rng) for numbers in (pair.observations_x, pair.observations_y)]
            kernels += [self._draw_kernel(rng), self._draw_kernel(rng)]
        parts = self._represent(groups, kernels)
        imitation = self._imitation_loss(parts[0], batch, rng)
        auxiliary = torch.zeros(())
        if pair is not None:
            auxiliary = self._auxiliary_loss(parts[1], parts[2], pair.metric)
        elif isinstance(self.loss, BehavioralLoss):
            auxiliary = self._transition_loss(self.loss, rng)
        regularization = self._regularization()
        self._step(imitation + self.settings.coefficient * auxiliary + regularization)
        return Losses(float(imitation.detach()), float(auxiliary.detach()), float(regularization.detach()))

    def _step(self, loss: Tensor) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        if self.target is not None:
            self.target.update(self.network)
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

    def _auxiliary_loss(self, x: Tensor, y: Tensor, metric: Tensor) -> Tensor:
        metric = metric.to(self.device)
        return metric_l2_loss(x, y, metric) if self.loss is None else self.loss(x, y, metric)

    def _transition_loss(self, loss: BehavioralLoss, rng: np.random.Generator) -> Tensor:
        """A loss on sampled transitions; each set of observations has its own kernel."""
        assert self.data.transitions is not None
        batch = draw_transitions(self.data.transitions, self.data.actions, self.settings.batch_size, rng, self.device)

        def represent(network: Any, numbers: NDArray[np.int64]) -> Tensor:
            return self.encoder.represent(network, [numbers], [self._draw_kernel(rng)])

        return transition_loss(loss, batch, represent, self.network, self.target)

    def _regularization(self) -> Tensor:
        if not self.settings.l2_coefficient:
            return torch.zeros(())
        squares = torch.stack([parameter.square().sum() for parameter in self.parameters])
        return self.settings.l2_coefficient * 0.5 * squares.mean()

    def _draw_batch(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Samples each element from the jumps with probability 1/2, each class from its own shuffled stream.

        If the data has only one of the classes, all elements are of that class.
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

    def _draw_pair(self, rng: np.random.Generator) -> Pair | None:
        if self.settings.auxiliary not in ("contrastive", "l2"):
            return None
        assert self.data.pairs is not None
        return self.data.pairs.sample(rng)

    def _draw_copy(self, numbers: Tensor, rng: np.random.Generator) -> NDArray[np.int64]:
        """The numbers of an episode's states, or by chance those of a shifted copy of the episode."""
        copy = int(rng.integers(self.data.copies)) if self.data.copies > 1 else 0
        return numbers.numpy() + copy * len(numbers)

    def _draw_kernel(self, rng: np.random.Generator, batch: bool = False) -> Tensor | None:
        settings = self.settings
        if settings.augmentation == "none":
            return None
        probability = settings.passthrough_probability
        if batch and settings.passthrough_per == "run":
            probability = float(self._run_passes)
        return draw_kernel(rng, settings, self.data.observations.shape[3] // 2, probability)

    def _rng(self, *stream: int) -> np.random.Generator:
        return stream_generator(self.seed, *stream)

    def evaluation_kernels(self) -> list[Tensor | None]:
        """Returns the kernels to average over at the current iteration; a single None without augmentation."""
        return evaluation_kernels(self.settings, self.seed, self.iteration, self.data.observations.shape[3] // 2)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Returns everything that training needs to resume: tensors, and numbers fit for JSON."""
        tensors = self._weights() | {f"kept.{name}": value for name, value in self._kept.items()}
        tensors |= optimizer_tensors(self.optimizer, "adam.")
        numbers: dict[str, Any] = {"iteration": self.iteration, "drawn": self._drawn}
        if self._starts_ended:
            numbers |= {"starts_ended": self._starts_ended, "kept_score": self._kept_score}
        return tensors, numbers

    def restore(self, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
        """Restores a state that `state` returned."""
        self._load_weights(tensors)
        load_optimizer(self.optimizer, "adam.", tensors)
        self._kept, self._kept_score = tensors_below("kept.", tensors), float(numbers.get("kept_score", -math.inf))
        self._starts_ended = int(numbers.get("starts_ended", 0))
        self.iteration, self._drawn = int(numbers["iteration"]), [int(count) for count in numbers["drawn"]]

    def _weights(self) -> dict[str, Tensor]:
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        if self.loss is not None:
            tensors |= {f"loss.{name}": value for name, value in self.loss.state_dict().items()}
        if self.target is not None:
            tensors |= {f"target.{name}": value for name, value in self.target.state_dict().items()}
        return tensors

    def _load_weights(self, tensors: dict[str, Tensor]) -> None:
        load_module(self.network, "network.", tensors)
        if self.loss is not None:
            load_module(self.loss, "loss.", tensors)
        if self.target is not None:
            load_module(self.target, "target.", tensors)
