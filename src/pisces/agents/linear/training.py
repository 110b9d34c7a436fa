"""Training of linear policies for many seeds at once; every seed stops when its own training cost has converged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from pisces.agents.linear.control import SystemBatch
from pisces.agents.linear.settings import LinearSettings

MOMENTUM = 0.9
SHRINK = 0.5
"""Where a step has made a closed loop unstable, the policy is multiplied by this until it is stable again; the zero
policy always is."""
Report = Callable[[int, int, float], None]
"""Called after every step with its number, the seeds still training and their mean training cost."""
PRECISIONS = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True)
class TrainingBatch:
    """What the seeds of a batch learn from; S seeds, E environments, n observation entries, s states."""

    systems: SystemBatch
    """The systems, float64."""
    features: Tensor
    """Transposed observation matrices, [S, E, s, n]."""
    pairs: Tensor | None = None
    """Factor Z, [S, E * s, r], of the aggregation loss |K_1 [W_1 ... W_E] Z|^2; see `pair_factor`."""

    def keep(self, indices: Tensor) -> TrainingBatch:
        """The part of some of the seeds."""
        pairs = None if self.pairs is None else self.pairs[indices]
        return TrainingBatch(self.systems.keep(indices), self.features[indices], pairs)


@dataclass(frozen=True)
class TrainedSeed:
    """What training gave one seed."""

    layers: tuple[Tensor, ...]
    """The policy's matrices, transposed: K_1' [n, h] and K_2' [h, a], or the one matrix K' [n, a]."""
    train_cost: float
    """Mean cost in the training environments at the last step; may be infinite."""
    steps: int
    """Steps taken."""
    shrinks: int
    """How often the policy had to be shrunk to be stable."""


class Policies(Protocol):
    """One linear policy per seed, and how they take a step."""

    optimizers: list[torch.optim.Optimizer]
    """They own the parameters, each [S, ...]."""

    def train_step(self, batch: TrainingBatch) -> Tensor:
        """Takes one step and returns the costs before it, [S, E]."""

    def layers(self) -> tuple[Tensor, ...]:
        """The policies' matrices, transposed, each [S, ...]."""


class TwoLayerPolicies:
    """K = K_2 K_1, learned by the mean cost of all environments; optionally sparse, or with aggregation."""

    def __init__(self, first: Tensor, second: Tensor, settings: LinearSettings) -> None:
        self.first, self.second = first.requires_grad_(), second.requires_grad_()  # K_1' [S, n, h], K_2' [S, h, a]
        self.settings = settings
        self.optimizers = [make_optimizer([self.first, self.second], settings)]
        self._gradient = torch.empty_like(first)

    def train_step(self, batch: TrainingBatch) -> Tensor:
        """Takes one step on all environments together."""
        seeds, environments, states, observed = batch.features.shape
        features = batch.features.view(seeds, environments * states, observed)
        with torch.no_grad():
            representations = torch.bmm(features, self.first)
        representations.requires_grad_()
        gains = torch.bmm(representations, self.second).view(seeds, environments, states, -1).mT
        costs = batch.systems.costs(gains.double())
        loss = torch.where(costs.isfinite(), costs, 0.0).mean(dim=1).sum()
        if self.settings.aggregation and batch.pairs is not None:
            differences = torch.bmm(batch.pairs.mT, representations)
            loss = loss + self.settings.aggregation * differences.square().sum()
        self.optimizers[0].zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._pull_back(features, representations.grad)
        step_where_stable(self.optimizers[0], costs.detach().isfinite().all(dim=1), shrinking=[self.second])
        return costs.detach()

    @torch.no_grad()
    def _pull_back(self, features: Tensor, gradient: Tensor | None) -> None:
        """Gradient of the first layer, into memory that is kept: fresh memory of this size costs as much as the sum."""
        assert gradient is not None
        self._gradient = self._gradient[: len(features)]
        self.first.grad = torch.bmm(features.mT, gradient, out=self._gradient)
        if self.settings.sparsity and self.second.grad is not None:
            self.first.grad.add_(self.first.sign(), alpha=self.settings.sparsity)
            self.second.grad.add_(self.second.sign(), alpha=self.settings.sparsity)

    def layers(self) -> tuple[Tensor, ...]:
        """K_1' and K_2'."""
        return self.first.detach(), self.second.detach()


