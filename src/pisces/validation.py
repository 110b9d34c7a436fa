"""Checks of numbers that users give, each with the error that says what was expected."""

from __future__ import annotations

import math
import numbers
import zipfile
import zlib
from collections.abc import Container, Iterable
from dataclasses import fields
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.errors import UserError

PROBABILITY_TOLERANCE = 1e-6


def freeze(owner: Any, names: Iterable[str]) -> None:
    """Makes arrays of an object read-only; arrays come out of a pickle or a copy writable."""
    for name in names:
        if getattr(owner, name) is not None:
            getattr(owner, name).flags.writeable = False


def check_finite(name: str, values: NDArray[Any]) -> None:
    """Raises unless all values are finite real numbers."""
    if values.dtype.kind not in "biuf":
        raise UserError(f"expected {name} as real numbers, got {values.dtype}")
    if not np.isfinite(values).all():
        raise UserError(f"expected finite {name}, got NaN or infinity")


def check_probabilities(name: str, rows: NDArray[Any]) -> None:
    """Raises unless each row of [n, A] is a probability distribution."""
    if rows.ndim != 2:
        raise UserError(f"expected {name} of shape [n, A], got {rows.shape}")
    check_finite(name, rows)
    wrong = np.flatnonzero(
        (rows < 0).any(axis=1) | (np.abs(rows.sum(axis=1, dtype=np.float64) - 1) > PROBABILITY_TOLERANCE)
    )
    if wrong.size:
        raise UserError(f"expected {name} that sum to 1, got {rows[wrong[0]].tolist()} at state {wrong[0]}")


def check_discount(discount: float) -> None:
    """Raises unless the discount lies in [0, 1)."""
    if not (isinstance(discount, numbers.Real) and 0 <= discount < 1):
        raise UserError(f"expected a discount in [0, 1), got {discount!r}")


def check_tolerance(tolerance: float) -> None:
    """Raises unless a tolerance is positive."""
    if not tolerance > 0:
        raise UserError(f"expected a tolerance > 0, got {tolerance}")


def check_seed(seed: int) -> None:
    """Raises unless a seed is one that all generators take."""
    if not (isinstance(seed, int | np.integer) and 0 <= seed < 2**32):
        raise UserError(f"expected a seed in 0..{2**32 - 1}, got {seed!r}")


def as_generator(seed: int | np.random.Generator) -> np.random.Generator:
    """The generator of a seed, or the one that was given."""
    if not isinstance(seed, np.random.Generator):
        check_seed(seed)
    return np.random.default_rng(seed)


_KINDS: tuple[tuple[type, type, str], ...] = (
    # In this order: True is also a whole number.
    (bool, bool, "True or False"),
    (int, numbers.Integral, "a whole number"),
    (float, numbers.Real, "a finite number"),
    (str, str, "a word"),
)
"""The kinds of settings: of their defaults, of what may be given, and in words."""


def check_kinds(settings: Any) -> None:
    """Raises unless every entry of a dataclass is of its default's kind: a flag, a whole number, a number or a word.

    Numbers become Python's own, and floats where the default is one: 5 and 5.0 are one setting, so one run.
    """
    for field in fields(settings):
        found = [entry for entry in _KINDS if isinstance(field.default, entry[0])]
        if found:
            object.__setattr__(settings, field.name, _of_kind(field.name, getattr(settings, field.name), *found[0]))


def _of_kind(name: str, value: Any, kind: type, accepted: type, words: str) -> Any:
    fits = isinstance(value, accepted) and (kind is bool or not isinstance(value, bool))
    if not fits or (kind is float and not math.isfinite(value)):
        raise UserError(f"expected {words} for {name}, got {value!r}")
    return kind(value)


DAMAGES = (
    *(ValueError, OSError, EOFError, SyntaxError, TokenError),  # of numpy and what it reads headers with
    *(RuntimeError, zipfile.BadZipFile, zlib.error),  # of the archive; encrypted and unknown ones are RuntimeErrors
)
"""What reading a damaged npz file may raise."""


def load_arrays(kind: str, path: str | Path, names: Container[str] | None = None) -> dict[str, NDArray[Any]]:
    """Reads arrays of an npz file; nothing is unpickled.

    Args:
        kind: what the file should hold, for the error.
        path: the file.
        names: the arrays to read, if they are there; None for all.
    """
    if not Path(path).is_file():
        raise UserError(f"expected {kind} file (npz), got {str(path)!r}, which is not a file")
    try:
        with Path(path).open("rb") as file:  # numpy leaves a damaged file open
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("a single array")
            return {name: archive[name] for name in archive.files if names is None or name in names}
    except DAMAGES as error:
        raise UserError(f"expected {kind} file (npz without pickled objects), got {str(path)!r}") from error
