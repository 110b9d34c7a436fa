"""The interface of trained policies."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from numpy.typing import ArrayLike, NDArray


@runtime_checkable
class Policy(Protocol):
    """A trained policy, as loaded from a run folder."""

    def act(self, observation: ArrayLike) -> Any:
        """Returns the greedy action for one observation."""

    def embed(self, observations: ArrayLike) -> NDArray[Any]:
        """Returns the embeddings [n, k] of observations [n, ...]."""
