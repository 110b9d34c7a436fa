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

    The camera has a velocity in Cartesian coordinates, in default distances to the target per simulator step. Where it
    reaches the end of a range, it slides along it.

    Args:
        strength: scales all ranges and speeds.
        rng: samples all changes.
        dynamic: whether it moves within an episode.
    """

    def __init__(self, strength: float, rng: np.random.Generator, dynamic: bool = True) -> None:
        angle = np.pi * strength / 2
        self._rng, self._dynamic = rng, dynamic
        # Distance, horizontal and vertical angle, roll.
        self._low = np.array([1 - 0.5 * strength, -angle, -angle, -angle])
        self._high = np.array([1 + 1.5 * strength, angle, angle, angle])
        # The suite's speeds, 0.1 and 0.4, are lengths for a camera at a distance of 4.
        self._std, self._roll_std = 0.1 * strength / 4, np.pi * strength / 300
        self._limit, self._roll_limit = 0.4 * strength / 4, np.pi * strength / 50
        self._place = rng.uniform(self._low, self._high)
        direction = rng.normal(size=3)
        self._speed = direction / np.linalg.norm(direction) * rng.uniform(0, self._limit)
        self._roll_speed = rng.uniform(-self._roll_limit, self._roll_limit)

    def advance(self) -> None:
        """Moves by one step."""
        if not self._dynamic:
            return
        speed = self._speed + self._rng.normal(0, self._std, 3)
        speed *= min(1.0, self._limit / float(np.linalg.norm(speed)))
        roll_speed = self._roll_speed + self._rng.normal(0, self._roll_std)
        roll_speed = np.clip(roll_speed, -self._roll_limit, self._roll_limit)
        before, start = self._place, _cartesian(self._place[:3])
        self._place = np.clip([*_spherical(start + speed), before[3] + roll_speed], self._low, self._high)
        self._speed, self._roll_speed = _cartesian(self._place[:3]) - start, self._place[3] - before[3]

    @property
    def view(self) -> View:
        """The current view."""
        distance, horizontal, vertical, roll = (float(value) for value in self._place)
        return View(horizontal, vertical, roll, distance)


def _cartesian(place: FloatArray) -> FloatArray:
    # The default direction is the first axis.
    distance, horizontal, vertical = place
    across = np.cos(vertical)
    return np.asarray(distance * np.array([across * np.cos(horizontal), across * np.sin(horizontal), np.sin(vertical)]))


def _spherical(point: FloatArray) -> FloatArray:
    x, y, z = point
    return np.array([np.linalg.norm(point), np.arctan2(y, x), np.arctan2(z, np.hypot(x, y))])
