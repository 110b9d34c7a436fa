"""Frames of the jumping task as arrays.

Frames are stored as uint8 with the values 0, 1 and 2, which stand for the gray levels 0, 0.5 and 1. Row 0 is the top.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.envs.jumping.dynamics import optimal_heights
from pisces.envs.jumping.tasks import (
    AGENT_HEIGHT,
    AGENT_WIDTH,
    DECISIONS,
    OBSTACLE_HEIGHT,
    OBSTACLE_WIDTH,
    SCREEN,
    JumpingTask,
)

PIXEL_SCALE = np.float32(0.5)
"""Gray level of a stored pixel of value 1: stored frames times this are the frames that an agent sees."""
CHANNEL_OF_COLOR = {"red": 0, "green": 1}


def render_frames(task: JumpingTask, x: NDArray[np.int64], height: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Draws many frames of one task at once.

    Args:
        task: the task.
        x: left edges of the agent, [n].
        height: heights of the agent above the floor, [n].

    Returns:
        Frames [n, 60, 60] with values 0, 1, 2, or [n, 60, 60, 3] if the obstacle is red or green.
    """
    columns, rows = np.arange(SCREEN), SCREEN - 1 - np.arange(SCREEN)
    bottom = height + task.floor_height
    in_columns = (columns >= x[:, None]) & (columns < x[:, None] + AGENT_WIDTH)
    in_rows = (rows >= bottom[:, None]) & (rows < bottom[:, None] + AGENT_HEIGHT)
    frames = 2 * (in_rows[:, :, None] & in_columns[:, None, :]).astype(np.uint8)
    if task.color != "white":
        frames = np.repeat(frames[..., None], 3, axis=-1)
    left, top = task.obstacle_position, SCREEN - task.floor_height - OBSTACLE_HEIGHT
    obstacle = frames[:, top : top + OBSTACLE_HEIGHT, left : left + OBSTACLE_WIDTH]
    if task.color == "white":
        obstacle[:] = 1
    else:
        obstacle[:] = np.eye(3, dtype=np.uint8)[CHANNEL_OF_COLOR[task.color]]
    frames[:, [0, -1]] = 2
    frames[:, :, [0, -1]] = 2
    frames[:, SCREEN - 1 - task.floor_height] = 2
    return frames


def optimal_frames(task: JumpingTask) -> NDArray[np.uint8]:
    """Draws the 56 states of the optimal episode."""
    return render_frames(task, np.arange(DECISIONS), optimal_heights(task))


def decode_frames(frames: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Converts stored frames or observations to gray levels in [0, 1]."""
    return np.asarray(frames * PIXEL_SCALE, dtype=np.float32)


def stack_frames(frames: NDArray[Any]) -> NDArray[Any]:
    """Stacks each frame of an episode with the one before it, which is what the agent sees.

    Args:
        frames: consecutive frames from the first one on, [n, 60, 60] or [n, 60, 60, 3].

    Returns:
        Observations [n, 60, 60, 2] or [n, 60, 60, 6], previous frame first; the frame before the first is all zeros.
    """
    current = frames[..., None] if frames.ndim == 3 else frames
    previous = np.concatenate([np.zeros_like(current[:1]), current[:-1]])
    return np.concatenate([previous, current], axis=-1)