class EnsemblePolicies:
    """IPO: K is the mean of one matrix per environment, each answering in turn with its own environment's cost."""

    def __init__(self, parts: Sequence[Tensor], settings: LinearSettings) -> None:
        self.parts = [part.requires_grad_() for part in parts]  # one [S, n, a] per environment
        self.optimizers = [make_optimizer([part], settings) for part in self.parts]

    def train_step(self, batch: TrainingBatch) -> Tensor:
        """Lets each environment's matrix take one step with the others fixed."""
        costs = []
        for index, optimizer in enumerate(self.optimizers):
            features = batch.features[:, index]
            answers = [torch.bmm(features, part if i == index else part.detach()) for i, part in enumerate(self.parts)]
            gains = torch.stack(answers).mean(dim=0).mT
            cost = batch.systems.costs(gains.double()[:, None])
            optimizer.zero_grad()
            torch.where(cost.isfinite(), cost, 0.0).sum().backward()  # type: ignore[no-untyped-call]
            step_where_stable(optimizer, cost.detach().isfinite().all(dim=1), shrinking=self.parts)
            costs.append(cost.detach())
        return torch.cat(costs, dim=1)

    def layers(self) -> tuple[Tensor, ...]:
        """The mean K'."""
        return (torch.stack([part.detach() for part in self.parts]).mean(dim=0),)


def make_optimizer(parameters: Sequence[Tensor], settings: LinearSettings) -> torch.optim.Optimizer:
    """The optimizer that the settings name."""
    if settings.optimizer == "adam":
        return torch.optim.Adam(parameters, lr=settings.learning_rate, fused=True)
    momentum = MOMENTUM if settings.optimizer == "momentum" else 0.0
    return torch.optim.SGD(parameters, lr=settings.learning_rate, momentum=momentum, fused=True)


@torch.no_grad()
def step_where_stable(optimizer: torch.optim.Optimizer, stable: Tensor, shrinking: Sequence[Tensor]) -> None:
    """Takes a step for the stable seeds; unstable ones lose their momentum and shrink instead."""
    if stable.all():
        optimizer.step()
        return
    for parameter in parameters_of(optimizer):
        for tensor in (parameter.grad, *optimizer.state[parameter].values()):
            if torch.is_tensor(tensor) and tensor.shape == parameter.shape:
                tensor[~stable] = 0
    optimizer.step()
    for parameter in shrinking:
        parameter[~stable] *= SHRINK


def parameters_of(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """The tensors that an optimizer changes."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def keep_seeds(policies: Policies, indices: Tensor) -> None:
    """Drops the other seeds' parameters and what the optimizers remember of them."""
    for optimizer in policies.optimizers:
        for parameter in parameters_of(optimizer):
            for name, value in optimizer.state[parameter].items():
                if torch.is_tensor(value) and value.shape == parameter.shape:
                    optimizer.state[parameter][name] = value[indices]
            parameter.grad = None
            parameter.data = parameter.data[indices]


def train(
    policies: Policies,
    batch: TrainingBatch,
    settings: LinearSettings,
    report: Report = lambda step, left, cost: None,
) -> list[TrainedSeed]:
    """Trains until every seed has converged or `max_steps` are reached.

    Args:
        policies: the policies at their start; they are used up.
        batch: what they learn from.
        settings: how they learn.
        report: see `Report`.

    Returns:
        One entry per seed, in their order.
    """
    seeds = torch.arange(len(batch.features))
    trained: dict[int, TrainedSeed] = {}
    best = torch.full((len(seeds),), torch.inf, dtype=torch.float64)
    best_step = torch.zeros(len(seeds), dtype=torch.long)
    shrinks = torch.zeros(len(seeds), dtype=torch.long)
    for step in range(1, settings.max_steps + 1):
        cost = policies.train_step(batch).mean(dim=1)
        shrinks += ~cost.isfinite()
        better = cost < best * (1 - settings.tolerance)
        best, best_step = torch.where(better, cost, best), torch.where(better, step, best_step)
        report(step, len(seeds), float(cost.mean()))
        done = (step - best_step >= settings.patience) & cost.isfinite() | (step == settings.max_steps)
        if done.any():
            layers = policies.layers()
            for index in done.nonzero()[:, 0].tolist():
                own = tuple(layer[index].clone() for layer in layers)
                trained[int(seeds[index])] = TrainedSeed(own, float(cost[index]), step, int(shrinks[index]))
            kept = (~done).nonzero()[:, 0]
            keep_seeds(policies, kept)
            batch = batch.keep(kept)
            seeds, best, best_step, shrinks = seeds[kept], best[kept], best_step[kept], shrinks[kept]
        if not len(seeds):
            break
    return [trained[index] for index in sorted(trained)]
