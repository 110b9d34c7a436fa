"""SimSR: a cosine distance of features that matches pi-bisimulation with independent couplings."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from pisces.errors import unknown_name
from pisces.losses.behavioral import (
    BehavioralLoss,
    Encoder,
    Penalty,
    Transitions,
    check_options,
    mean_penalty,
    reward_differences,
    target_features,
)
from pisces.losses.checks import check_positive, check_rewards
from pisces.losses.models import ActionModel
from pisces.losses.numerics import cosine_similarity, directions, in_full_precision

NEXT = ("model", "observed")


@in_full_precision
def simsr_loss(
    current: Tensor, rewards: Tensor, following: Tensor, *, discount: float, penalty: Penalty = "squared"
) -> Tensor:
    """SimSR's loss of the encoder (arXiv:2112.15303), averaged over all pairs of different transitions.

        loss_ij = ( 1 - u_i . u_j - |r_i - r_j| - discount * (1 - v_i . v_j) )^2

    u are features of length one. v are those of the next observations, or their expectations: as products are linear,
    1 - E[v_i] . E[v_j] is the mean distance of independent next states. The distance is at most 2, so rewards must be
    scaled to differ by less than 2 (1 - discount).

    Args:
        current: u, [n, k].
        rewards: [n].
        following: v, [n, k]; no gradient flows into them.
        discount: in [0, 1).
        penalty: "squared", or "huber" with threshold 1.

    Returns:
        The loss, a scalar.
    """
    check_options(discount, penalty)
    check_rewards(rewards, len(current))
    wanted = reward_differences(rewards) + discount * (1 - following @ following.T)
    return mean_penalty(1 - current @ current.T, wanted, penalty, self_pairs=False)


class SimSRLoss(BehavioralLoss):
    """SimSR (arXiv:2112.15303): the encoder's loss, and that of the model of the next features.

    The model predicts the mean of the next features' directions, where the published code samples from an ensemble.

    Args:
        feature_size: width of the features.
        action_size: number of actions, or entries of a continuous one.
        discount: of the metric.
        reward_scale: factor of the rewards, so that distances stay below 2.
        penalty: "squared" as in the paper, or "huber" as in the published code.
        next_states: "model" compares predicted next states, "observed" those of the batch, without a model.
        through_encoder: whether the model's loss trains the encoder too, as in the published code.
        absorbing: compares terminal states as absorbing ones with reward zero; the published code does not.
        hidden_size, layer_norm: of the model's hidden layer; hidden size 0 makes the model linear.
        generator: draws the initial weights.
    """

    uses_target: ClassVar[bool] = True

    def __init__(
        self,
        feature_size: int,
        action_size: int,
        *,
        discount: float = 0.99,
        reward_scale: float = 1.0,
        penalty: Penalty = "huber",
        next_states: str = "model",
        through_encoder: bool = True,
        absorbing: bool = True,
        hidden_size: int = 256,
        layer_norm: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        check_options(discount, penalty)
        check_positive("reward_scale", reward_scale)
        if next_states not in NEXT:
            raise unknown_name("next_states", next_states, NEXT)
        self.discount, self.reward_scale, self.penalty = discount, reward_scale, penalty
        self.through_encoder, self.absorbing = through_encoder, absorbing
        self.model = None
        if next_states == "model":
            self.model = ActionModel(
                *(feature_size, action_size, feature_size),
                hidden_size=hidden_size,
                layer_norm=layer_norm,
                generator=generator,
            )

    def forward(self, encoder: Encoder, transitions: Transitions, target: Encoder | None = None) -> Tensor:
        """Returns the sum of both losses."""
        batch = transitions.with_absorbing() if self.absorbing else transitions
        current = directions(encoder(batch.observations))
        following = directions(target_features(encoder, target, batch.next_observations))
        model_loss = torch.zeros((), device=current.device)
        if self.model is not None:
            known = current if self.through_encoder else current.detach()
            predicted = self.model(known, batch.actions)
            model_loss = 0.5 * (predicted - following).square().mean()
            following = predicted.detach()
        rewards = self.reward_scale * batch.rewards
        metric = simsr_loss(current, rewards, following, discount=self.discount, penalty=self.penalty)
        return metric + model_loss

    def distance(self, features_x: Tensor, features_y: Tensor) -> Tensor:
        """One minus the cosine."""
        return 1 - cosine_similarity(features_x, features_y)
