"""Numbers that the paper reports (arXiv:2101.05265)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A published mean and its spread."""

    mean: float
    """Mean over the paper's runs."""
    deviation: float
    """Standard deviation, or standard error where the paper reports that."""

    def __str__(self) -> str:
        digits = 1 if self.mean == 0 or self.mean >= 0.1 else 2
        return f"{self.mean:.{digits}f} ({self.deviation:.1f})"
