"""Minari datasets in and out (extra `minari`). Nothing is downloaded: datasets lie in MINARI_DATASETS_PATH."""

from __future__ import annotations

import os
import re
import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from pisces.errors import UserError
from pisces.trajectories.trajectory import Trajectory


def from_minari(dataset: Any) -> list[Trajectory]:
    """Reads the episodes of a Minari dataset.

    Minari also stores the observation after the last decision, in which nothing is decided; it is left out.

    Args:
        dataset: the id of a local dataset, e.g. "toy/walk-v0", or a `minari.MinariDataset`, perhaps filtered.

    Returns:
        One trajectory per episode, in the dataset's order; images stay uint8.
    """
    opened = _open(dataset) if isinstance(dataset, str) else dataset
    trajectories = []
    for episode in opened.iterate_episodes():
        if not isinstance(episode.observations, np.ndarray) or not isinstance(episode.actions, np.ndarray):
            kinds = f"{type(episode.observations).__name__} and {type(episode.actions).__name__}"
            raise UserError(f"expected observations and actions that are single arrays, got {kinds}")
        steps = len(episode.actions)
        trajectories.append(Trajectory(episode.observations[:steps], episode.actions, rewards=episode.rewards))
    return trajectories


def to_minari(
    trajectories: Sequence[Trajectory],
    dataset_id: str,
    observation_space: gym.Space[Any],
    action_space: gym.Space[Any],
    **metadata: Any,
) -> Any:
    """Writes trajectories as a local Minari dataset, images without loss.

    A trajectory does not hold the observation after its last decision, so the last one stands there again. Episodes
    are marked as terminated. Rewards that are unknown become zeros.

    Args:
        trajectories: with actions.
        dataset_id: e.g. "toy/walk-v0"; a dataset that exists is never overwritten.
        observation_space: of the environment.
        action_space: of the environment.
        metadata: further arguments of `minari.create_dataset_from_buffers`, e.g. algorithm_name.

    Returns:
        The dataset, a `minari.MinariDataset`.
    """
    minari = _minari()
    if not trajectories:
        raise UserError("expected at least one trajectory, got none")
    for space in (observation_space, action_space):
        if isinstance(space, gym.spaces.Dict | gym.spaces.Tuple):
            raise UserError(f"expected spaces of single arrays, which trajectories hold, got {type(space).__name__}")
    _check_id(dataset_id)
    if dataset_id in _local_datasets(minari):
        raise UserError(f"expected the id of a new dataset, got {dataset_id!r}, which exists")
    buffers = [_buffer(trajectory, observation_space, action_space) for trajectory in trajectories]
    spaces = {"observation_space": observation_space, "action_space": action_space}
    folder = _folder(dataset_id)
    existed = folder.exists()
    with warnings.catch_warnings():
        # Author, code and the like are optional here; Minari warns of each that is not given.
        warnings.filterwarnings("ignore", message=".* None", category=UserWarning)
        try:
            return minari.create_dataset_from_buffers(dataset_id, buffers, **spaces, jpeg_encoding=False, **metadata)
        except Exception as error:
            if not existed:
                shutil.rmtree(folder, ignore_errors=True)  # part of a dataset, which would block its id
            raise UserError(f"expected arguments that Minari can write a dataset with, got: {error}") from error


def _folder(dataset_id: str) -> Path:
    from minari.storage.local import get_dataset_path

    return Path(get_dataset_path(dataset_id))


def _buffer(trajectory: Trajectory, observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> Any:
    from minari.data_collector import EpisodeBuffer

    if trajectory.actions is None:
        raise UserError("expected trajectories with actions, got one with policies only")
    observations, actions = trajectory.observations, trajectory.actions
    _check_space("observations", observations, observation_space)
    _check_space("actions", actions, action_space)
    length = len(trajectory)
    rewards = np.zeros(length) if trajectory.rewards is None else trajectory.rewards
    return EpisodeBuffer(
        observations=[*observations, observations[-1]],
        actions=list(actions),
        rewards=rewards.tolist(),
        terminations=[False] * (length - 1) + [True],
        truncations=[False] * length,
    )


def _check_space(name: str, values: NDArray[Any], space: gym.Space[Any]) -> None:
    for step, value in enumerate(values):
        if not space.contains(value):
            raise UserError(
                f"expected {name} of {space}, got {values.dtype} {values.shape}, of which step {step} is not in it"
            )


def _open(dataset_id: str) -> Any:
    minari = _minari()
    known = _local_datasets(minari)
    if dataset_id not in known:
        raise UserError(f"expected a local Minari dataset, got {dataset_id!r}; there are {', '.join(known) or 'none'}")
    return minari.load_dataset(dataset_id)


def _check_id(dataset_id: str) -> None:
    # Minari writes part of a dataset before it refuses such an id, and can't list any dataset from then on.
    if not re.fullmatch(r"([\w-][\w/-]*[\w-]/)?[\w-]+-v\d+", dataset_id):
        raise UserError(f"expected the id of a dataset with its version, such as 'toy/walk-v0', got {dataset_id!r}")


def _local_datasets(minari: Any) -> list[str]:
    try:
        return list(minari.list_local_datasets())
    except (ValueError, TypeError) as error:
        place = os.environ.get("MINARI_DATASETS_PATH", "Minari's folder of datasets")
        raise UserError(f"expected readable datasets in {place}, got one that Minari can't list: {error}") from error


def _minari() -> Any:
    try:
        import minari
    except ImportError as error:
        raise UserError("expected Minari, got none installed: pip install 'pisces-rl[minari]'") from error
    return minari
