"""Augmentations of image batches."""

from pisces.augment.randconv import apply_kernel, random_kernel, random_row_kernel
from pisces.augment.shift import random_shift, shift_frames

__all__ = ["apply_kernel", "random_kernel", "random_row_kernel", "random_shift", "shift_frames"]
