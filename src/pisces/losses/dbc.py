"""Deep bisimulation for control (DBC): distances of features that match a learned pi-bisimulation metric."""

from __future__ import annotations

import torch
from torch import Tensor

from pisces.errors import UserError
from pisces.losses.behavioral import (
    BehavioralLoss,
    Encoder,
    Penalty,
    Transitions,
    check_options,
    mean_penalty,
    pairwise,
    reward_differences,
    target_features,
)
from pisces.losses.checks import check_positive, check_rewards
from pisces.losses.models import GaussianModel
from pisces.losses.numerics import in_full_precision


@in_full_precision
def dbc_loss(
    features: Tensor,
    rewards: Tensor,
    next_mean: Tensor,
    next_std: Tensor,
    *,
    discount: float,
    norm: float = 1.0,
    penalty: Penalty = "squared",
) -> Tensor:
    """DBC's loss of the encoder (Eq. 4, arXiv:2006.10742), averaged over all pairs of different transitions.

        loss_ij = ( |z_i - z_j|_norm - |r_i - r_j| - discount * W_2(N_i, N_j) )^2
        W_2(N_i, N_j)^2 = |mean_i - mean_j|_2^2 + |std_i - std_j|_2^2

    N are the predicted Gaussians of the next features. The paper samples a permutation of the batch, of which this is
    the expectation. With norm 1 and more than one feature, the fixed point is not the pi-bisimulation metric, because
    W_2 is built on norm 2; with norm 2 it is, if dynamics are deterministic and the metric is Euclidean.

    Args:
        features: [n, k].
        rewards: [n].
        next_mean: means of the next features, [n, k]; no gradient flows into them.
        next_std: standard deviations of the next features, [n, k]; likewise.
        discount: in [0, 1).
        norm: p of the norm between features; 1 in the paper.
        penalty: "squared", or "huber" with threshold 1.

    Returns:
        The loss, a scalar.
    """
    check_options(discount, penalty)
    check_rewards(rewards, len(features))
    following = torch.cat([next_mean, next_std], dim=1).detach()
    wanted = reward_differences(rewards) + discount * pairwise(following, following)
    return mean_penalty(pairwise(features, features, norm), wanted, penalty, self_pairs=False)


class DBCLoss(BehavioralLoss):
    """DBC (arXiv:2006.10742): the encoder's loss, and that of the model of the next features.

    Args:
        feature_size: width of the features.
        action_size: number of actions, or entries of a continuous one.
        discount: of the metric.
        norm: p of the norm between features; 1 in the paper, 2 makes the fixed point a pi-bisimulation metric.
        penalty: "squared" as in the paper, or "huber".
        deterministic: predicts the next features without a standard deviation.
        through_encoder: whether the model's loss trains the encoder too, as in the published code.
        reward_range: largest minus smallest reward; given, features are clipped to half the diameter of the metric,
            reward_range / (1 - discount) / 2, the norm constraint of arXiv:2110.14096. None clips nothing.
        absorbing: compares terminal states as absorbing ones with reward zero; the published code does not.
        hidden_size, layer_norm: of the model's hidden layer; hidden size 0 makes the model linear.
        generator: draws the initial weights.
    """

    def __init__(
        self,
        feature_size: int,
        action_size: int,
        *,
        discount: float = 0.99,
        norm: float = 1.0,
        penalty: Penalty = "squared",
        deterministic: bool = False,
        through_encoder: bool = True,
        reward_range: float | None = None,
        absorbing: bool = True,
        hidden_size: int = 256,
        layer_norm: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        check_options(discount, penalty)
        if norm not in (1, 2):
            raise UserError(f"norm must be 1 or 2, got {norm}")
        if reward_range is not None:
            check_positive("reward_range", reward_range)
        self.discount, self.norm, self.penalty = discount, float(norm), penalty
        self.through_encoder, self.absorbing = through_encoder, absorbing
        self.longest = None if reward_range is None else reward_range / (1 - discount) / 2
        self.model = GaussianModel(
            feature_size,
            action_size,
            deterministic=deterministic,
            hidden_size=hidden_size,
            layer_norm=layer_norm,
            generator=generator,
        )

    def forward(self, encoder: Encoder, transitions: Transitions, target: Encoder | None = None) -> Tensor:
        """Returns the sum of both losses."""
        batch = transitions.with_absorbing() if self.absorbing else transitions
        features = self.clip(encoder(batch.observations))
        following = self.clip(target_features(encoder, target, batch.next_observations))
        mean, std = self.model(features if self.through_encoder else features.detach(), batch.actions)
        mean = self.clip(mean)
        metric = dbc_loss(
            features, batch.rewards, mean, std, discount=self.discount, norm=self.norm, penalty=self.penalty
        )
        model_loss: Tensor = self.model.loss(mean, std, following)
        return metric + model_loss

    def clip(self, features: Tensor) -> Tensor:
        """Scales features that are longer than half the metric's diameter to that length."""
        if self.longest is None:
            return features
        lengths = torch.linalg.vector_norm(features, ord=self.norm, dim=1, keepdim=True)
        clipped: Tensor = features / (lengths / self.longest).clamp_min(1.0)
        return clipped

    def distance(self, features_x: Tensor, features_y: Tensor) -> Tensor:
        """Distances in the norm of the loss, after clipping."""
        return pairwise(self.clip(features_x), self.clip(features_y), self.norm)
