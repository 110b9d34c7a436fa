"""DeepMDP: features from which the reward and the next features can be predicted."""

from __future__ import annotations

import torch
from torch import Tensor

from pisces.losses.behavioral import BehavioralLoss, Encoder, Transitions, target_features
from pisces.losses.checks import check_rewards
from pisces.losses.models import ActionModel
from pisces.losses.numerics import in_full_precision


@in_full_precision
def deepmdp_loss(
    predicted_rewards: Tensor, rewards: Tensor, predicted_features: Tensor, next_features: Tensor, *, squared: bool
) -> Tensor:
    """DeepMDP's losses of reward and transition with a deterministic model (arXiv:1906.02736).

        loss = mean_i |r_i - R(z_i, a_i)| + mean_i |z'_i - P(z_i, a_i)|_2

    For a deterministic model the Wasserstein distance of the second term is this norm.

    Args:
        predicted_rewards: R, [n].
        rewards: [n].
        predicted_features: P, [n, k].
        next_features: z', [n, k].
        squared: squares both errors, whose slope is then small near the solution.

    Returns:
        The loss, a scalar.
    """
    check_rewards(rewards, len(next_features))
    check_rewards(predicted_rewards, len(next_features))
    reward_errors = (rewards - predicted_rewards).abs()
    transition_errors = (next_features - predicted_features).square().sum(dim=1)
    if squared:
        return reward_errors.square().mean() + transition_errors.mean()
    # The slope of the root is infinite at zero.
    return reward_errors.mean() + transition_errors.clamp_min(torch.finfo(transition_errors.dtype).tiny).sqrt().mean()


class DeepMDPLoss(BehavioralLoss):
    """DeepMDP (arXiv:1906.02736): models of the reward and of the next features, trained with the encoder.

    At zero loss, states with equal features are bisimilar, and the bisimulation metric of discount g is at most
    K_R / (1 - g K_P) times the Euclidean distance of the features, if the models have Lipschitz constants K_R and K_P
    with g K_P < 1. The paper's penalty on these constants is left out.

    Args:
        feature_size: width of the features.
        action_size: number of actions, or entries of a continuous one.
        squared: squares the errors; False is the paper's loss.
        stop_gradient: takes the next features as fixed. In the paper they are trained too, and only the reward keeps
            the features from collapsing. With a target encoder they are always fixed.
        hidden_size, layer_norm: of the models' hidden layers; hidden size 0 makes the models linear.
        generator: draws the initial weights.
    """

    def __init__(
        self,
        feature_size: int,
        action_size: int,
        *,
        squared: bool = True,
        stop_gradient: bool = False,
        hidden_size: int = 256,
        layer_norm: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.squared, self.stop_gradient = squared, stop_gradient
        self.reward_model, self.transition_model = (
            ActionModel(
                *(feature_size, action_size, outputs),
                hidden_size=hidden_size,
                layer_norm=layer_norm,
                generator=generator,
            )
            for outputs in (1, feature_size)
        )

    def forward(self, encoder: Encoder, transitions: Transitions, target: Encoder | None = None) -> Tensor:
        """Returns the sum of both losses."""
        features = encoder(transitions.observations)
        fixed = self.stop_gradient or target is not None
        encode = target_features(encoder, target, transitions.next_observations) if fixed else None
        following = encoder(transitions.next_observations) if encode is None else encode
        predicted = self.transition_model(features, transitions.actions)
        rewards = self.reward_model(features, transitions.actions).squeeze(1)
        return deepmdp_loss(rewards, transitions.rewards, predicted, following, squared=self.squared)
