"""The part of a Stable-Baselines3 policy that a behavioral loss trains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from pisces.errors import UserError, import_extra, unknown_name
from pisces.integrations.observations import blank_input

import_extra("stable_baselines3", "sb3")
from stable_baselines3.common.policies import BaseModel  # noqa: E402

Layers = Literal["features", "hidden"]


@dataclass(frozen=True, eq=False)
class PolicyEncoder:
    """The layers of a policy that map observations to the features that the loss compares."""

    represent: Callable[[Any], Tensor]
    """Maps a batch of observations, as `policy_input` returns them, to features [n, F]."""
    parameters: tuple[nn.Parameter, ...]
    """The parameters of these layers."""
    size: int = 0
    """The width F of the features; 0 if it is not known."""


def find_encoder(model: Any, layers: Layers = "features") -> PolicyEncoder:
    """Finds the features extractor of a model's policy and, if asked for, the hidden layers of its actor.

    Args:
        model: PPO, A2C, SAC, TD3, DDPG, DQN, or another algorithm whose policy is built like one of theirs.
        layers: "features" for the features extractor; "hidden" also for the layers between it and the output.
    """
    encoder = policy_encoder(model.policy, layers)
    with torch.no_grad(), evaluating(model.policy):
        return replace(encoder, size=encoder.represent(blank_input(model)).shape[1])


def policy_encoder(policy: Any, layers: Layers) -> PolicyEncoder:
    """Finds the encoder of a policy, without the width of its features."""
    if layers not in get_args(Layers):
        raise unknown_name("layers", layers, get_args(Layers))
    owner = _owner(policy)
    extractor = owner.features_extractor
    modules, head = [extractor], None
    if layers == "hidden":
        head, hidden = _hidden_layers(owner)
        modules += hidden

    def represent(observations: Any) -> Tensor:
        features = owner.extract_features(observations, extractor)
        return features if head is None else head(features)

    parameters = tuple(dict.fromkeys(parameter for module in modules for parameter in module.parameters()))
    if not parameters:
        raise UserError(
            f"expected a features extractor that learns, got {type(extractor).__name__}, which has no parameters; "
            "choose layers='hidden' or give the policy another features_extractor_class"
        )
    return PolicyEncoder(represent, parameters)


@contextmanager
def evaluating(policy: Any) -> Iterator[None]:
    """Puts a policy into evaluation mode within the context."""
    mode = policy.training
    policy.set_training_mode(False)
    try:
        yield
    finally:
        policy.set_training_mode(mode)


def _owner(policy: Any) -> Any:
    """Returns the network that holds the actor's features extractor."""
    for name in ("actor", "q_net"):
        part = getattr(policy, name, None)
        if getattr(part, "features_extractor", None) is not None:
            return part
    if getattr(policy, "features_extractor", None) is None:
        raise UserError(f"expected a policy with a features extractor, got {type(policy).__name__}, which has none")
    return _ActorCritic(policy)


class _ActorCritic:
    """The actor's extractor of an on-policy policy, which may not be shared with the critic."""

    def __init__(self, policy: Any) -> None:
        self.features_extractor = getattr(policy, "pi_features_extractor", policy.features_extractor)
        self.mlp_extractor = getattr(policy, "mlp_extractor", None)
        self._policy = policy

    def extract_features(self, observations: Any, extractor: Any) -> Tensor:
        """Returns the features of the given extractor; the policy's own method would run both that are not shared."""
        features: Tensor = BaseModel.extract_features(self._policy, observations, extractor)
        return features


def _hidden_layers(owner: Any) -> tuple[Callable[[Tensor], Tensor], list[nn.Module]]:
    """Returns the function from features to the last hidden layer, and its modules."""
    if getattr(owner, "mlp_extractor", None) is not None:
        return owner.mlp_extractor.forward_actor, [owner.mlp_extractor.policy_net]
    if hasattr(owner, "latent_pi"):
        return owner.latent_pi, [owner.latent_pi]
    for name in ("q_net", "mu"):
        layers = getattr(owner, name, None)
        if isinstance(layers, nn.Sequential):
            # The last linear layer and what follows it (TD3's tanh) are the output.
            last = max(index for index, layer in enumerate(layers) if isinstance(layer, nn.Linear))
            return layers[:last], [layers[:last]]
    raise UserError(
        f"expected a policy whose hidden layers are known, got {type(owner).__name__}; use layers='features'"
    )
