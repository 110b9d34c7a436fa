"""CURL: features that identify an observation under augmentation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from pisces.losses.behavioral import BehavioralLoss, Encoder, Transitions, target_features
from pisces.losses.checks import check_rows
from pisces.losses.numerics import in_full_precision


@in_full_precision
def curl_loss(queries: Tensor, keys: Tensor, weight: Tensor) -> Tensor:
    """CURL's InfoNCE loss with a bilinear similarity (arXiv:2004.04136): row i of queries and keys are a positive pair.

        loss_i = -log( exp(q_i . W k_i) / sum_j exp(q_i . W k_j) )

    averaged over i.

    Args:
        queries: [n, k].
        keys: [n, k]; no gradient flows into them.
        weight: W, [k, k].

    Returns:
        The loss, a scalar.
    """
    check_rows("queries and keys", queries, keys)
    logits = queries @ weight @ keys.detach().T
    return functional.cross_entropy(logits, torch.arange(len(logits), device=logits.device))


class CURLLoss(BehavioralLoss):
    """CURL (arXiv:2004.04136): contrasts two augmented views of each observation.

    The second view goes through the target encoder. Actions, rewards and next observations are not used: what is
    learned is no behavioral metric. Without augmentation the loss only pushes states apart.

    Args:
        feature_size: width of the features.
        action_size: number of actions, or entries of a continuous one; unused.
        augment: maps observations to augmented ones, called once per view; None if the encoder itself augments.
        generator: unused.
    """

    uses_target: ClassVar[bool] = True

    def __init__(
        self,
        feature_size: int,
        action_size: int,
        *,
        augment: Callable[[Any], Any] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.augment = augment
        # The published code draws it at random, so that a state may be more similar to others than to itself.
        self.weight = nn.Parameter(torch.eye(feature_size))

    def forward(self, encoder: Encoder, transitions: Transitions, target: Encoder | None = None) -> Tensor:
        """Returns the loss."""
        first, second = transitions.observations, transitions.observations
        if self.augment is not None:
            first, second = self.augment(first), self.augment(second)
        return curl_loss(encoder(first), target_features(encoder, target, second), self.weight)
