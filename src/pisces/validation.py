"""Checks of user input: settings, arrays, seeds, files."""

from __future__ import annotations

import lzma
import math
import numbers
import os
import struct
import zipfile
import zlib
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tokenize import TokenError
from typing import Annotated, Any, BinaryIO, ClassVar, Literal, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from pisces.errors import UserError, unknown_name

PROBABILITY_TOLERANCE = 1e-6


def freeze(owner: Any, names: Iterable[str]) -> None:
    """Makes arrays of an object read-only; arrays come out of a pickle or a copy writable."""
    for name in names:
        if getattr(owner, name) is not None:
            getattr(owner, name).flags.writeable = False


def as_array(name: str, values: Any) -> NDArray[Any]:
    """Returns values as an array, or raises if they are nested lists that have no shape."""
    try:
        return np.asarray(values)
    except ValueError:
        raise UserError(f"{name} must be an array, got nested lists of different lengths") from None


def as_reals(name: str, values: Any) -> NDArray[np.float64]:
    """Returns values as a float64 array of their own, or raises unless they are real numbers in an array's shape."""
    array = as_array(name, values)
    if array.dtype.kind not in "biuf":
        raise UserError(f"{name} must be real numbers, got {_kind(values, array)}")
    return np.array(array, dtype=np.float64)


def as_integers(name: str, values: Any, shape: str) -> NDArray[np.int64]:
    """Returns values as an int64 array, or raises unless they are integers; `shape` is for the error, e.g. "[T]"."""
    array = as_array(name, values)
    if array.size == 0 and array.dtype.kind == "f":  # an empty list
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise UserError(f"{name} must be integers {shape}, got {_kind(values, array)}")
    return array.astype(np.int64)


def _kind(values: Any, array: NDArray[Any]) -> str:
    return f"a {type(values).__name__}" if array.ndim == 0 else f"{array.dtype} {list(array.shape)}"


def check_finite(name: str, values: NDArray[Any]) -> None:
    """Raises unless all values are finite real numbers."""
    if values.dtype.kind not in "biuf":
        raise UserError(f"{name} must be real numbers, got {values.dtype}")
    if not np.isfinite(values).all():
        raise UserError(f"{name} must be finite, got NaN or infinity")


def check_probabilities(name: str, rows: NDArray[Any]) -> None:
    """Raises unless each row of [n, A] is a probability distribution."""
    if rows.ndim != 2:
        raise UserError(f"{name} must have shape [n, A], got {rows.shape}")
    check_finite(name, rows)
    wrong = np.flatnonzero(
        (rows < 0).any(axis=1) | (np.abs(rows.sum(axis=1, dtype=np.float64) - 1) > PROBABILITY_TOLERANCE)
    )
    if wrong.size:
        raise UserError(f"{name} must be >= 0 and sum to 1, got {rows[wrong[0]].tolist()} at state {wrong[0]}")


def check_discount(discount: float) -> None:
    """Raises unless the discount lies in [0, 1)."""
    if not (isinstance(discount, numbers.Real) and 0 <= discount < 1):
        raise UserError(f"discount must be in [0, 1), got {discount!r}")


def check_tolerance(tolerance: float, name: str = "tolerance") -> None:
    """Raises unless a tolerance is positive."""
    real = isinstance(tolerance, numbers.Real) and not isinstance(tolerance, bool)
    if not (real and 0 < tolerance < math.inf):
        raise UserError(f"{name} must be > 0 and finite, got {tolerance!r}")


def check_match_within(match_within: float | None) -> None:
    """Raises unless `match_within` is a non-negative number or None."""
    if match_within is not None and not (isinstance(match_within, numbers.Real) and match_within >= 0):
        raise UserError(f"match_within must be at least 0, or None, got {match_within!r}")


def check_count(name: str, count: int | None) -> None:
    """Raises unless a number of things is a positive integer, or None for all."""
    if count is not None and not (isinstance(count, numbers.Integral) and count >= 1):
        raise UserError(f"{name} must be a positive integer, or None for all, got {count!r}")


def check_seed(seed: int) -> None:
    """Raises unless a seed is one that all generators take."""
    if not (isinstance(seed, int | np.integer) and 0 <= seed < 2**32):
        raise UserError(f"seed must be an integer in [0, {2**32 - 1}], got {seed!r}")


def as_generator(seed: int | np.random.Generator) -> np.random.Generator:
    """The generator of a seed, or the one that was given."""
    if not isinstance(seed, np.random.Generator):
        check_seed(seed)
    return np.random.default_rng(seed)


@dataclass(frozen=True)
class Interval:
    """The values that a setting may take, as metadata of its type: ``Annotated[float, Interval(0, 1)]``."""

    low: float = -math.inf
    """Smallest value."""
    high: float = math.inf
    """Largest value."""
    open_low: bool = False
    """Whether `low` itself is excluded."""
    open_high: bool = False
    """Whether `high` itself is excluded."""

    def __contains__(self, value: float) -> bool:
        above = value > self.low if self.open_low else value >= self.low
        return above and (value < self.high if self.open_high else value <= self.high)

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"{'>' if self.open_low else '>='} {self.low:g}"
        return f"in {'(' if self.open_low else '['}{self.low}, {self.high}{')' if self.open_high else ']'}"


Positive = Annotated[float, Interval(0, open_low=True)]
NonNegative = Annotated[float, Interval(0)]
Probability = Annotated[float, Interval(0, 1)]
Fraction = Annotated[float, Interval(0, 1, open_low=True)]
Discount = Annotated[float, Interval(0, 1, open_high=True)]
Count = Annotated[int, Interval(1)]
NonNegativeInt = Annotated[int, Interval(0)]
Seed = Annotated[int, Interval(0, 2**32 - 1)]

