"""MICo: a distance of features that matches the MICo distance, learned by temporal differences."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

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
from pisces.losses.numerics import directions, in_full_precision


@in_full_precision
def norm_angle_distance(features_x: Tensor, features_y: Tensor, *, beta: float = 0.1) -> Tensor:
    """The parametrized distance of MICo (arXiv:2106.08229), which may be positive between equal features.

    U(x, y) = ( |x|^2 + |y|^2 ) / 2 + beta * angle(x, y)

    Args:
        features_x: [n, k].
        features_y: [m, k].
        beta: weight of the angle, which is in radians.

    Returns:
        Distances [n, m].
    """
    lengths = (features_x.square().sum(dim=1)[:, None] + features_y.square().sum(dim=1)[None, :]) / 2
    x, y = directions(features_x), directions(features_y)
    # Precise for small and for large angles, unlike the arc cosine, whose slope is infinite at both ends.
    return lengths + beta * 2 * torch.atan2(pairwise(x, y), pairwise(x, -y))


@in_full_precision
def mico_loss(
    features: Tensor,
    others: Tensor,
    rewards: Tensor,
    next_features: Tensor,
    *,
    discount: float,
    beta: float = 0.1,
    penalty: Penalty = "squared",
    self_pairs: bool = False,
) -> Tensor:
    """The MICo loss (arXiv:2106.08229), averaged over all pairs of transitions.

        loss_ij = ( U(x_i, x_j) - |r_i - r_j| - discount * U'(x'_i, x'_j) )^2

    U is `norm_angle_distance`; no gradient flows into the second and third term.

    Args:
        features: of the observations x, [n, k].
        others: of the same observations as second of each pair, [n, k]: the same features, or the target encoder's.
        rewards: [n].
        next_features: of the next observations, [n, k], usually the target encoder's.
        discount: in [0, 1).
        beta: weight of the angle.
        penalty: "squared", or "huber" with threshold 1.
        self_pairs: keeps the pairs of a transition with itself, whose two next states are not independent samples; the
            distance of a state to itself is then biased if dynamics are random. The published code keeps them.

    Returns:
        The loss, a scalar.
    """
    check_options(discount, penalty)
    check_rewards(rewards, len(features))
    following = norm_angle_distance(next_features, next_features, beta=beta)
    wanted = reward_differences(rewards) + discount * following
    return mean_penalty(norm_angle_distance(features, others, beta=beta), wanted, penalty, self_pairs)


class MICoLoss(BehavioralLoss):
    """The MICo loss (arXiv:2106.08229). It has no parameters of its own.

    Args:
        feature_size: width of the features; unused, as is the next one.
        action_size: number of actions, or entries of a continuous one.
        discount: of the metric.
        beta: weight of the angle.
        penalty: "squared" as in the paper, or "huber" as in the published code.
        against_target: takes the second state of each pair from the target encoder, as the published code does; False
            trains both.
        self_pairs: keeps the pairs of a transition with itself; see `mico_loss`.
        absorbing: compares terminal states as absorbing ones with reward zero; the published code does not.
        generator: unused.
    """

    uses_target: ClassVar[bool] = True

    def __init__(
        self,
        feature_size: int,
        action_size: int,
        *,
        discount: float = 0.99,
        beta: float = 0.1,
        penalty: Penalty = "huber",
        against_target: bool = True,
        self_pairs: bool = False,
        absorbing: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        check_options(discount, penalty)
        check_positive("beta", beta)
        self.discount, self.beta, self.penalty = discount, beta, penalty
        self.against_target, self.self_pairs, self.absorbing = against_target, self_pairs, absorbing

    def forward(self, encoder: Encoder, transitions: Transitions, target: Encoder | None = None) -> Tensor:
        """Returns the loss."""
        batch = transitions.with_absorbing() if self.absorbing else transitions
        features = encoder(batch.observations)
        others = target_features(encoder, target, batch.observations) if self.against_target else features
        return mico_loss(
            features,
            others,
            batch.rewards,
            target_features(encoder, target, batch.next_observations),
            discount=self.discount,
            beta=self.beta,
            penalty=self.penalty,
            self_pairs=self.self_pairs,
        )

    def distance(self, features_x: Tensor, features_y: Tensor) -> Tensor:
        """See `norm_angle_distance`."""
        return norm_angle_distance(features_x, features_y, beta=self.beta)
