"""Gradient descent on two layers in few coordinates, exactly.

Gradients of K_1 lie in the span of the training observations, E * s of the n directions, and gradient descent, with or
without momentum, is the same in every orthonormal basis. So it suffices to train in a basis of that span; what the
initial K_1 has outside of it never changes. Adam divides by a scale per coordinate and has no such freedom.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pisces.agents.linear.training import TrainedSeed, TrainingBatch


@dataclass(frozen=True)
class Rotation:
    """The span of the training observations of each seed."""

    basis: Tensor
    """Orthonormal columns, [S, n, E * s]."""
    initial: Tensor
    """K_1' before training, [S, n, h]."""

    @classmethod
    def of(cls, batch: TrainingBatch, first: Tensor) -> Rotation:
        """The rotation for a batch and its initial first layer, K_1' [S, n, h]."""
        return cls(torch.linalg.qr(batch.features.flatten(1, 2).mT)[0], first.detach().clone())

    def reduce(self, batch: TrainingBatch) -> tuple[TrainingBatch, Tensor]:
        """The same problem in the basis, and the initial first layer in it, [S, E * s, h]."""
        features = batch.features @ self.basis[:, None]
        return replace(batch, features=features), self.basis.mT @ self.initial

    def lift(self, index: int, trained: TrainedSeed) -> TrainedSeed:
        """A trained seed in the observations' own coordinates."""
        basis, initial = self.basis[index], self.initial[index]
        first = initial + basis @ (trained.layers[0] - basis.T @ initial)
        return replace(trained, layers=(first, *trained.layers[1:]))
