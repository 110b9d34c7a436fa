"""Observations as pictures on pages."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from matplotlib.image import imsave
from numpy.typing import NDArray

LARGEST_FRAME, SMALLEST_FRAME = 96, 8
"""Frames are shown in at most so many pixels; smaller arrays than that are no frames."""


def frame_images(observations: NDArray[Any]) -> NDArray[np.uint8] | None:
    """Returns observations as RGB images [n, h, w, 3], the newest frame of stacked ones; None if they are no images.

    Four channels are RGBA if the last one is opaque everywhere, else four stacked gray frames.
    """
    if observations.ndim not in (3, 4) or observations.dtype.kind not in "uif":
        return None
    images = observations[..., None] if observations.ndim == 3 else observations
    if images.shape[3] > 4 and images.shape[1] <= 16:
        images = np.moveaxis(images, 1, 3)
    if min(images.shape[1:3]) < SMALLEST_FRAME or images.shape[3] > 16:
        return None
    images = images[..., :3] if images.shape[3] == 3 or _has_alpha(images) else images[..., -1:]
    stride = -(-max(images.shape[1:3]) // LARGEST_FRAME)
    images = np.repeat(images[:, ::stride, ::stride], 3 // images.shape[3], axis=3)
    if images.dtype == np.uint8 and images.max(initial=0) > 16:
        return np.asarray(images, dtype=np.uint8)
    values = np.nan_to_num(images.astype(np.float64))
    low, high = values.min(initial=0.0), values.max(initial=0.0)
    return np.asarray(np.rint(255 * (values - low) / (high - low or 1.0)), dtype=np.uint8)


def _has_alpha(images: NDArray[Any]) -> bool:
    """Whether there are four channels, the last one opaque everywhere."""
    return images.shape[3] == 4 and bool((images[..., 3] == (1.0 if images.dtype.kind == "f" else 255)).all())


def packed_frames(frames: NDArray[np.uint8]) -> dict[str, Any]:
    """Packs frames [n, h, w, 3] in one PNG, several to a row, for pages."""
    count, height, width, _ = frames.shape
    columns = int(np.ceil(np.sqrt(count)))
    rows = -(-count // columns)
    tiles = np.zeros((rows * columns, height, width, 3), dtype=np.uint8)
    tiles[:count] = frames
    image = tiles.reshape(rows, columns, height, width, 3).swapaxes(1, 2).reshape(rows * height, columns * width, 3)
    buffer = io.BytesIO()
    imsave(buffer, image, format="png")
    source = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
    return {"source": source, "columns": columns, "width": width, "height": height}
