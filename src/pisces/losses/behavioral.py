"""What all losses on transitions share: the batch, the way to call them, and target networks."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from pisces.errors import UserError, unknown_name
from pisces.losses.checks import check_rows
from pisces.losses.numerics import in_one_precision
from pisces.validation import check_discount

Encoder = Callable[[Any], Tensor]
"""Maps observations [n, ...] to features [n, k]: a module, or a function that may augment the observations first."""
Penalty = Literal["squared", "huber"]


@dataclass(frozen=True, eq=False)
class Transitions:
    """A batch of n transitions, as replay and rollout buffers give them. Rewards [n, 1] and flags [n, 1] become [n]."""

    observations: Any
    """The observations before the actions: a tensor [n, ...], or a dictionary of tensors."""
    actions: Tensor
    """The actions: integers [n] or [n, 1], or continuous [n, A]."""
    rewards: Tensor
    """The rewards, [n]."""
    next_observations: Any
    """The observations after the actions, like `observations`; after a termination, the one of the terminal state."""
    terminated: Tensor | None = None
    """Whether the environment ended the episode, [n]; None for never. A time limit is no termination."""

    def __post_init__(self) -> None:
        for name in ("actions", "rewards", "terminated"):
            value = getattr(self, name)
            if not isinstance(value, Tensor) and not (name == "terminated" and value is None):
                raise UserError(f"expected {name} as a tensor, got {type(value).__name__}; torch.from_numpy makes one")
        if 0 in (self.actions.ndim, self.rewards.ndim):
            raise UserError("expected actions and rewards of n >= 2 transitions, got single numbers")
        rewards = self.rewards.reshape(len(self.rewards), -1)
        count = len(rewards)
        flags = torch.zeros(count, dtype=torch.bool, device=rewards.device)
        if self.terminated is not None:
            flags = self.terminated.reshape(len(self.terminated), -1).to(torch.bool).squeeze(1)
        if rewards.shape != (count, 1) or {len(self.actions), *flags.shape} != {count} or count < 2:
            shapes = [tuple(x.shape) for x in (self.actions, self.rewards, flags)]
            raise UserError(f"expected actions, rewards and terminated of n >= 2 transitions, got shapes {shapes}")
        for name in ("observations", "next_observations"):
            if _count(getattr(self, name)) not in (count, None):
                raise UserError(f"expected {name} of {count} transitions, got {_count(getattr(self, name))}")
        object.__setattr__(self, "rewards", rewards.squeeze(1))
        object.__setattr__(self, "terminated", flags)

    def __len__(self) -> int:
        return len(self.rewards)

    def with_absorbing(self) -> Transitions:
        """Adds a transition from each terminal state to itself with reward zero, as finite MDPs have it; flags none."""
        assert self.terminated is not None
        ends = self.terminated.nonzero().squeeze(1)
        if len(ends) == 0:
            return self
        last = _select(self.next_observations, ends)
        return Transitions(
            _join(self.observations, last),
            torch.cat([self.actions, self.actions[ends]]),
            torch.cat([self.rewards, torch.zeros_like(self.rewards[ends])]),
            _join(self.next_observations, last),
        )


def _count(observations: Any) -> int | None:
    """The number of observations; None if it is not known."""
    values = next(iter(observations.values()), None) if isinstance(observations, Mapping) else observations
    return len(values) if isinstance(values, Tensor) and values.ndim else None


def _select(observations: Any, rows: Tensor) -> Any:
    if isinstance(observations, Mapping):
        return {name: value[rows] for name, value in observations.items()}
    return observations[rows]


def _join(first: Any, second: Any) -> Any:
    if isinstance(first, Mapping):
        return {name: torch.cat([value, second[name]]) for name, value in first.items()}
    return torch.cat([first, second])


class BehavioralLoss(nn.Module):
    """A loss on transitions that shapes an encoder's features; the module owns the heads that the loss needs.

    Example:
        Three lines in a training loop::

            loss, target = make_loss("mico", feature_size=64, action_size=4), TargetNetwork(encoder, tau=0.01)
            total = agent_loss + 0.1 * loss(encoder, transitions, target)
            target.update(encoder)

        The optimizer gets ``loss.parameters()`` beside those of the encoder.
    """

    uses_target: ClassVar[bool] = False
    """Whether the paper's version has a target encoder."""

    def forward(self, encoder: Encoder, transitions: Transitions, target: Encoder | None = None) -> Tensor:
        """Returns the loss, a scalar.

        Args:
            encoder: maps observations to features [n, k]; gradients flow into it.
            transitions: the batch.
            target: maps observations to the features of a target network; None for the encoder, without gradients.
        """
        raise NotImplementedError

    def distance(self, features_x: Tensor, features_y: Tensor) -> Tensor:
        """The distances [n, m] of features [n, k] and [m, k] that the loss shapes; Euclidean unless said otherwise."""
        return pairwise(features_x, features_y)


class TargetNetwork(nn.Module):
    """A copy of a network that follows it as an exponential moving average, and gets no gradients.

    Args:
        network: the network to copy.
        tau: share of the network that enters the copy at an update; 1 copies it.
    """

    def __init__(self, network: nn.Module, tau: float = 0.005) -> None:
        super().__init__()
        if not 0 < tau <= 1:
            raise UserError(f"tau must be in (0, 1], got {tau}")
        self.network, self.tau = copy.deepcopy(network).requires_grad_(False), tau

    @torch.no_grad()
    def forward(self, *inputs: Any) -> Any:
        """Calls the copy."""
        return self.network(*inputs)

    @torch.no_grad()
    def update(self, network: nn.Module) -> None:
        """Moves the copy toward the network; buffers, such as the moments of a BatchNorm, are copied."""
        for old, new in zip(self.network.parameters(), network.parameters(), strict=True):
            old.lerp_(new.detach().to(old), self.tau)
        for copied, buffer in zip(self.network.buffers(), network.buffers(), strict=True):
            copied.copy_(buffer)


@torch.no_grad()
def target_features(encoder: Encoder, target: Encoder | None, observations: Any) -> Tensor:
    """Features without gradients, of the target encoder if there is one."""
    return (encoder if target is None else target)(observations).detach()


def pairwise(x: Tensor, y: Tensor, norm: float = 2.0) -> Tensor:
    """Distances [n, m] of rows [n, k] and [m, k] in a p-norm, with zero gradient where they are zero."""
    check_rows("features", x, y)
    x, y = in_one_precision(x, y)
    with torch.autocast(x.device.type, enabled=False):
        return torch.cdist(x, y, norm, compute_mode="donot_use_mm_for_euclid_dist")


def reward_differences(rewards: Tensor) -> Tensor:
    """|r_i - r_j| of all pairs of rewards [n], as [n, n]."""
    return (rewards[:, None] - rewards[None, :]).abs()


def mean_penalty(distance: Tensor, wanted: Tensor, penalty: Penalty, self_pairs: bool) -> Tensor:
    """The mean error of distances [n, n] over all pairs, of a transition with itself only if `self_pairs`."""
    wanted = wanted.detach().to(distance)
    if penalty == "huber":
        errors = functional.huber_loss(distance, wanted, reduction="none")
    else:
        errors = (distance - wanted).square()
    if self_pairs:
        return errors.mean()
    count = len(errors)
    return (errors.sum() - errors.diagonal().sum()) / (count * (count - 1))


def check_options(discount: float, penalty: str) -> None:
    """Raises unless the discount and the penalty are valid."""
    check_discount(discount)
    if penalty not in ("squared", "huber"):
        raise unknown_name("penalty", penalty, ("squared", "huber"))
