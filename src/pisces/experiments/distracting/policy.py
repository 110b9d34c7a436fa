"""Trained agents of Distracting Control."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from pisces.agents.checkpoint import load_module
from pisces.agents.drq.policy import PixelPolicy
from pisces.errors import UserError
from pisces.experiments.distracting.config import DistractingConfig
from pisces.losses import ContrastiveMetricLoss
from pisces.runs.store import RunFolder


class ControlPolicy:
    """A trained agent of a control task; observations are [H, W, 3 stack], as the environment gives them."""

    def __init__(self, agent: PixelPolicy, shape: tuple[int, int, int]) -> None:
        self._agent, self._shape = agent, shape

    def act(self, observation: ArrayLike) -> NDArray[np.float32]:
        """Returns the greedy action, [A]."""
        return self._agent.act(self._checked(np.asarray(observation)[None])[0])

    @torch.no_grad()
    def embed(self, observations: ArrayLike) -> NDArray[np.float32]:
        """Returns the embeddings [n, k] of observations [n, H, W, 3 stack].

        Without the contrastive loss, they are the actor's last hidden layer.
        """
        agent = self._agent
        images = torch.from_numpy(np.array(self._checked(np.asarray(observations)))).permute(0, 3, 1, 2)
        features = agent.actor.represent(agent.convolutions(images))
        embeddings = features
        if agent.settings.auxiliary and isinstance(agent.loss, ContrastiveMetricLoss):
            embeddings = agent.loss.embed(features)
        return np.asarray(embeddings.numpy(), dtype=np.float32)

    def _checked(self, observations: NDArray[np.generic]) -> NDArray[np.uint8]:
        if observations.shape[1:] != self._shape or observations.dtype != np.uint8:
            raise UserError(f"expected bytes of shape {self._shape}, got {observations.dtype} {observations.shape[1:]}")
        return np.asarray(observations, dtype=np.uint8)


def load_policy(folder: RunFolder, config: DistractingConfig) -> ControlPolicy:
    """Loads the agent of a run."""
    tensors, _ = folder.read_checkpoint()
    size, channels = config.protocol.frame_size, 3 * config.protocol.frame_stack
    with folder.checkpoint_errors():
        outputs = len(tensors["actor.output.bias"])
        actions = outputs // 2 if config.settings.policy == "gaussian" else outputs
        agent = PixelPolicy(
            *(size, channels, actions, config.settings, config.seed), largest_reward=config.largest_reward
        )
        agent.restore_policy(tensors)
        load_module(agent.loss, "loss.", tensors)
    return ControlPolicy(agent, (size, size, channels))
