"""Trained agents, from their run folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from pisces.agents.checkpoint import load_checkpoint, load_module, tensors_below
from pisces.agents.draws import evaluation_kernels
from pisces.agents.drq import DrQAgent
from pisces.agents.drq_settings import DrQSettings
from pisces.agents.encoders import Encoder, Network, make_network
from pisces.agents.linear_policy import LinearPolicy
from pisces.agents.networks import REPRESENTATION
from pisces.agents.settings import ImitationSettings
from pisces.augment import apply_kernel
from pisces.errors import UserError
from pisces.losses import PolicySimilarityLoss


class JumpingPolicy:
    """A trained agent of the jumping task.

    Observations are two consecutive frames, the earlier one first: [2, 60, 60], or [2, 60, 60, 3] with colours, as
    ``gymnasium.wrappers.FrameStackObservation(env, 2, padding_type="zero")`` gives them.
    """

    def __init__(self, network: Network, loss: PolicySimilarityLoss | None, kernels: list[Tensor | None]) -> None:
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
        image = self._image(observation)
        draws = [self._network(apply_kernel(image, kernel)).softmax(dim=1) for kernel in self._kernels]
        return np.asarray(torch.stack(draws).mean(dim=0)[0].numpy(), dtype=np.float32)

    def act(self, observation: ArrayLike) -> int:
        """The greedy action."""
        return int(self.probabilities(observation).argmax())

    @torch.no_grad()
    def embed(self, observation: ArrayLike) -> NDArray[np.float32]:
        """The metric embedding, or the representation if the agent learned without a contrastive loss."""
        features = self._network.represent(self._image(observation))
        embedding = features if self._loss is None else self._loss.embed(features)
        return np.asarray(embedding[0].numpy(), dtype=np.float32)

    @torch.no_grad()
    def embed_all(self, encoder: Encoder) -> NDArray[np.float32]:
        """What `embed` gives for each observation of an encoder's data set, [n, k]; see `agents.encoders`."""
        features = encoder.represent_all(self._network, None)
        return np.asarray((features if self._loss is None else self._loss.embed(features)).numpy(), dtype=np.float32)

    def _image(self, observation: ArrayLike) -> Tensor:
        frames = np.asarray(observation, dtype=np.float32)
        shape = (2, 60, 60) if self._network.conv1.in_channels == 2 else (2, 60, 60, 3)
        if frames.shape != shape:
            raise UserError(f"expected two stacked frames of shape {shape}, got {frames.shape}")
        image = torch.from_numpy(np.array(frames))  # a copy: recorded observations are read-only
        return (image if image.ndim == 3 else image.permute(0, 3, 1, 2).flatten(0, 1))[None]


class ControlPolicy:
    """A trained agent of a control task; observations are [H, W, 3 stack], as the environment gives them."""

    def __init__(self, agent: DrQAgent, shape: tuple[int, int, int]) -> None:
        self._agent, self._shape = agent, shape

    def act(self, observation: ArrayLike) -> NDArray[np.float32]:
        """The greedy action, [A]."""
        return self._agent.act(self._checked(observation))

    @torch.no_grad()
    def embed(self, observation: ArrayLike) -> NDArray[np.float32]:
        """The metric embedding, or the actor's last hidden layer if it learned without the contrastive loss."""
        agent = self._agent
        image = torch.from_numpy(np.array(self._checked(observation))[None]).permute(0, 3, 1, 2)
        features = agent.actor.represent(agent.critic.convolutions(image))
        embedding = agent.loss.embed(features) if agent.settings.auxiliary else features
        return np.asarray(embedding[0].numpy(), dtype=np.float32)

    def _checked(self, observation: ArrayLike) -> NDArray[np.uint8]:
        frames = np.asarray(observation)
        if frames.shape != self._shape or frames.dtype != np.uint8:
            raise UserError(f"expected bytes of shape {self._shape}, got {frames.dtype} {frames.shape}")
        return frames


def load(run_folder: str | Path) -> JumpingPolicy | LinearPolicy | ControlPolicy:
    """Loads the agent of a run folder."""
    folder = Path(run_folder)
    config = _read_config(folder / "config.json")
    path = folder / "checkpoint.safetensors"
    if not path.exists() and (folder / "result.json").exists():
        raise UserError(
            f"expected a run with its checkpoint in {str(folder)!r}, got a finished one without: committed results, "
            "runs of grid and cells of several lqr seeds have none; pisces train jumping|lqr|distracting makes one"
        )
    if not path.exists():
        raise UserError(f"expected a checkpoint in {str(folder)!r}, got none; train the run first")
    tensors, numbers = load_checkpoint(path)
    if "distractors" in config:
        return LinearPolicy(tensors, folder)
    if "protocol" in config:
        return _load_control(config, tensors, folder)
    return _load_jumping(config, tensors, numbers, folder)


def _load_control(config: dict[str, Any], tensors: dict[str, Tensor], folder: Path) -> ControlPolicy:
    try:
        size, channels = config["protocol"]["frame_size"], 3 * config["protocol"]["frame_stack"]
        actions = len(tensors["actor.output.bias"]) // 2
        agent = DrQAgent(size, channels, actions, DrQSettings(**config["settings"]), config["seed"])
        agent.restore_policy(tensors)
        load_module(agent.loss, "loss.", tensors)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise _other("a control run", folder, error) from error
    return ControlPolicy(agent, (size, size, channels))


def _load_jumping(
    config: dict[str, Any], tensors: dict[str, Tensor], numbers: dict[str, Any], folder: Path
) -> JumpingPolicy:
    try:
        settings = ImitationSettings(**config["settings"])
        # Between two of several starts the weights are new, and the best so far are kept beside them.
        tensors = tensors_below("kept.", tensors) or tensors
        channels = 6 if config["colors"] else 2
        network = make_network(settings.network, channels)
        load_module(network, "network.", tensors)
        kernels = evaluation_kernels(settings, config["seed"], int(numbers["iteration"]), channels // 2)
        loss = None
        if settings.auxiliary == "contrastive":
            loss = PolicySimilarityLoss(REPRESENTATION, settings.embedding_size)
            load_module(loss, "loss.", tensors)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise _other("a jumping run", folder, error) from error
    return JumpingPolicy(network, loss, kernels)


def _other(kind: str, folder: Path, error: Exception) -> UserError:
    reason = " ".join(str(error).split())  # torch tells it in several lines
    return UserError(f"expected {kind} of this version in {str(folder)!r}, got another ({reason})")


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"expected a run folder with a config.json, got {str(path.parent)!r}") from error
    if not isinstance(config, dict):
        raise UserError(f"expected a JSON object in {str(path)!r}, got {type(config).__name__}")
    return config
