"""The part of a Stable-Baselines3 policy that a behavioral loss trains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor, nn

from pisces.errors import UserError, unknown_name

Layers = Literal["features", "hidden"]


@dataclass(frozen=True, eq=False)
class PolicyEncoder:
    """The layers of a policy that map observations to the features that the loss compares."""

    represent: Callable[[Tensor], Tensor]
    """Maps a batch of observations, as the policy gets them, to features [n, F]."""
    parameters: tuple[nn.Parameter, ...]
    """The parameters of these layers."""
    size: int
    """The width F of the features."""


def find_encoder(model: Any, layers: Layers = "features") -> PolicyEncoder:
    """Finds the features extractor of a model's policy and, if asked for, the hidden layers of its actor.

    Args:
        model: PPO, A2C, SAC, TD3, DDPG, DQN, or another algorithm whose policy is built like one of theirs.
        layers: "features" for the features extractor; "hidden" also for the layers between it and the output.
    """
    if layers not in get_args(Layers):
        raise unknown_name("layers", layers, get_args(Layers))
    if isinstance(model.observation_space, spaces.Dict | spaces.Tuple):
        kind = type(model.observation_space).__name__
        raise UserError(f"expected an observation space whose observations are single arrays, got {kind}")
    owner = _owner(model.policy)
    extractor = owner.features_extractor
    modules, head = [extractor], None
    if layers == "hidden":
        head, hidden = _hidden_layers(owner)
        modules += hidden

    def represent(observations: Tensor) -> Tensor:
        features = owner.extract_features(observations, extractor)
        return features if head is None else head(features)

    parameters = tuple(dict.fromkeys(parameter for module in modules for parameter in module.parameters()))
    if not parameters:
        raise UserError(
            f"expected a features extractor that learns, got {type(extractor).__name__}, which has no parameters; "
            "choose layers='hidden' or give the policy another features_extractor_class"
        )
    with torch.no_grad(), evaluating(model.policy):
        blank = np.zeros((1, *model.observation_space.shape), dtype=model.observation_space.dtype)
        size = represent(policy_input(model, blank)).shape[1]
    return PolicyEncoder(represent, parameters, size)


@contextmanager
def evaluating(policy: Any) -> Iterator[None]:
    """Puts a policy into evaluation mode within the context."""
    mode = policy.training
    policy.set_training_mode(False)
    try:
        yield
    finally:
        policy.set_training_mode(mode)


def policy_input(model: Any, observations: NDArray[Any]) -> Tensor:
    """Converts raw observations [n, ...] to the policy's input: normalized, channels first, on its device."""
    space = model.observation_space
    single = (observations.shape[0], *space.shape)
    if observations.shape != single and not _is_transposed(observations, space):
        raise UserError(
            f"expected observations of the model's space {space.shape}, got {observations.shape[1:]}; wrap the "
            "environments (stacking, resizing) as those that the model trains in"
        )
    normalization = model.get_vec_normalize_env()
    if normalization is not None:
        observations = normalization.normalize_obs(observations)
    # A copy, because recorded observations are read-only, which torch tensors cannot be.
    tensor, _ = model.policy.obs_to_tensor(np.array(observations))
    if not isinstance(tensor, Tensor):
        raise UserError(f"expected observations as one array, got {type(tensor).__name__}")
    return tensor


def greedy_actions(model: Any, observations: NDArray[Any]) -> NDArray[Any]:
    """Returns a model's greedy actions [n, ...] for observations [n, ...] of raw environments."""
    policy_input(model, observations[:1])
    normalization = model.get_vec_normalize_env()
    if normalization is not None:
        observations = normalization.normalize_obs(observations)
    return np.asarray(model.predict(observations, deterministic=True)[0])


def _is_transposed(observations: NDArray[Any], space: Any) -> bool:
    """Whether these are channels-last images for a model with channels-first images."""
    shape = observations.shape[1:]
    return len(shape) == 3 and (shape[2], *shape[:2]) == space.shape


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

    def extract_features(self, observations: Tensor, extractor: Any) -> Tensor:
        """Returns the features of the given extractor; the policy's own method would run both that are not shared."""
        from stable_baselines3.common.policies import BaseModel

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
