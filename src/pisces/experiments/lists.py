"""Seeds, names and values as users write them on the command line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any

from pisces.errors import UserError


def parse_seeds(text: str) -> list[int]:
    """Reads seeds such as ``0-9``, ``3`` or ``0-4,8,10-12``."""
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", part)
        if match is None:
            raise UserError(f"expected seeds such as 0-9 or 0,3,5, got {text!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise UserError(f"expected a range of seeds that grows, got {part.strip()!r}; write {last}-{first}")
        seeds += range(first, last + 1)
    return list(dict.fromkeys(seeds))


def format_seeds(seeds: Iterable[int]) -> str:
    """Writes seeds as `parse_seeds` reads them, ranges where they follow each other."""
    ranges: list[list[int]] = []
    for seed in seeds:
        if ranges and seed == ranges[-1][1] + 1:
            ranges[-1][1] = seed
        else:
            ranges.append([seed, seed])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def parse_names(text: str) -> list[str]:
    """Reads names that are separated by commas."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UserError(f"expected names separated by commas, got {text!r}")
    return names


def parse_value(text: str) -> Any:
    """Reads a value of a setting: a Python literal, or else a word (some settings have the words none and true)."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
