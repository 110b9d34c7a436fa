"""How far a run has come."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Progress:
    """A report from within a run."""

    iteration: int
    """Iterations done."""
    total: int
    """Iterations of the whole run."""
    losses: Mapping[str, float] = field(default_factory=dict)
    """The last iteration's losses by name."""
    evaluation: Mapping[str, Any] | None = None
    """The newest row of the metrics, right after an evaluation."""


Listener = Callable[[Progress], None]
"""What a run calls after every iteration."""
