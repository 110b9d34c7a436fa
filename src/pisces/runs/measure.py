"""Descriptions of measured quantities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from pisces.errors import unknown_name

BETTER = ("higher", "lower")


@dataclass(frozen=True)
class Measure:
    """A quantity that runs are compared by."""

    name: str
    """The key of the value in result.json."""
    label: str
    """The text that tables and figures show."""
    better: Literal["higher", "lower"]
    """Whether higher or lower values are better."""
    unit: str = ""
    """The unit of the values."""
    limits: tuple[float, float] = (-math.inf, math.inf)
    """The lowest and the highest possible value."""

    def __post_init__(self) -> None:
        if self.better not in BETTER:
            raise unknown_name("direction", self.better, BETTER)

    @property
    def worst(self) -> float:
        """The value that ranks below all others."""
        return -math.inf if self.better == "higher" else math.inf
