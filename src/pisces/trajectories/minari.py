"""Reading and writing of local Minari datasets in MINARI_DATASETS_PATH (extra `minari`)."""

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

from pisces.errors import UserError, import_extra
from pisces.trajectories.trajectory import Trajectory


def from_minari(dataset: Any) -> list[Trajectory]:
    """Reads the episodes of a Minari dataset.

    Args:
        dataset: the id of a local dataset, e.g. "toy/walk-v0", or a `minari.MinariDataset`, perhaps filtered.

    Returns:
        One trajectory per episode, in the dataset's order, with its final observation; images stay uint8.
    """
    opened = _open(dataset) if isinstance(dataset, str) else dataset
    trajectories = []
    for episode in opened.iterate_episodes():
        if not isinstance(episode.observations, np.ndarray) or not isinstance(episode.actions, np.ndarray):
            kinds = f"{type(episode.observations).__name__} and {type(episode.actions).__name__}"
            raise UserError(f"observations and actions must be single arrays, got {kinds}")
        trajectories.append(_trajectory(episode))
    return trajectories


def _trajectory(episode: Any) -> Trajectory:
    steps = len(episode.actions)
    return Trajectory(
        episode.observations[:steps],
        episode.actions,
        rewards=episode.rewards,
        terminated=bool(episode.terminations[-1]),
        final_observation=episode.observations[steps] if len(episode.observations) > steps else None,
    )


def to_minari(
    trajectories: Sequence[Trajectory],
    dataset_id: str,
    observation_space: gym.Space[Any],
    action_space: gym.Space[Any],
    **metadata: Any,
) -> Any:
    """Writes trajectories as a local Minari dataset, images without loss.

    `from_minari` reads equal trajectories back, except that `policies` are not stored and unknown rewards are zeros.
    `action_stds` are not stored either and change distances, so trajectories with them are refused.

    Args:
        trajectories: with actions and final observations, as `pisces.trajectories.collect` returns them.
        dataset_id: e.g. "toy/walk-v0"; a dataset that exists is never overwritten.
        observation_space: of the environment.
        action_space: of the environment.
        metadata: further arguments of `minari.create_dataset_from_buffers`, e.g. algorithm_name.

    Returns:
        The dataset, a `minari.MinariDataset`.
    """
    minari = import_extra("minari", "minari")
    if not trajectories:
        raise UserError("no trajectories to write; pass at least one trajectory")
    for space in (observation_space, action_space):
        if isinstance(space, gym.spaces.Dict | gym.spaces.Tuple):
            raise UserError(f"observations and actions must be single arrays, got a space {type(space).__name__}")
    _check_id(dataset_id)
    if dataset_id in _local_datasets(minari):
        raise UserError(f"the Minari dataset {dataset_id!r} already exists; choose another id")
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
            raise UserError(f"Minari cannot write the dataset {dataset_id!r}: {error}") from error


def _folder(dataset_id: str) -> Path:
    from minari.storage.local import get_dataset_path

    return Path(get_dataset_path(dataset_id))


def _buffer(trajectory: Trajectory, observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> Any:
    from minari.data_collector import EpisodeBuffer

    if trajectory.actions is None:
        raise UserError("Minari stores actions, but a trajectory has only policies; set Trajectory(actions=...)")
    if trajectory.action_stds is not None:
        raise UserError("Minari cannot store action_stds, which distances depend on; pass trajectories without them")
    final = trajectory.final_observation
    observations = trajectory.observations if final is None else np.concatenate([trajectory.observations, final[None]])
    _check_space("observations", observations, observation_space)
    _check_space("actions", trajectory.actions, action_space)
    if final is None:
        raise UserError("Minari stores the observation after the last decision; set Trajectory(final_observation=...)")
    length = len(trajectory)
    rewards = np.zeros(length) if trajectory.rewards is None else trajectory.rewards
    return EpisodeBuffer(
        observations=list(observations),
        actions=list(trajectory.actions),
        rewards=rewards.tolist(),
        terminations=[False] * (length - 1) + [trajectory.terminated],
        truncations=[False] * (length - 1) + [not trajectory.terminated],
    )


def _check_space(name: str, values: NDArray[Any], space: gym.Space[Any]) -> None:
    for step, value in enumerate(values):
        if not space.contains(value):
            raise UserError(
                f"{name} must be in {space}, but step {step} is not; they are {values.dtype} {values.shape[1:]}"
            )


def _open(dataset_id: str) -> Any:
    minari = import_extra("minari", "minari")
    known = _local_datasets(minari)
    if dataset_id not in known:
        raise UserError(f"unknown Minari dataset {dataset_id!r}; local datasets: {', '.join(known) or 'none'}")
    return minari.load_dataset(dataset_id)


def _check_id(dataset_id: str) -> None:
    # Minari writes part of a dataset before it refuses such an id, and can't list any dataset from then on.
    if not re.fullmatch(r"([\w-][\w/-]*[\w-]/)?[\w-]+-v\d+", dataset_id):
        raise UserError(f"dataset_id must be a name with its version, such as 'toy/walk-v0', got {dataset_id!r}")


def _local_datasets(minari: Any) -> list[str]:
    try:
        return list(minari.list_local_datasets())
    except (ValueError, TypeError) as error:
        place = os.environ.get("MINARI_DATASETS_PATH", "Minari's folder of datasets")
        raise UserError(f"Minari cannot list the datasets in {place}; remove the damaged one: {error}") from error
