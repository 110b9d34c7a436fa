"""Augmentations of image batches."""

from pisces.errors import import_extra

import_extra("torch", "torch")

from pisces.augment.colors import mix_colors, random_color_matrices  # noqa: E402
from pisces.augment.randconv import apply_kernel, random_kernel, random_row_kernel  # noqa: E402
from pisces.augment.shift import shift_frames  # noqa: E402

__all__ = [
    "apply_kernel",
    "mix_colors",
    "random_color_matrices",
    "random_kernel",
    "random_row_kernel",
    "shift_frames",
]
