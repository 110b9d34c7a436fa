"""Trained agents of the jumping task."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from pisces.agents.checkpoint import load_module, tensors_below
from pisces.agents.imitation.encoders import Encoder, Network, make_network
from pisces.agents.imitation.kernels import evaluation_kernels
from pisces.agents.imitation.networks import REPRESENTATION
from pisces.augment import apply_kernel
from pisces.errors import UserError
from pisces.experiments.jumping.config import JumpingConfig
from pisces.losses import ContrastiveMetricLoss
from pisces.runs.store import RunFolder


class JumpingPolicy:
    """A trained agent of the jumping task.

    Observations are two consecutive frames, the earlier one first: [2, 60, 60], or [2, 60, 60, 3] with colors, as
    ``gymnasium.wrappers.FrameStackObservation(env, 2, padding_type="zero")`` gives them.
    """

    def __init__(self, network: Network, loss: ContrastiveMetricLoss | None, kernels: list[Tensor | None]) -> None:
        self._network, self._loss, self._kernels = network, loss, kernels

    @property
    def network(self) -> Network:
        """The trained network."""
        return self._network

    def evaluation_kernels(self) -> list[Tensor | None]:
        """The kernels whose action probabilities are averaged; None is no augmentation."""
        return self._kernels

    @torch.no_grad()
    def probabilities(self, observation: ArrayLike) -> NDArray[np.float32]:
        """Action probabilities, [2]; with augmentation, averaged over several random kernels."""
        image = self._images(np.asarray(observation, dtype=np.float32)[None])
        draws = [self._network(apply_kernel(image, kernel)).softmax(dim=1) for kernel in self._kernels]
        return np.asarray(torch.stack(draws).mean(dim=0)[0].numpy(), dtype=np.float32)

    def act(self, observation: ArrayLike) -> int:
        """The greedy action."""
        return int(self.probabilities(observation).argmax())

    @torch.no_grad()
    def embed(self, observations: ArrayLike) -> NDArray[np.float32]:
        """Returns the embeddings [n, k] of observations [n, 2, 60, 60] or [n, 2, 60, 60, 3].

        Without a contrastive loss, they are the representations.
        """
        features = self._network.represent(self._images(np.asarray(observations, dtype=np.float32)))
        embeddings = features if self._loss is None else self._loss.embed(features)
        return np.asarray(embeddings.numpy(), dtype=np.float32)

    @torch.no_grad()
    def embed_all(self, encoder: Encoder) -> NDArray[np.float32]:
        """Returns the embeddings [n, k] of an encoder's data set; see `pisces.agents.imitation.encoders`."""
        features = encoder.represent_all(self._network, None)
        return np.asarray((features if self._loss is None else self._loss.embed(features)).numpy(), dtype=np.float32)

    def _images(self, observations: NDArray[np.float32]) -> Tensor:
        shape = (2, 60, 60) if self._network.conv1.in_channels == 2 else (2, 60, 60, 3)
        if observations.shape[1:] != shape:
            raise UserError(f"expected two stacked frames of shape {shape}, got {observations.shape[1:]}")
        images = torch.from_numpy(np.array(observations))  # a copy: recorded observations are read-only
        return images if images.ndim == 4 else images.permute(0, 1, 4, 2, 3).flatten(1, 2)


def load_policy(folder: RunFolder, config: JumpingConfig) -> JumpingPolicy:
    """Loads the agent of a run."""
    settings = config.imitation
    tensors, numbers = folder.read_checkpoint()
    with folder.checkpoint_errors():
        # Between two restarts the weights are new, and the best so far are kept beside them.
        tensors = tensors_below("kept.", tensors) or tensors
        channels = 6 if config.colors else 2
        network = make_network(settings.network, channels)
        load_module(network, "network.", tensors)
        kernels = evaluation_kernels(settings, config.seed, int(numbers["iteration"]), channels // 2)
        loss = None
        if settings.auxiliary == "contrastive":
            loss = ContrastiveMetricLoss(REPRESENTATION, settings.embedding_size)
            load_module(loss, "loss.", tensors)
    return JumpingPolicy(network, loss, kernels)
