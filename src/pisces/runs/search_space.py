"""Search spaces: the values of settings that tuning tries, and their notation on the command line."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pisces.errors import UserError, unknown_name

DIGITS = 4
"""Numbers are rounded to this many digits before they are used, so that a printed value is exactly the one that ran."""


@dataclass(frozen=True)
class Range:
    """All numbers between two bounds."""

    name: str
    """The name of the setting."""
    low: float
    """The lowest value."""
    high: float
    """The highest value."""
    log: bool = False
    """Whether the logarithm is sampled uniformly, not the value."""
    whole: bool = False
    """Whether only integers are tried."""

    def __post_init__(self) -> None:
        if not -math.inf < self.low < self.high < math.inf or (self.log and self.low <= 0):
            rule = "0 < low < high" if self.log else "finite low < high"
            raise UserError(f"expected {rule} for {self.name}, got {self.low}:{self.high}")
        if self.whole and not (float(self.low).is_integer() and float(self.high).is_integer()):
            raise UserError(f"expected integers as bounds of {self.name}, got {self.low}:{self.high}")

    def quantize(self, value: float) -> float | int:
        """Returns the value that is used for a sampled one."""
        return int(value) if self.whole else min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high)

    @property
    def examples(self) -> tuple[Any, ...]:
        """The values to check before a search: the bounds."""
        return (self.quantize(self.low), self.quantize(self.high))


@dataclass(frozen=True)
class Choice:
    """A list of values."""

    name: str
    """The name of the setting."""
    values: tuple[Any, ...]
    """The values to choose from."""

    def __post_init__(self) -> None:
        if not self.values or any(value in self.values[:place] for place, value in enumerate(self.values)):
            raise UserError(f"expected distinct values of {self.name}, got {list(self.values)}")

    def quantize(self, value: Any) -> Any:
        """Returns the value itself."""
        return value

    @property
    def examples(self) -> tuple[Any, ...]:
        """The values to check before a search: all."""
        return self.values


Dimension = Range | Choice
Space = tuple[Dimension, ...]


def space_as_dict(space: Space) -> dict[str, Any]:
    """Returns a space as JSON values."""
    return {dimension.name: asdict(dimension) for dimension in space}


def grid_cells(space: Space) -> Iterator[dict[str, Any]]:
    """Yields all combinations of values of a space of choices."""
    ranges = [dimension.name for dimension in space if isinstance(dimension, Range)]
    if ranges:
        raise UserError(f"a grid search needs choices such as {ranges[0]}=1,3,10, got a range")
    values = [dimension.examples for dimension in space]
    for cell in itertools.product(*values):
        yield dict(zip((dimension.name for dimension in space), cell, strict=True))


def parse_space(items: Sequence[str], defaults: Mapping[str, Any]) -> Space:
    """Parses a space from strings such as ``learning_rate=1e-4:1e-2:log`` and ``coefficient=1,3,10``.

    Args:
        items: the strings.
        defaults: all settings with their default values; the ranges of integer settings hold integers.
    """
    space = tuple(_parse(item, defaults) for item in items)
    names = [dimension.name for dimension in space]
    if len(set(names)) < len(names):
        raise UserError(f"give each setting once in --search, got {', '.join(names)}")
    return space


def parse_value(text: str) -> Any:
    """Parses the value of a setting: a Python literal, or else a string (some settings have the value "none")."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _parse(item: str, defaults: Mapping[str, Any]) -> Dimension:
    name, equals, text = item.partition("=")
    name = name.replace("-", "_")
    if not equals or not text:
        raise UserError(f"expected name=low:high, name=low:high:log or name=a,b,c, got {item!r}")
    if name not in defaults:
        raise unknown_name("setting", name, defaults)
    if ":" not in text:
        return Choice(name, tuple(parse_value(part) for part in text.split(",")))
    low, high, *rest = text.split(":")
    try:
        bounds = float(low), float(high)
    except ValueError as error:
        raise UserError(f"expected numbers as bounds of {name}, got {text!r}") from error
    if rest not in ([], ["log"]):
        raise UserError(f"expected nothing or log after the bounds of {name}, got {':'.join(rest)!r}")
    whole = isinstance(defaults[name], int) and not isinstance(defaults[name], bool)
    return Range(name, *bounds, log=bool(rest), whole=whole)
