"""Checks of numbers that users give, each with the error that says what was expected."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.errors import UserError

PROBABILITY_TOLERANCE = 1e-6


def check_finite(name: str, values: NDArray[Any]) -> None:
    """Raises unless all values are finite."""
    if not np.isfinite(values).all():
        raise UserError(f"expected finite {name}, got NaN or infinity")


def check_probabilities(name: str, rows: NDArray[Any]) -> None:
    """Raises unless each row of [n, A] is a probability distribution."""
    if rows.ndim != 2:
        raise UserError(f"expected {name} of shape [n, A], got {rows.shape}")
    check_finite(name, rows)
    wrong = np.flatnonzero((rows < 0).any(axis=1) | (np.abs(rows.sum(axis=1) - 1) > PROBABILITY_TOLERANCE))
    if wrong.size:
        raise UserError(f"expected {name} that sum to 1, got {rows[wrong[0]].tolist()} at state {wrong[0]}")


def check_discount(discount: float) -> None:
    """Raises unless the discount lies in [0, 1)."""
    if not 0 <= discount < 1:
        raise UserError(f"expected a discount in [0, 1), got {discount}")
