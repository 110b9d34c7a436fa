"""Transitions of a Stable-Baselines3 agent, for losses that compare them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from pisces.losses import Transitions


class TransitionSource:
    """Samples transitions from a model's replay buffer or, for on-policy algorithms, from its newest rollout.

    Rollouts are recorded step by step, because a rollout buffer has no terminal observations and is empty when the next
    rollout starts.

    Args:
        model: the model.
        batch_size: number of transitions per batch.
        seed: of the transitions sampled from a rollout; a replay buffer samples with NumPy's global generator.
    """

    def __init__(self, model: Any, batch_size: int, seed: int = 0) -> None:
        self._model, self._batch_size = model, batch_size
        self.generator = np.random.default_rng(seed)
        self._steps: list[dict[str, Any]] = []
        self._rollout: dict[str, Any] = {}

    @property
    def _replay(self) -> Any:
        """The replay buffer, which `model.load_replay_buffer` replaces; None for on-policy algorithms."""
        return getattr(self._model, "replay_buffer", None)

    def record(self, values: Mapping[str, Any]) -> None:
        """Records one step of an on-policy algorithm, from the local variables of its loop."""
        if self._replay is not None:
            return
        ended = np.flatnonzero(values["dones"])
        limits = [index for index in ended if values["infos"][index].get("TimeLimit.truncated", False)]
        terminated = np.array(values["dones"], dtype=bool)
        terminated[limits] = False
        finals = {int(index): values["infos"][index]["terminal_observation"] for index in ended}
        self._steps.append(
            {
                "observations": _copied(self._model._last_obs),
                "actions": self._flat_actions(np.array(values["actions"])),
                "rewards": np.array(values["rewards"], dtype=np.float32),
                "next_observations": _with_finals(values["new_obs"], finals),
                "terminated": terminated,
            }
        )

    def _flat_actions(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Continuous actions as rows, as replay buffers keep them."""
        return actions.reshape(len(actions), -1) if isinstance(self._model.action_space, spaces.Box) else actions

    def finish_rollout(self) -> None:
        """Replaces the transitions by those recorded since the last call."""
        if self._steps:
            names = self._steps[0]
            self._rollout = {name: _joined([step[name] for step in self._steps]) for name in names}
            self._steps = []

    def sample(self) -> Transitions | None:
        """Samples a batch; None as long as there are too few transitions."""
        replay = self._replay
        if replay is not None:
            if replay.size() < min(replay.buffer_size, -(-self._batch_size // replay.n_envs)):
                return None
            if not np.any(getattr(replay, "ep_length", 1)):  # hindsight replay samples from whole episodes only
                return None
            batch = replay.sample(self._batch_size, env=self._model.get_vec_normalize_env())
            return Transitions(batch.observations, batch.actions, batch.rewards, batch.next_observations, batch.dones)
        if not self._rollout:
            return None
        count = len(self._rollout["rewards"])
        if count < 2:
            return None
        rows = self.generator.choice(count, min(count, self._batch_size), replace=False)
        return Transitions(**{name: self._tensors(values, rows) for name, values in self._rollout.items()})

    def _tensors(self, values: Any, rows: NDArray[np.int64]) -> Any:
        if isinstance(values, dict):
            return {key: self._tensors(value, rows) for key, value in values.items()}
        tensor: Tensor = torch.as_tensor(values[rows], device=self._model.device)
        return tensor


def _copied(observations: Any) -> Any:
    if isinstance(observations, dict):
        return {key: np.array(value) for key, value in observations.items()}
    return np.array(observations)


def _with_finals(observations: Any, finals: Mapping[int, Any]) -> Any:
    """The observations after a step: of ended episodes the last one, not the first of the next episode."""
    copied = _copied(observations)
    for index, final in finals.items():
        if isinstance(copied, dict):
            for key, value in copied.items():
                value[index] = final[key]
        else:
            copied[index] = final
    return copied


def _joined(steps: list[Any]) -> Any:
    if isinstance(steps[0], dict):
        return {key: np.concatenate([step[key] for step in steps]) for key in steps[0]}
    return np.concatenate(steps)
