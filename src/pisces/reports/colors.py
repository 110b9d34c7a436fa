"""Colors of methods, the same on pages and in figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

PALETTE = (
    "#7d7d86", "#1f9464", "#d9541e", "#2f7fd0", "#a97a10", "#9a62c9", "#c4609c",
    "#1593a5", "#d0455a", "#6f8a1e", "#a3704f", "#6a7fb0", "#c04fc0", "#5f8f7a",
)  # fmt: skip
"""Every color has a contrast of at least 3:1 against the light and the dark background of the page."""


LINE_STYLES = ("-", "--", ":")
"""Lines of methods that share a color, because there are more methods than colors."""


def method_style(methods: Sequence[str], method: str) -> dict[str, Any]:
    """Returns color and line style of a method in figures; the color is that of pages."""
    place = methods.index(method) if method in methods else len(methods)
    style = LINE_STYLES[place // len(PALETTE) % len(LINE_STYLES)]
    return {"color": method_color(methods, method), "linestyle": style}


def method_color(methods: Sequence[str], method: str) -> str:
    """Returns the color of a method: its place in the experiment's list of methods decides."""
    place = methods.index(method) if method in methods else len(methods)
    return PALETTE[place % len(PALETTE)]