_KINDS: Mapping[type, tuple[type, str]] = {
    bool: (bool, "True or False"),
    int: (numbers.Integral, "an integer"),
    float: (numbers.Real, "a finite number"),
    str: (str, "a string"),
}
"""The types of settings: what may be given for them, and the words for an error."""


def check_settings(settings: Any) -> None:
    """Checks the fields of a frozen dataclass against their annotations; call it in ``__post_init__``.

    Checked are the types bool, int, float and str, the choices of a Literal, and the `Interval` of an Annotated type.
    Numbers become Python's own, and floats where the annotation is float: 5 and 5.0 are the same setting.
    """
    for name, kind, choices, intervals in _rules(settings.__class__):
        value = getattr(settings, name)
        if choices:
            if value not in choices:
                raise unknown_name(name, value, choices)
        elif kind in _KINDS:
            value = _converted(name, value, kind)
            object.__setattr__(settings, name, value)
        for interval in intervals:
            if value not in interval:
                raise UserError(f"{name} must be {interval}, got {value}")


@cache
def _rules(settings: type) -> list[tuple[str, Any, tuple[Any, ...], tuple[Interval, ...]]]:
    """Returns the fields of a dataclass: name, type, the choices of a Literal, and intervals."""
    rules = []
    for name, hint in get_type_hints(settings, include_extras=True).items():
        if get_origin(hint) is not ClassVar:
            kind, *metadata = get_args(hint) if get_origin(hint) is Annotated else (hint,)
            choices = get_args(kind) if get_origin(kind) is Literal else ()
            rules.append((name, kind, choices, tuple(one for one in metadata if isinstance(one, Interval))))
    return rules


def _converted(name: str, value: Any, kind: type) -> Any:
    if type(value) is kind and kind is not float:
        return value
    accepted, words = _KINDS[kind]
    fits = isinstance(value, accepted) and (kind is bool or not isinstance(value, bool))
    try:
        if fits and (kind is not float or math.isfinite(value)):
            return kind(value)
    except OverflowError:  # of an integer beyond the range of floats
        pass
    raise UserError(f"{name} must be {words}, got {value!r}")


MEMORY_VARIABLE = "PISCES_MEMORY_GB"
"""The environment variable that sets the limit of `check_memory` in GB."""
MEMORY_GB = 8.0
"""The limit without that variable."""
FILE_SHARE = 1 / 8
"""The share of the limit that arrays of a file may take; what is computed from them takes several times as much."""


def check_memory(what: str, size: float, share: float = 1.0) -> None:
    """Raises if something would take more bytes than a share of the limit; call it before the memory is taken."""
    text = os.environ.get(MEMORY_VARIABLE, str(MEMORY_GB))
    try:
        limit = float(text)
    except ValueError:
        limit = math.nan
    if not limit > 0:
        raise UserError(f"{MEMORY_VARIABLE} must be a number of GB above 0, got {text!r}")
    if size > limit * share * 1e9:
        raise UserError(
            f"{what} would take {size / 1e9:.3g} GB, above the limit of {limit * share:g} GB; "
            f"if this machine has more, set {MEMORY_VARIABLE} (now {limit:g})"
        )


def check_distances(n: int, m: int) -> None:
    """Raises if the distances between n and m states, and what their computation needs beside them, are too large."""
    check_memory(f"the distances between {n} and {m} states", 4 * 8 * n * m)


NPZ_READ_ERRORS = (
    *(ValueError, OSError, EOFError, SyntaxError, TokenError, TypeError, KeyError),  # of numpy and its headers
    *(RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),  # of the archive
    *(RecursionError, MemoryError, OverflowError),  # of what damaged headers declare
)
"""What reading a damaged npz file may raise."""
END_RECORD = struct.Struct("<4s4H2LH")
"""The last record of a zip archive, without the comment: signature, two numbers of disks, members on this disk, members
in all, size and place of their list, length of the comment."""


def load_arrays(kind: str, path: str | Path, names: Container[str] | None = None) -> dict[str, NDArray[Any]]:
    """Reads arrays of an npz file; nothing is unpickled, and no more memory is taken than the limit allows.

    Args:
        kind: what the file should hold, for the error.
        path: the file.
        names: the arrays to read, if they are there; None for all.
    """
    if not Path(path).is_file():
        raise UserError(f"{str(path)!r} is not a file; pass {kind} file (npz)")
    try:
        with Path(path).open("rb") as file, zipfile.ZipFile(file) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            chosen = {name: info for name, info in members.items() if names is None or name in names}
            if _declared_members(file, archive) != len(archive.infolist()):
                raise ValueError("the list of contents is not complete")
            for info in members.values():
                archive.open(info).close()  # raises where names in the file and in its list of contents differ
            size = sum(info.file_size for info in chosen.values())
            check_memory(f"the arrays of {str(path)!r}", size, FILE_SHARE)
            return {name: _read_array(archive, info) for name, info in chosen.items()}
    except UserError:
        raise
    except NPZ_READ_ERRORS as error:
        raise UserError(f"{str(path)!r} is damaged or not {kind} file (npz without pickled objects)") from error


def _declared_members(file: BinaryIO, archive: zipfile.ZipFile) -> int:
    """Returns the number of members that the end of an archive declares; zipfile reads fewer without an error."""
    file.seek(-END_RECORD.size - len(archive.comment), os.SEEK_END)
    return int(END_RECORD.unpack(file.read(END_RECORD.size))[4])


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    """Reads an array, after checking that the file has as many bytes as its header declares."""
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        headers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, _, dtype = headers[version](member)
        if math.prod(shape) * dtype.itemsize != info.file_size - member.tell():
            raise ValueError("the array has another size than its header says")
    with archive.open(info) as member:
        return np.asarray(np.lib.format.read_array(member, allow_pickle=False))
