"""Where commands print, and how they read settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from pisces.errors import UserError
from pisces.experiments.lists import parse_value

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False, soft_wrap=True)


def parse_settings(items: Sequence[str]) -> dict[str, Any]:
    """Reads settings that are given as name=value."""
    settings: dict[str, Any] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals:
            raise UserError(f"expected settings as name=value, got {item!r}")
        settings[name.replace("-", "_")] = parse_value(value)
    return settings
