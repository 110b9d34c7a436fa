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

    @property
    def digits(self) -> int:
        """Digits of the mean after the point."""
        return 1 if self.mean == 0 or self.mean >= 0.1 else 2

    def __str__(self) -> str:
        return f"{self.mean:.{self.digits}f} ({self.deviation:.1f})"
