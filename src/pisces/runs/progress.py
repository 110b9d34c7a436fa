"""Progress reports of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Progress:
    """Progress of a run after an iteration."""

    iteration: int
    """The number of finished iterations."""
    total: int
    """The number of iterations of the whole run."""
    losses: Mapping[str, float] = field(default_factory=dict)
    """The losses of the last iteration by name."""
    evaluation: Mapping[str, Any] | None = None
    """The new row of the metrics if this iteration ended with an evaluation."""
    requirement: str = ""
    """The label of the run, if it is one that another run needs first."""


Listener = Callable[[Progress], None]
"""A function that a run calls after every iteration."""
