"""Trained cloning agents of MiniGrid."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from pisces.agents.checkpoint import load_module
from pisces.agents.cloning.networks import FEATURES, CloningNetwork, as_cells
from pisces.envs.minigrid import LevelEnv
from pisces.envs.minigrid.render import TILE
from pisces.errors import UserError
from pisces.experiments.minigrid.config import MiniGridConfig
from pisces.losses import ContrastiveMetricLoss
from pisces.runs.store import RunFolder


class MiniGridPolicy:
    """A trained cloning agent; observations are RGB frames uint8 [H, W, 3] of `pisces.envs.minigrid.LevelEnv`."""

    def __init__(self, network: CloningNetwork, loss: ContrastiveMetricLoss | None, shape: tuple[int, ...]) -> None:
        self._network, self._loss, self._shape = network, loss, shape

    def act(self, observation: ArrayLike) -> int:
        """Returns the greedy action."""
        return int(self.act_all(np.asarray(observation)[None])[0])

    @torch.no_grad()
    def act_all(self, observations: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Returns the greedy actions [n] of observations [n, H, W, 3]."""
        return np.asarray(self._network(self._cells(observations)).argmax(dim=1).numpy())

    @torch.no_grad()
    def embed(self, observations: ArrayLike) -> NDArray[np.float32]:
        """Returns the embeddings [n, k] of observations [n, H, W, 3]; without a contrastive loss, the features."""
        features = self._network.represent(self._cells(np.asarray(observations)))
        return np.asarray((features if self._loss is None else self._loss.embed(features)).numpy(), dtype=np.float32)

    def _cells(self, observations: NDArray[np.uint8]) -> Tensor:
        if observations.shape[1:] != self._shape or observations.dtype != np.uint8:
            raise UserError(f"expected frames uint8 {self._shape}, got {observations.dtype} {observations.shape[1:]}")
        return as_cells(observations, TILE)


def load_policy(folder: RunFolder, config: MiniGridConfig) -> MiniGridPolicy:
    """Loads the agent of a cloning run."""
    settings, env = config.cloning, LevelEnv(config.family)
    tensors, _ = folder.read_checkpoint()
    shape = env.observation_space.shape
    assert shape is not None
    with folder.checkpoint_errors():
        network = CloningNetwork(shape, len(env.level.family.actions), TILE, settings.layer_norm)
        load_module(network, "network.", tensors)
        loss = None
        if settings.auxiliary == "contrastive":
            loss = ContrastiveMetricLoss(FEATURES, projection=nn.Linear(FEATURES, FEATURES))
            load_module(loss, "loss.", tensors)
    return MiniGridPolicy(network, loss, shape)
