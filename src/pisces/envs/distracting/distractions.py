"""Distractions that change from frame to frame independently of the task: video, colors, camera.

The strengths are those of the Distracting Control Suite (arXiv:2101.02722). All distractions of an episode are
sampled from one generator, so one seed determines them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pisces.envs.distracting.textures import Clip

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class View:
    """Pose of the camera relative to its default."""

    horizontal: float = 0.0
    """Angle in radians around the vertical axis through the target."""
    vertical: float = 0.0
    """Elevation angle in radians."""
    roll: float = 0.0
    """Angle in radians around the line of sight."""
    distance: float = 1.0
    """Distance to the target relative to the default."""


class Background:
    """A video that plays back and forth from a random frame in a random direction.

    Args:
        clip: [frames, size, size, 3].
        rng: samples the first frame and the direction.
        dynamic: False shows the first frame only.
    """

    def __init__(self, clip: Clip, rng: np.random.Generator, dynamic: bool = True) -> None:
        self._clip, self._dynamic = clip, dynamic
        # Indices along the way from the first frame to the last and back; the second half runs backwards.
        self._period = max(2 * len(clip) - 2, 1)
        self._place = int(rng.integers(self._period))

    def advance(self) -> None:
        """Moves to the next frame."""
        if self._dynamic:
            self._place = (self._place + 1) % self._period

    @property
    def frame(self) -> NDArray[np.uint8]:
        """The current frame."""
        return np.asarray(self._clip[min(self._place, self._period - self._place)])


class ColorWalk:
    """Random walk of colors around their own values.

    Args:
        colors: the materials' colors, [n, 3].
        strength: largest change per channel.
        rng: samples all changes.
        dynamic: whether they change within an episode.
    """

    def __init__(self, colors: FloatArray, strength: float, rng: np.random.Generator, dynamic: bool = True) -> None:
        self._rng, self._std = rng, 0.03 * strength if dynamic else 0.0
        self._low, self._high = np.clip(colors - strength, 0, 1), np.clip(colors + strength, 0, 1)
        self.colors = rng.uniform(self._low, self._high)

    def advance(self) -> None:
        """Moves by one step."""
        if self._std:
            change = self._rng.normal(0, self._std, self.colors.shape)
            self.colors = np.clip(self.colors + change, self._low, self._high)


class CameraWalk:
    """Random walk of the camera around its target.

    Args:
        strength: scales all ranges and speeds.
        rng: samples all changes.
        dynamic: whether it moves within an episode.
    """

    def __init__(self, strength: float, rng: np.random.Generator, dynamic: bool = True) -> None:
        angle = np.pi * strength / 2
        self._rng, self._dynamic = rng, dynamic
        self._low = np.array([-angle, -angle, -angle, 1 - 0.5 * strength])
        self._high = np.array([angle, angle, angle, 1 + 1.5 * strength])
        speed, roll = 0.1 * strength, np.pi * strength / 300
        # Per simulator step; the two angles and the distance share one standard deviation, the roll has its own.
        self._std = np.array([speed, speed, roll, speed])
        self._limit = np.array([0.4 * strength, 0.4 * strength, np.pi * strength / 50, 0.4 * strength])
        self._place, self._speed = rng.uniform(self._low, self._high), np.zeros(4)

    def advance(self) -> None:
        """Moves by one step; the camera stops at the ends of the ranges."""
        if not self._dynamic:
            return
        self._speed = np.clip(self._speed + self._rng.normal(0, self._std), -self._limit, self._limit)
        wanted = self._place + self._speed
        self._place = np.clip(wanted, self._low, self._high)
        self._speed[wanted != self._place] = 0

    @property
    def view(self) -> View:
        """The current view."""
        return View(*(float(value) for value in self._place))
