"""Heads of losses on transitions: models of the reward and of the next features."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from pisces.errors import UserError
from pisces.losses.numerics import in_full_precision

LOWEST_STD, HIGHEST_STD = 1e-2, 10.0
"""Bounds of a predicted standard deviation."""


def linear(inputs: int, outputs: int, generator: torch.Generator | None = None) -> nn.Linear:
    """A linear layer with Glorot-uniform weights and zero biases; torch's global generator is left alone."""
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, inputs, outputs)  # type: ignore[no-untyped-call]
    nn.init.xavier_uniform_(layer.weight, generator=generator)
    nn.init.zeros_(layer.bias)
    return layer


def action_inputs(actions: Tensor, action_size: int) -> Tensor:
    """Actions as inputs of a network: one-hot vectors of integers [n] or [n, 1], continuous ones [n, A] unchanged."""
    if actions.is_floating_point():
        if actions.shape[1:] != (action_size,):
            raise UserError(f"expected actions [n, {action_size}], got {tuple(actions.shape)}")
        return actions
    if actions.numel() != len(actions):
        raise UserError(f"expected integer actions [n] or [n, 1], got {tuple(actions.shape)}")
    return functional.one_hot(actions.reshape(len(actions)).long(), action_size).float()


class ActionModel(nn.Module):
    """Predicts from features and actions with one hidden layer, or linearly.

    Args:
        feature_size: width of the features.
        action_size: number of actions, or entries of a continuous one.
        outputs: width of the prediction.
        hidden_size: width of the hidden layer; 0 for a linear model, with one matrix per discrete action.
        layer_norm: normalizes the hidden layer.
        generator: draws the initial weights.
    """

    def __init__(
        self,
        feature_size: int,
        action_size: int,
        outputs: int,
        *,
        hidden_size: int = 256,
        layer_norm: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.action_size = action_size
        inputs = feature_size + action_size
        if hidden_size == 0:
            self.layers: nn.Module = _Bilinear(feature_size, action_size, outputs, generator)
            return
        norm = [nn.LayerNorm(hidden_size)] if layer_norm else []
        first, last = linear(inputs, hidden_size, generator), linear(hidden_size, outputs, generator)
        self.layers = nn.Sequential(first, *norm, nn.ReLU(), last)

    def forward(self, features: Tensor, actions: Tensor) -> Tensor:
        """Maps features [n, k] and actions to [n, outputs]."""
        chosen = action_inputs(actions, self.action_size).to(features)
        predicted: Tensor = self.layers(torch.cat([features, chosen], dim=1))
        return predicted


class _Bilinear(nn.Module):
    """A linear map per action, weighted by the action's entries."""

    def __init__(self, features: int, actions: int, outputs: int, generator: torch.Generator | None) -> None:
        super().__init__()
        self.features = features
        self.weight = nn.Parameter(torch.empty(actions, outputs, features))
        self.bias = nn.Parameter(torch.zeros(actions, outputs))
        for matrix in self.weight.data:
            nn.init.xavier_uniform_(matrix, generator=generator)

    def forward(self, inputs: Tensor) -> Tensor:
        features, actions = inputs[:, : self.features], inputs[:, self.features :]
        mapped = torch.einsum("nk,aok->nao", features, self.weight) + self.bias
        return (actions[:, :, None] * mapped).sum(dim=1)


class GaussianModel(nn.Module):
    """Predicts a Gaussian with diagonal covariance of the next features.

    Args:
        feature_size: width of the features.
        action_size: number of actions, or entries of a continuous one.
        deterministic: learns no standard deviation, which is then zero; the mean is learned by squared error.
        hidden_size, layer_norm, generator: as of `ActionModel`.
    """

    def __init__(
        self,
        feature_size: int,
        action_size: int,
        *,
        deterministic: bool = False,
        hidden_size: int = 256,
        layer_norm: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        outputs = feature_size if deterministic else 2 * feature_size
        options = {"hidden_size": hidden_size, "layer_norm": layer_norm}
        self.model = ActionModel(feature_size, action_size, outputs, generator=generator, **options)  # type: ignore[arg-type]
        self.deterministic = deterministic

    def forward(self, features: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of the next features, [n, k] each."""
        output = self.model(features, actions)
        if self.deterministic:
            return output, torch.zeros_like(output)
        mean, raw = output.chunk(2, dim=1)
        return mean, LOWEST_STD + (HIGHEST_STD - LOWEST_STD) * torch.sigmoid(raw)

    @in_full_precision
    def loss(self, mean: Tensor, std: Tensor, following: Tensor) -> Tensor:
        """Negative log-likelihood of the next features [n, k] without constants; a squared error if deterministic."""
        if self.deterministic:
            return 0.5 * (mean - following).square().mean()
        return (0.5 * ((mean - following) / std).square() + std.log()).mean()
