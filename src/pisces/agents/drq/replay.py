"""A replay buffer on disk that stores each frame once, in memory maps."""

from __future__ import annotations

import hashlib
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from pisces.errors import UserError
from pisces.files import check_free_space

SLACK = 10_000
"""Slots beyond the capacity: how much may be written after a checkpoint without overwriting what it needs."""

RESTART = "delete the run's checkpoint to restart it"


@dataclass(frozen=True)
class TransitionBatch:
    """n sampled transitions; observations stack T frames, the newest last."""

    observations: NDArray[np.uint8]
    """The observations before the actions, [n, H, W, 3 T]."""
    actions: NDArray[np.float32]
    """The actions, [n, A]."""
    rewards: NDArray[np.float32]
    """The rewards, [n, 1]."""
    next_observations: NDArray[np.uint8]
    """The observations after the actions, [n, H, W, 3 T]."""
    continues: NDArray[np.float32]
    """0 where the episode terminated, else 1 (times a discount, see `Replay.sample`), [n, 1]."""


class Replay:
    """The most recent transitions of an agent, stacked into observations when they are sampled.

    One slot holds one frame and the action and reward that followed it; the last frame of an episode has none. Slots
    are written in order, and after the end of the files from their beginning. What was written after a checkpoint
    never touches the frames that the checkpoint needs, if `safe` is asked before each episode.

    Args:
        folder: the folder of the files, created if missing.
        capacity: number of transitions to sample from.
        frame_size: height and width.
        frame_stack: frames per observation.
        action_size: entries of an action.
        written: number of slots written so far, from a checkpoint; 0 starts an empty buffer.
        digest: the `digest` at the checkpoint, which the files must have; None if it is not known.
    """

    def __init__(
        self,
        folder: Path,
        capacity: int,
        frame_size: int,
        frame_stack: int,
        action_size: int,
        written: int = 0,
        digest: str | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.frame_stack, self.written = frame_stack, written
        self._slack = min(SLACK, max(capacity, 64))
        self.slots = capacity + capacity // 50 + self._slack
        self._kept = self.slots - self._slack
        self._saved = written
        columns = np.dtype(
            [
                ("action", "<f4", (action_size,)),
                ("reward", "<f4"),
                ("place", "<i4"),
                ("acts", "u1"),
                ("continues", "u1"),
            ]
        )
        self._frames = _open(folder / "frames.u8", np.dtype(np.uint8), (self.slots, frame_size, frame_size, 3), written)
        self._columns = _open(folder / "columns.bin", columns, (self.slots,), written)
        self._frame_sums = np.zeros(self.slots, np.uint32)
        for slot in self._needed_slots():
            self._frame_sums[slot] = zlib.crc32(self._frames[slot])
        if digest not in (None, self.digest()):
            raise UserError(f"the replay files in {str(folder)!r} are damaged; {RESTART}")

    def __len__(self) -> int:
        """Returns the number of slots to sample from."""
        return min(self.written, self._kept)

    def begin(self, frame: NDArray[np.uint8]) -> None:
        """Starts an episode with its first frame."""
        self._write(frame, 0)

    def add(self, action: NDArray[np.float32], reward: float, terminated: bool, frame: NDArray[np.uint8]) -> None:
        """Adds what followed the newest frame, and the frame after it."""
        newest = self._columns[(self.written - 1) % self.slots]
        newest["action"], newest["reward"] = action, reward
        newest["acts"], newest["continues"] = 1, not terminated
        self._write(frame, int(newest["place"]) + 1)

    def _write(self, frame: NDArray[np.uint8], place: int) -> None:
        slot = self.written % self.slots
        self._frames[slot] = frame
        self._frame_sums[slot] = zlib.crc32(self._frames[slot])
        row = self._columns[slot]
        row["action"], row["reward"], row["place"], row["acts"], row["continues"] = 0, 0, place, 0, 1
        self.written += 1

    def sample(self, count: int, rng: np.random.Generator, steps: int = 1, discount: float = 1.0) -> TransitionBatch:
        """Samples transitions uniformly, with replacement.

        A transition spans up to `steps` decisions, fewer at the end of an episode: its reward is the discounted sum of
        theirs, its next observation the one after the last, and `continues` holds the discount of all but one of them.
        """
        numbers = self._draw(count, rng)
        rows = self._columns[numbers % self.slots]
        rewards, weights = rows["reward"].copy(), np.ones(count, np.float32)
        continues, span = rows["continues"].copy(), np.ones(count, np.int64)
        for step in range(1, steps):
            later = self._columns[(numbers + step) % self.slots]
            alive = (span == step) & (later["acts"] == 1)
            weights[alive] *= discount
            rewards[alive] += weights[alive] * later["reward"][alive]
            continues[alive] = later["continues"][alive]
            span[alive] += 1
        return TransitionBatch(
            self._observations(numbers, rows["place"]),
            rows["action"].copy(),
            rewards[:, None],
            self._observations(numbers + span, rows["place"] + span),
            (continues * weights)[:, None],
        )

    def _observations(self, numbers: NDArray[np.int64], places: NDArray[Any]) -> NDArray[np.uint8]:
        # Frames before an episode's first one are that first one.
        back = np.minimum(np.arange(self.frame_stack - 1, -1, -1)[None, :], places[:, None])
        stacked: NDArray[np.uint8] = _gather((numbers[:, None] - back) % self.slots, self._frames)
        return stacked

    def _draw(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        low = max(self.written - self._kept, 0) + (self.frame_stack if self.written > self._kept else 0)
        if not self._columns["acts"][low % self.slots] and self.written - low < 2:
            raise UserError("the replay buffer has no transition to sample")
        numbers = rng.integers(low, self.written - 1, count)
        while True:
            ends = self._columns["acts"][numbers % self.slots] == 0
            if not ends.any():
                return np.asarray(numbers)
            numbers[ends] = rng.integers(low, self.written - 1, int(ends.sum()))

    def _needed_slots(self) -> NDArray[np.int64]:
        """The slots that batches are drawn from, the oldest first."""
        return np.arange(max(self.written - self._kept, 0), self.written) % self.slots

    def digest(self) -> str:
        """Returns a checksum of everything that batches are drawn from."""
        slots = self._needed_slots()
        digest = hashlib.sha256(self._frame_sums[slots].tobytes())
        digest.update(self._columns[slots].tobytes())
        return digest.hexdigest()

    def safe(self, decisions: int) -> bool:
        """Whether that many more decisions do not overwrite the frames of the last checkpoint."""
        return self.written + decisions + 1 - self._saved <= self._slack

    def flush(self) -> int:
        """Flushes everything to disk; returns the number of written slots, for the checkpoint."""
        self._frames.flush()
        self._columns.flush()
        self._saved = self.written
        return self.written


@numba.njit(cache=True, nogil=True)
def _gather(slots, frames):  # type: ignore[no-untyped-def]
    """Stacks frames [slots, H, W, 3] by number [n, T] into observations [n, H, W, 3 T], each byte copied once."""
    count, stack = slots.shape
    height, width, channels = frames.shape[1:]
    pixels = frames.reshape(len(frames), height * width, channels)
    stacked = np.empty((count, height * width, stack * channels), np.uint8)
    for k in range(count):
        for t in range(stack):
            frame, first = pixels[slots[k, t]], t * channels
            for place in range(height * width):
                # Written out, since a loop over three bytes takes three times as long.
                stacked[k, place, first] = frame[place, 0]
                stacked[k, place, first + 1] = frame[place, 1]
                stacked[k, place, first + 2] = frame[place, 2]
    return stacked.reshape(count, height, width, stack * channels)


def _open(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], written: int) -> np.memmap[Any, Any]:
    size = math.prod(shape) * dtype.itemsize
    if written and (not path.exists() or path.stat().st_size != size):
        raise UserError(f"the replay file {str(path)!r} of the checkpoint is missing or has another size; {RESTART}")
    if not path.exists() or path.stat().st_size != size:
        check_free_space(path.parent, "the replay", size, "choose a smaller buffer_size")
        with path.open("wb") as file:
            file.truncate(size)
    return np.memmap(path, dtype=dtype, mode="r+", shape=shape)
