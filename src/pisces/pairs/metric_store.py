"""Storage for the metrics of many pairs, in memory or in a temporary file."""

from __future__ import annotations

import errno
import os
import tempfile
import warnings
import weakref
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.errors import UserError

FloatArray = NDArray[np.float64]


class MetricStore:
    """A long array of numbers, written and read in pieces.

    Args:
        size: how many numbers it holds.
        memory_limit: bytes above which they are kept in a file, which is deleted with the store.
        folder: the folder of that file; None for the system's temporary folder.
    """

    def __init__(self, size: int, memory_limit: int, folder: str | Path | None = None) -> None:
        self._descriptor: int | None = None
        if size * 8 > memory_limit:
            self._values, self._descriptor = _mapped(size, folder)
            weakref.finalize(self, os.close, self._descriptor)
        else:
            self._values = np.empty(size)

    @property
    def in_file(self) -> bool:
        """Whether the numbers are kept in a file."""
        return self._descriptor is not None

    def __getstate__(self) -> dict[str, Any]:
        # A copy keeps its numbers in memory, because the file belongs to the original.
        return {"_descriptor": None, "_values": np.array(self._values)}

    def read(self, start: int, shape: tuple[int, int]) -> FloatArray:
        """Returns a read-only view of the matrix that starts at a place."""
        matrix = self._values[start : start + shape[0] * shape[1]].reshape(shape)
        matrix.setflags(write=False)
        return matrix

    def write(self, start: int, matrix: FloatArray) -> bool:
        """Stores a matrix; returns False if the disk is full, where a write through the mapping would be fatal."""
        # Windows has no pwrite, but allocates the whole file when it is mapped: the mapping can be written to.
        if self._descriptor is None or not hasattr(os, "pwrite"):
            self._values[start : start + matrix.size] = matrix.ravel()
            return True
        left, place = np.ascontiguousarray(matrix).data.cast("B"), start * matrix.itemsize
        try:
            while left:  # a call may write only a part
                written = os.pwrite(self._descriptor, left, place)
                left, place = left[written:], place + written
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            warnings.warn("the disk is full: metrics of further pairs are computed at every draw", stacklevel=4)
            return False
        return True


def _mapped(size: int, folder: str | Path | None) -> tuple[FloatArray, int]:
    """Returns an array in a file, for reading, and the file's descriptor, for writing."""
    if folder is not None and not Path(folder).is_dir():
        raise UserError(f"expected a folder for metrics, got {str(folder)!r}, which is not a folder")
    # The file has no name, so it is gone when the mapping and the descriptor are.
    with tempfile.TemporaryFile(dir=folder, prefix="pisces-metric-") as file:
        return np.memmap(file, np.float64, "w+", shape=(size,)), os.dup(file.fileno())
