"""The record of one episode."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.errors import UserError
from pisces.validation import as_array, check_finite, check_probabilities, freeze, load_arrays

STEP_FIELDS = ("observations", "actions", "policies", "rewards", "action_stds")
"""Arrays with one entry per step."""
ARRAYS = (*STEP_FIELDS, "final_observation")


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The states of one episode and the actions taken in them; T is the number of decisions.

    At least one of `actions` and `policies` is required. The arrays are copied and made read-only.
    """

    observations: NDArray[Any]
    """The observation before each decision, [T, ...]."""
    actions: NDArray[Any] | None = None
    """The actions taken: integers [T], or continuous [T, D]."""
    policies: NDArray[Any] | None = None
    """The probability of each action, [T, A]."""
    rewards: NDArray[Any] | None = None
    """The reward of each decision, [T]."""
    terminated: bool = True
    """Whether the environment ended the episode. False means that it was truncated, e.g. by a time limit, so that the
    last state is not absorbing; see `pisces.metrics.trajectory_metric`."""
    final_observation: NDArray[Any] | None = None
    """The observation after the last decision, [...]; None if it was not recorded."""
    action_stds: NDArray[Any] | None = None
    """The standard deviations of Gaussian policies whose means are `actions`, [T, D]."""

    def __post_init__(self) -> None:
        for name in ARRAYS:
            value = getattr(self, name)
            if value is not None or name == "observations":
                object.__setattr__(self, name, np.array(as_array(name, value)))
        if np.ndim(self.terminated):
            shape = np.shape(self.terminated)
            raise UserError(
                f"terminated must be one flag, whether the environment ended the episode, got shape {shape}"
            )
        object.__setattr__(self, "terminated", bool(self.terminated))
        freeze(self, ARRAYS)
        self._check()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        freeze(self, ARRAYS)

    def _check(self) -> None:
        for name in STEP_FIELDS:
            value = getattr(self, name)
            if value is not None and (value.ndim == 0 or value.dtype.kind not in "biuf"):
                kind = "dictionaries or other objects" if value.dtype.kind == "O" else f"{value.dtype} {value.shape}"
                raise UserError(f"expected {name} as an array of numbers [T, ...], got {kind}")
        length = len(self)
        if length == 0:
            raise UserError("expected a trajectory of at least one state, got none")
        if self.actions is None and self.policies is None:
            raise UserError("expected actions or policies, got neither")
        for name in STEP_FIELDS[1:]:
            value = getattr(self, name)
            if value is not None and len(value) != length:
                raise UserError(f"expected {name} for {length} observations, got {len(value)}")
        self._check_values()

    def _check_values(self) -> None:
        if self.policies is not None:
            check_probabilities("policies", self.policies)
        if self.rewards is not None:
            if self.rewards.ndim != 1:
                raise UserError(f"expected rewards of shape [T], got {self.rewards.shape}")
            check_finite("rewards", self.rewards)
        if self.actions is not None and np.issubdtype(self.actions.dtype, np.floating):
            check_finite("actions", self.actions)
        self._check_stds()
        final, shape = self.final_observation, self.observations.shape[1:]
        if final is not None and (final.shape != shape or final.dtype.kind not in "biuf"):
            raise UserError(f"final_observation must be numbers of shape {shape}, got {final.dtype} {final.shape}")

    def _check_stds(self) -> None:
        if self.action_stds is None:
            return
        if self.actions is None or self.actions.dtype.kind != "f" or self.action_stds.shape != self.actions.shape:
            raise UserError(
                f"action_stds need continuous actions (the means) of the same shape, {self.action_stds.shape}"
            )
        check_finite("action_stds", self.action_stds)
        if (self.action_stds < 0).any():
            raise UserError(f"action_stds must be >= 0, got {self.action_stds.min()}")

    def __len__(self) -> int:
        return len(self.observations)

    def arrays(self) -> dict[str, Any]:
        """Returns all fields that are set, as arrays by name; `Trajectory(**arrays)` is an equal trajectory."""
        arrays = {name: getattr(self, name) for name in ARRAYS if getattr(self, name) is not None}
        return {**arrays, "terminated": np.array(self.terminated)}

    def save(self, path: str | Path) -> None:
        """Writes the trajectory as a compressed npz file."""
        with Path(path).open("wb") as file:
            np.savez_compressed(file, **self.arrays())

    @classmethod
    def load(cls, path: str | Path) -> Trajectory:
        """Reads an npz file that `save` wrote; nothing is unpickled. Without `terminated`, the episode terminated."""
        arrays = load_arrays("a trajectory", path, (*ARRAYS, "terminated"))
        if "observations" not in arrays:
            raise UserError(f"expected an array named 'observations' in {str(path)!r}, got none")
        if arrays.get("terminated", np.array(True)).shape != ():
            raise UserError(f"expected a single value named 'terminated' in {str(path)!r}, got an array")
        return cls(**arrays)  # type: ignore[arg-type]  # `terminated` is converted to bool
