"""Observations as a Stable-Baselines3 model gets them: stacked, channels first, normalized, as tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import create_empty_array
from numpy.typing import NDArray

from pisces.errors import UserError, import_extra

import_extra("stable_baselines3", "sb3")
from stable_baselines3.common.vec_env import (  # noqa: E402
    VecEnvWrapper,
    VecFrameStack,
    VecNormalize,
    VecTransposeImage,
)
from stable_baselines3.common.vec_env.stacked_observations import StackedObservations  # noqa: E402

Observations = NDArray[Any] | Mapping[str, NDArray[Any]]
"""A batch of observations [n, ...]; of a Dict space, either flat [n, D] or one array per key."""


def wrap_environment(env: gym.Env[Any, Any], model: Any) -> gym.Env[Any, Any]:
    """Wraps an environment so that its observations are those of the model's space, each as one array.

    Frames are stacked as by the model's `VecFrameStack`. Dict observations are flattened as by
    `gymnasium.spaces.flatten`. Other environments are returned unchanged. `GreedyPairs` in a callback does this by
    itself; use it to record trajectories for `TrajectoryPairs` and `diagnose`.

    Args:
        env: a single environment like those that the model trains in, without their vector wrappers.
        model: the model; frames can only be stacked if it has an environment.
    """
    layers = _observation_layers(model)
    is_dict = isinstance(model.observation_space, spaces.Dict)
    if not is_dict and not any(isinstance(layer, VecFrameStack) for layer in layers):
        return env
    if is_dict and not isinstance(env.observation_space, spaces.Dict):
        raise UserError(f"expected an environment with Dict observations, got {env.observation_space}")
    return _ModelObservations(env, layers, model.observation_space)


def policy_input(model: Any, observations: Observations) -> Any:
    """Converts observations to the policy's input: normalized, channels first, on its device.

    Returns:
        A tensor [n, ...], or for a Dict space a dictionary of tensors.
    """
    normalized = _normalized(model, observations)
    # A copy, because recorded observations are read-only, which torch tensors cannot be.
    copied = (
        {key: np.array(value) for key, value in normalized.items()}
        if isinstance(normalized, dict)
        else np.array(normalized)
    )
    return model.policy.obs_to_tensor(copied)[0]


def greedy_actions(model: Any, observations: Observations) -> NDArray[Any]:
    """Returns a model's greedy actions [n, ...] for observations [n, ...] of raw or wrapped environments."""
    return np.asarray(model.predict(_normalized(model, observations), deterministic=True)[0])


def blank_input(model: Any) -> Any:
    """The policy's input for one observation of zeros."""
    blank: Any = create_empty_array(model.observation_space, 1, np.zeros)
    return policy_input(model, blank)


def _normalized(model: Any, observations: Observations) -> Any:
    """Checks observations, splits flat ones of a Dict space by key, and normalizes them as the model's environment."""
    space = model.observation_space
    checked: Any
    if isinstance(space, spaces.Dict):
        checked = dict(observations) if isinstance(observations, Mapping) else _unflatten(space, observations)
    else:
        checked = np.asarray(observations)
        if checked.shape[1:] != space.shape and not _is_transposed(checked, space):
            raise UserError(
                f"expected observations of the model's space {space.shape}, got {checked.shape[1:]}; record them in "
                "wrap_environment(env, model), or wrap the environments as those that the model trains in"
            )
    normalization = model.get_vec_normalize_env()
    return checked if normalization is None else normalization.normalize_obs(checked)


def _is_transposed(observations: NDArray[Any], space: Any) -> bool:
    """Whether these are channels-last images for a model with channels-first images."""
    shape = observations.shape[1:]
    return len(shape) == 3 and (shape[2], *shape[:2]) == space.shape


