"""The time that a callback takes from an agent's training."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

WARN_AFTER = 20.0
"""Seconds in the callback before it warns about its share: the first updates compile code and are not typical."""
WARN_ABOVE = 0.5
"""The share of the agent's own time above which it warns."""


class OverheadClock:
    """Measures the time of updates, and the agent's own time between them.

    Args:
        now: returns the current time in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._since: float | None = None
        self._warned = False
        self.spent = 0.0
        """Seconds within updates."""
        self.agent = 0.0
        """Seconds between updates while the agent trains."""
        self.updates = 0
        """Number of measured updates."""

    def start(self) -> None:
        """Starts to count the agent's time."""
        self._since = self._now()

    def stop(self) -> None:
        """Stops to count the agent's time, at the end of training."""
        self._count_agent()
        self._since = None

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Measures one update within the context; does nothing while the agent does not train."""
        self._count_agent()
        begin = self._since
        yield
        if begin is not None:
            self._since = self._now()
            self.spent += self._since - begin
            self.updates += 1

    def affords(self, share: float | None) -> bool:
        """Whether another update, as long as the average one, leaves the time below a share of the agent's own."""
        if share is None:
            return True
        self._count_agent()
        return self.spent + self.seconds_per_update < share * self.agent

    @property
    def overhead(self) -> float:
        """The time of the updates as a share of the agent's own time; infinite if the agent had none."""
        return self.spent / self.agent if self.agent else math.inf

    @property
    def seconds_per_update(self) -> float:
        """The mean time of an update, with the playing of episodes that it causes."""
        return self.spent / self.updates if self.updates else 0.0

    def warn_if_slow(self) -> None:
        """Warns, once, if the updates take a large share of the training time."""
        if self._warned or self.spent < WARN_AFTER or self.overhead < WARN_ABOVE:
            return
        self._warned = True
        warnings.warn(
            f"the callback has taken {self.spent:.0f} s ({1000 * self.seconds_per_update:.0f} ms per update), "
            f"{self.overhead:.0%} of the agent's own training time; set max_overhead, a larger every or fewer updates "
            "in SimilaritySettings",
            stacklevel=2,
        )

    def _count_agent(self) -> None:
        if self._since is not None:
            now = self._now()
            self.agent += now - self._since
            self._since = now
