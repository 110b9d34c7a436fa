"""Self-prediction in the manner of SPR: features that predict the target encoder's next features."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from pisces.losses.behavioral import BehavioralLoss, Encoder, Transitions, target_features
from pisces.losses.models import ActionModel, linear
from pisces.losses.numerics import cosine_similarity, in_full_precision


@in_full_precision
def cosine_prediction_loss(predicted: Tensor, wanted: Tensor) -> Tensor:
    """SPR's loss (arXiv:2007.05929) for one step, plus one: 1 - cos(predicted_i, wanted_i), averaged over rows.

    Args:
        predicted: [n, k].
        wanted: [n, k]; no gradient flows into them.

    Returns:
        The loss, a scalar in [0, 2].
    """
    return 1 - functional.cosine_similarity(predicted, wanted.detach(), dim=1).mean()


class SelfPredictionLoss(BehavioralLoss):
    """Self-predictive representations (SPR, arXiv:2007.05929) with one step instead of five.

    A model predicts the next features; prediction and the target encoder's next features are projected and compared by
    their cosine. The projection of the target is the current one, not an average of earlier ones. Rewards are not used:
    what is learned is no behavioral metric.

    Args:
        feature_size: width of the features.
        action_size: number of actions, or entries of a continuous one.
        embedding_size: width of the projections.
        hidden_size, layer_norm: of the model's hidden layer; hidden size 0 makes the model linear.
        generator: draws the initial weights.
    """

    uses_target: ClassVar[bool] = True

    def __init__(
        self,
        feature_size: int,
        action_size: int,
        *,
        embedding_size: int = 64,
        hidden_size: int = 256,
        layer_norm: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.model = ActionModel(
            *(feature_size, action_size, feature_size),
            hidden_size=hidden_size,
            layer_norm=layer_norm,
            generator=generator,
        )
        self.projection: nn.Module = linear(feature_size, embedding_size, generator)
        self.predictor: nn.Module = linear(embedding_size, embedding_size, generator)

    def forward(self, encoder: Encoder, transitions: Transitions, target: Encoder | None = None) -> Tensor:
        """Returns the loss."""
        predicted = self.model(encoder(transitions.observations), transitions.actions)
        following = target_features(encoder, target, transitions.next_observations)
        return cosine_prediction_loss(self.predictor(self.projection(predicted)), self.projection(following))

    def distance(self, features_x: Tensor, features_y: Tensor) -> Tensor:
        """One minus the cosine of the projections."""
        return 1 - cosine_similarity(self.projection(features_x), self.projection(features_y))