def _unflatten(space: spaces.Dict, rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Splits flat observations [n, D] into one array [n, ...] per key of the space."""
    rows = np.asarray(rows)
    sizes = [spaces.flatdim(part) for part in space.spaces.values()]
    if rows.ndim != 2 or rows.shape[1] != sum(sizes):
        raise UserError(
            f"expected flat observations [n, {sum(sizes)}] of the model's Dict space, got {list(rows.shape)}; "
            "record them in wrap_environment(env, model)"
        )
    columns = np.split(rows, np.cumsum(sizes)[:-1], axis=1)
    named = zip(space.spaces.items(), columns, strict=True)
    return {key: _unflatten_part(part, values) for (key, part), values in named}


def _unflatten_part(space: spaces.Space[Any], rows: NDArray[Any]) -> NDArray[Any]:
    if isinstance(space, spaces.Box):
        return rows.reshape(len(rows), *space.shape).astype(space.dtype)
    return np.stack([spaces.unflatten(space, row) for row in rows])


def _observation_layers(model: Any) -> list[Any]:
    """The vector wrappers of the model's environment that stack frames or move channels, innermost first."""
    env: Any = model.get_env()
    layers: list[Any] = []
    while isinstance(env, VecEnvWrapper):
        if isinstance(env, VecNormalize) and env.norm_obs and any(isinstance(one, VecFrameStack) for one in layers):
            raise UserError("VecNormalize inside VecFrameStack is not supported; apply VecNormalize last")
        if isinstance(env, VecFrameStack | VecTransposeImage):
            layers.insert(0, env)
        env = env.venv
    return layers


class _ModelObservations(gym.Wrapper[Any, Any, Any, Any]):
    """Passes the observations of a single environment through a model's vector wrappers."""

    def __init__(self, env: gym.Env[Any, Any], layers: list[Any], space: spaces.Space[Any]) -> None:
        super().__init__(env)
        self._layers = [_FrameStack(one) if isinstance(one, VecFrameStack) else _Channels(one) for one in layers]
        self._space = space
        self.observation_space = spaces.flatten_space(space) if isinstance(space, spaces.Dict) else space

    def reset(self, **arguments: Any) -> tuple[NDArray[Any], dict[str, Any]]:
        """Resets the environment and the stacked frames."""
        observation, info = self.env.reset(**arguments)
        return self._observe(observation, first=True), info

    def step(self, action: Any) -> tuple[NDArray[Any], Any, bool, bool, dict[str, Any]]:
        """Steps the environment."""
        observation, *outcome = self.env.step(action)
        return (self._observe(observation, first=False), *outcome)  # type: ignore[return-value]

    def _observe(self, observation: Any, first: bool) -> NDArray[Any]:
        is_dict = isinstance(observation, dict)
        batch = {key: np.asarray(part)[None] for key, part in observation.items()} if is_dict else observation[None]
        for layer in self._layers:
            batch = layer(batch, first)
        if not is_dict:
            return np.array(batch[0])
        missing = set(self._space.spaces) ^ set(batch)  # type: ignore[attr-defined]
        if missing:
            raise UserError(f"expected observations with the keys of the model's space, got others: {sorted(missing)}")
        return np.asarray(spaces.flatten(self._space, {key: part[0] for key, part in batch.items()}))


class _Channels:
    """Moves channels as a `VecTransposeImage` does."""

    def __init__(self, layer: Any) -> None:
        self._transpose = layer.transpose_observations

    def __call__(self, batch: Any, first: bool) -> Any:
        return self._transpose(batch)


class _FrameStack:
    """Stacks the frames of one environment as a `VecFrameStack` does."""

    def __init__(self, layer: Any) -> None:
        stack = layer.stacked_obs
        space = stack.observation_space
        order = (
            {key: _order(part) for key, part in stack.sub_stacked_observations.items()}
            if isinstance(space, spaces.Dict)
            else _order(stack)
        )
        self._stack = StackedObservations(1, stack.n_stack, space, order)

    def __call__(self, batch: Any, first: bool) -> Any:
        if first:
            return self._stack.reset(batch)
        return self._stack.update(batch, np.zeros(1, dtype=bool), [{}])[0]


def _order(stack: Any) -> str:
    return "first" if stack.channels_first else "last"
