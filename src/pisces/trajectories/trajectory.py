"""One episode, as data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.errors import UserError
from pisces.validation import check_finite, check_probabilities, freeze, load_arrays

FIELDS = ("observations", "actions", "policies", "rewards")


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The states of one episode and what the agent did in them; T is the number of decisions.

    At least one of `actions` and `policies` must be there. The arrays are made read-only.
    """

    observations: NDArray[Any]
    """What the agent saw before each decision, [T, ...]."""
    actions: NDArray[Any] | None = None
    """The actions taken: integers [T], or continuous [T, D]."""
    policies: NDArray[Any] | None = None
    """The probability of each action, [T, A]."""
    rewards: NDArray[Any] | None = None
    """The reward of each decision, [T]."""

    def __post_init__(self) -> None:
        for name in FIELDS:
            value = getattr(self, name)
            if value is not None or name == FIELDS[0]:
                object.__setattr__(self, name, np.array(value))
        freeze(self, FIELDS)
        self._check()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        freeze(self, FIELDS)

    def _check(self) -> None:
        for name in FIELDS:
            value = getattr(self, name)
            if value is not None and (value.ndim == 0 or value.dtype.kind not in "biuf"):
                kind = "dictionaries or other objects" if value.dtype.kind == "O" else f"{value.dtype} {value.shape}"
                raise UserError(f"expected {name} as an array of numbers [T, ...], got {kind}")
        length = len(self)
        if length == 0:
            raise UserError("expected a trajectory of at least one state, got none")
        if self.actions is None and self.policies is None:
            raise UserError("expected actions or policies, got neither")
        for name in FIELDS[1:]:
            value = getattr(self, name)
            if value is not None and len(value) != length:
                raise UserError(f"expected {name} for {length} observations, got {len(value)}")
        if self.policies is not None:
            check_probabilities("policies", self.policies)
        if self.rewards is not None:
            if self.rewards.ndim != 1:
                raise UserError(f"expected rewards of shape [T], got {self.rewards.shape}")
            check_finite("rewards", self.rewards)
        if self.actions is not None and np.issubdtype(self.actions.dtype, np.floating):
            check_finite("actions", self.actions)

    def __len__(self) -> int:
        return len(self.observations)

    def save(self, path: str | Path) -> None:
        """Writes the trajectory as a compressed npz file."""
        arrays = {name: getattr(self, name) for name in FIELDS if getattr(self, name) is not None}
        with Path(path).open("wb") as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path: str | Path) -> Trajectory:
        """Reads a trajectory that `save` wrote; nothing is unpickled."""
        arrays = load_arrays("a trajectory", path, FIELDS)
        if "observations" not in arrays:
            raise UserError(f"expected an array named 'observations' in {str(path)!r}, got none")
        return cls(**arrays)
