"""What a callback saves beside a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from pisces.agents.checkpoint import tensors_below
from pisces.trajectories import Trajectory

SUFFIX = ".similarity.safetensors"


def path_beside(path: str | Path) -> Path:
    """The file of a callback that is saved beside a model."""
    text = str(path)
    return Path(text if text.endswith(SUFFIX) else text.removesuffix(".zip") + SUFFIX)


def episode_tensors(index: int, episode: Trajectory) -> dict[str, Tensor]:
    """An episode as tensors of a file, with the episode's number in their names."""
    return {f"episode.{index}.{name}": torch.tensor(value) for name, value in episode.arrays().items()}


def load_episode(index: int, tensors: Mapping[str, Tensor]) -> Trajectory:
    """The episode of a number among the tensors of a file."""
    arrays = {name: tensor.numpy() for name, tensor in tensors_below(f"episode.{index}.", tensors).items()}
    return Trajectory(**arrays)  # type: ignore[arg-type]  # `terminated` is converted to bool
