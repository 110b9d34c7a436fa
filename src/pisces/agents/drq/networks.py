"""Networks of SAC + DrQ: convolutions that actor and critic share, and what each has of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from pisces.errors import UserError

LOG_TWO_PI = math.log(2 * math.pi)
LARGEST_PASS, PART = 128, 64
"""On a CPU, more images than the first pass the convolutions in parts of the second, whose features fit the cache."""


class Convolutions(nn.Module):
    """3 x 3 convolutions with ReLU; frames come as bytes or as floats in [0, 255]."""

    def __init__(self, in_channels: int, channels: int, strides: Sequence[int], generator: torch.Generator) -> None:
        super().__init__()
        self.first = nn.Conv2d(in_channels, channels, 3, strides[0])
        self.others = nn.Sequential()
        for stride in strides[1:]:
            self.others.extend([nn.Conv2d(channels, channels, 3, stride), nn.ReLU(inplace=True)])
        for layer in [self.first, *list(self.others)[::2]]:
            orthogonal(layer, generator, nn.init.calculate_gain("relu"))
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._strides = strides

    def forward(self, images: Tensor) -> Tensor:
        """Maps images [n, C, H, W] to flat features [n, F]."""
        if images.device.type == "cpu" and len(images) > LARGEST_PASS:
            return torch.cat([self._features(part) for part in torch.split(images, PART)])
        return self._features(images)

    def _features(self, images: Tensor) -> Tensor:
        # Dividing the weights instead of the images by 255 saves a pass over the whole batch.
        hidden = functional.conv2d(images.float(), self.first.weight / 255, self.first.bias, self.first.stride)
        features: Tensor = self.others(hidden.relu_())
        return features.flatten(1)

    def output_size(self, frame_size: int) -> int:
        """Number of features of a frame."""
        for stride in self._strides:
            frame_size = (frame_size - 3) // stride + 1
            if frame_size < 1:
                raise UserError(f"expected frames large enough for {len(self._strides)} convolutions, got smaller ones")
        return frame_size * frame_size * self.first.out_channels


def orthogonal(layer: nn.Module, generator: torch.Generator, gain: float = 1.0) -> None:
    """Orthogonal weights, zero biases."""
    nn.init.orthogonal_(layer.weight, gain, generator=generator)  # type: ignore[arg-type]
    nn.init.zeros_(layer.bias)  # type: ignore[arg-type]


def _linear(inputs: int, outputs: int, generator: torch.Generator) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    orthogonal(layer, generator)
    return layer


class Trunk(nn.Module):
    """The encoder's last layer: linear, LayerNorm, tanh."""

    def __init__(self, inputs: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        self.linear, self.norm = _linear(inputs, outputs, generator), nn.LayerNorm(outputs)

    def forward(self, features: Tensor) -> Tensor:
        """Maps [n, inputs] to [n, outputs]."""
        return torch.tanh(self.norm(self.linear(features)))


@dataclass(frozen=True)
class ActionSample:
    """Actions drawn from a policy."""

    actions: Tensor
    """[n, A], in (-1, 1)."""
    log_probability: Tensor
    """[n, 1]."""


class Actor(nn.Module):
    """What all policies share: layers on the features of the convolutions, and a mean squashed by tanh."""

    def __init__(self, inputs: int, feature_size: int, hidden: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        self.trunk = Trunk(inputs, feature_size, generator)
        self.hidden1, self.hidden2 = _linear(feature_size, hidden, generator), _linear(hidden, hidden, generator)
        self.output = _linear(hidden, outputs, generator)

    def represent(self, features: Tensor) -> Tensor:
        """The penultimate layer, [n, hidden]."""
        return functional.relu(self.hidden2(functional.relu(self.hidden1(self.trunk(features)))))

    def greedy(self, features: Tensor) -> Tensor:
        """The squashed mean, [n, A]."""
        raise NotImplementedError

    def sample(self, features: Tensor, noise: Tensor, deviation: float, clip: float | None = None) -> ActionSample:
        """Draws actions with given standard normal noise [n, A].

        `deviation` and `clip` are the standard deviation and the largest noise of policies that do not learn theirs.
        """
        raise NotImplementedError


class GaussianActor(Actor):
    """SAC's policy: a Gaussian squashed by tanh, whose mean and standard deviation are learned."""

    def __init__(
        self,
        inputs: int,
        feature_size: int,
        hidden: int,
        actions: int,
        bounds: tuple[float, float],
        generator: torch.Generator,
    ) -> None:
        super().__init__(inputs, feature_size, hidden, 2 * actions, generator)
        self._low, self._high = bounds

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and logarithm of the standard deviation before squashing, [n, A] each."""
        mean, raw = self.output(self.represent(features)).chunk(2, dim=1)
        log_std = self._low + 0.5 * (self._high - self._low) * (torch.tanh(raw) + 1)
        return mean, log_std

    def greedy(self, features: Tensor) -> Tensor:
        """The squashed mean, [n, A]."""
        return torch.tanh(self(features)[0])

    def sample(
        self, features: Tensor, noise: Tensor, deviation: float = 0.0, clip: float | None = None
    ) -> ActionSample:
        """Draws actions with given standard normal noise [n, A].

        log pi(a) = sum log N(u; mean, std) - sum log(1 - tanh(u)^2), the last in a form that does not overflow.
        """
        mean, log_std = self(features)
        raw = mean + log_std.exp() * noise
        gaussian = -0.5 * noise.square() - log_std - 0.5 * LOG_TWO_PI
        squash = 2 * (math.log(2) - raw - functional.softplus(-2 * raw))
        return ActionSample(torch.tanh(raw), (gaussian - squash).sum(dim=1, keepdim=True))


class DeterministicActor(Actor):
    """DrQ-v2's policy: an action, to which noise of a given standard deviation is added."""

    def greedy(self, features: Tensor) -> Tensor:
        """The squashed output, [n, A]."""
        return torch.tanh(self.output(self.represent(features)))

    def sample(self, features: Tensor, noise: Tensor, deviation: float, clip: float | None = None) -> ActionSample:
        """Adds noise [n, A] to the actions; their log-probability counts as 0, since the entropy is not learned."""
        mean, noise = self.greedy(features), deviation * noise
        noisy = mean + (noise if clip is None else noise.clamp(-clip, clip))
        # The gradient passes the bounds, or the actor could not come back from there.
        actions = noisy + (noisy.clamp(-1, 1) - noisy).detach()
        return ActionSample(actions, torch.zeros_like(actions[:, :1]))


class Critic(nn.Module):
    """Two Q-functions on one encoder."""

    def __init__(
        self, inputs: int, feature_size: int, hidden: int, actions: int, norm: bool, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.trunk = Trunk(inputs, feature_size, generator)
        sizes = (feature_size + actions, hidden, hidden)
        self.values = nn.ModuleList(_value(sizes, norm, generator) for _ in range(2))

    def forward(self, features: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Both values of actions, [n, 1] each; `features` are the convolutions'."""
        inputs = torch.cat([self.trunk(features), actions], dim=1)
        first, second = (value(inputs) for value in self.values)
        return first, second


def _value(sizes: Sequence[int], norm: bool, generator: torch.Generator) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [_linear(inputs, outputs, generator), *([nn.LayerNorm(outputs)] if norm else []), nn.ReLU()]
    return nn.Sequential(*layers, _linear(sizes[-1], 1, generator))
