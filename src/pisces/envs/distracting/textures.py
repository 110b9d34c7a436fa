"""Procedural video clips: moving textures that look natural and need no download."""

from __future__ import annotations

import colorsys

import numpy as np
from numpy.typing import NDArray

FRAMES = 64
"""Frames of a clip; clips are played back and forth."""
FIELDS = 2
WAVES = 64
"""Waves per side of a frame are below this number; small frames show the longer ones."""
PALETTE_COLORS = 5
Clip = NDArray[np.uint8]


def moving_texture(seed: int, size: int, frames: int = FRAMES) -> Clip:
    """Generates a clip of drifting clouds of color with a few ellipses that move across them.

    Noise fields whose power falls with frequency, as in photographs, drift and change: the phase of every wave advances
    at its own speed. One field selects colors from the clip's palette, another one sets the brightness. The picture is
    the same at every size.

    Args:
        seed: determines the clip.
        size: height and width.
        frames: number of frames.

    Returns:
        The clip, uint8 [frames, size, size, 3].
    """
    noise, look = np.random.default_rng([seed, 6]), np.random.default_rng([seed, 7])
    fields = [_noise_field(noise, size, frames) for _ in range(FIELDS)]
    palette = _palette(look)
    ellipses = [_Ellipse(look) for _ in range(int(look.integers(2, 5)))]
    clip = np.empty((frames, size, size, 3), dtype=np.uint8)
    for frame in range(frames):
        colors = _look_up(palette, fields[0][frame])
        colors *= 0.55 + 0.45 * fields[1][frame][..., None]
        for ellipse in ellipses:
            ellipse.draw(colors, fields[1][frame], frame)
        clip[frame] = np.clip(255 * colors, 0, 255)
    return clip


def _noise_field(rng: np.random.Generator, size: int, frames: int) -> NDArray[np.float32]:
    """Generates a noise field that changes smoothly, values in (0, 1), [frames, size, size]."""
    spectrum, turn = _waves(rng)
    rows, columns = _frequencies()
    # A hermitian spectrum has each wave beyond the first column twice.
    deviation = np.sqrt((np.where(columns > 0, 2, 1) * np.abs(spectrum) ** 2).sum())
    # Pixels show the field at their centers, so that frames of all sizes show the same place.
    spectrum = spectrum / deviation * np.exp(1j * np.pi * (rows + columns) / size)
    field = np.empty((frames, size, size), dtype=np.float32)
    for frame in range(frames):
        field[frame] = size * size * np.fft.irfft2(_cut(spectrum, size), s=(size, size))
        spectrum = spectrum * turn
    return np.asarray(0.5 + 0.5 * np.tanh(1.2 * field), dtype=np.float32)


def _frequencies() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Waves per side of a frame, along the rows [2 WAVES - 1, 1] and along the columns [1, WAVES]."""
    return np.fft.ifftshift(np.arange(1.0 - WAVES, WAVES))[:, None], np.arange(float(WAVES))[None, :]


def _waves(rng: np.random.Generator) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    """Samples the waves of a noise field, and the factor by which each changes from frame to frame."""
    rows, columns = _frequencies()
    stretch = np.exp(rng.uniform(-0.5, 0.5))
    frequency = np.hypot(rows * stretch, columns / stretch)
    power = np.where(frequency > 0, np.maximum(frequency, 1) ** -rng.uniform(1.3, 2.1), 0)
    spectrum = power * np.exp(2j * np.pi * rng.random(frequency.shape))
    angle, speed = rng.uniform(0, 2 * np.pi), rng.uniform(0.002, 0.01)
    drift = 2 * np.pi * speed * (np.sin(angle) * rows + np.cos(angle) * columns)
    return spectrum, np.exp(1j * (drift + rng.normal(0, 0.04, frequency.shape)))


def _cut(spectrum: NDArray[np.complex128], size: int) -> NDArray[np.complex128]:
    """The waves that frames of a size can show, as `irfft2` takes them, [size, size // 2 + 1]."""
    count = min(WAVES, (size + 1) // 2)
    cut = np.zeros((size, size // 2 + 1), dtype=np.complex128)
    cut[:count, :count] = spectrum[:count, :count]
    cut[size - count + 1 :, :count] = spectrum[len(spectrum) - count + 1 :, :count]
    return cut


def _palette(rng: np.random.Generator) -> NDArray[np.float32]:
    """Samples colors around two hues, from dark to light, [PALETTE_COLORS, 3]."""
    hues = rng.random(2)
    rows = []
    for value in np.linspace(0.15, 0.75, PALETTE_COLORS):
        hue = (hues[int(rng.integers(2))] + rng.normal(0, 0.04)) % 1
        rows.append(colorsys.hsv_to_rgb(hue, rng.uniform(0.1, 0.55), value))
    return np.asarray(rng.permutation(rows), dtype=np.float32)


def _look_up(palette: NDArray[np.float32], values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Interpolates the palette at values in [0, 1]."""
    steps = np.linspace(0, 1, 256)
    places = np.linspace(0, 1, len(palette))
    table = np.stack([np.interp(steps, places, palette[:, channel]) for channel in range(3)], axis=1)
    return np.asarray(table[(255 * values).astype(np.uint8)], dtype=np.float32)


class _Ellipse:
    """An ellipse with soft edges that swings across the frame."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.center, self.swing = rng.uniform(0.25, 0.75, 2), rng.uniform(0.05, 0.25, 2)
        self.phase, self.speed = rng.uniform(0, 2 * np.pi, 2), rng.uniform(0.04, 0.14, 2)
        self.radius = rng.uniform(0.05, 0.16, 2)
        self.color = np.asarray(
            colorsys.hsv_to_rgb(rng.random(), rng.uniform(0.1, 0.65), rng.uniform(0.3, 0.85)), np.float32
        )

    def draw(self, colors: NDArray[np.float32], texture: NDArray[np.float32], frame: int) -> None:
        size = len(colors)
        center = self.center + self.swing * np.sin(self.phase + self.speed * frame)
        first = np.maximum((size * (center - self.radius)).astype(int), 0)
        last = np.minimum((size * (center + self.radius)).astype(int) + 1, size)
        rows, columns = slice(first[0], last[0]), slice(first[1], last[1])
        places = (np.arange(size, dtype=np.float32) + 0.5) / size
        y, x = (places[rows] - center[0]) / self.radius[0], (places[columns] - center[1]) / self.radius[1]
        cover = np.clip(4 * (1 - np.hypot(y[:, None], x[None, :])), 0, 1).astype(np.float32)[..., None]
        part = colors[rows, columns]
        part += cover * (self.color * (0.6 + 0.5 * texture[rows, columns, None]) - part)
