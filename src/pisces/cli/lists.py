"""Parsing of lists of seeds, names and values."""

from __future__ import annotations

import re
from typing import Any

from pisces.errors import UserError
from pisces.files import printable
from pisces.runs.search_space import parse_value

SEED_DIGITS = 10
"""The number of digits of the largest seed."""
MOST_SEEDS = 100_000
"""The largest number of seeds of one command."""


def parse_seeds(text: str) -> list[int]:
    """Reads seeds such as ``0-9``, ``3`` or ``0-4,8,10-12``."""
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", part)
        if match is None:
            raise UserError(f"seeds are written as 0-9 or 0,3,5, got {text!r}")
        if max(len(match[1]), len(match[2] or "")) > SEED_DIGITS:
            raise UserError(f"seeds have at most {SEED_DIGITS} digits, got {printable(part.strip(), 60)!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise UserError(f"the range of seeds {part.strip()!r} is empty; write {last}-{first}")
        if len(seeds) + last + 1 - first > MOST_SEEDS:
            raise UserError(f"at most {MOST_SEEDS} seeds are possible, got {printable(text, 60)!r}")
        seeds += range(first, last + 1)
    return list(dict.fromkeys(seeds))


def parse_names(text: str) -> list[str]:
    """Reads names that are separated by commas."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UserError(f"names are separated by commas, got {text!r}")
    return names


def parse_list(text: str) -> list[Any]:
    """Reads values that are separated by commas."""
    return [parse_value(name) for name in parse_names(text)]
