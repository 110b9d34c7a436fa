"""Finite Markov decision processes: validated, sparse, from arrays, Gymnasium's toy-text tasks, samples or files."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from pisces.errors import UserError
from pisces.metrics.exact.chain import Chain, chain_from_rows, scaled_rows
from pisces.metrics.mdp.sources import arrays_from_counts, arrays_from_table
from pisces.validation import check_probabilities, load_arrays

FloatArray = NDArray[np.float64]
FILE_KEYS = ("shape", "probability", "next_state", "pointer", "rewards")


@dataclass(frozen=True, eq=False)
class FiniteMDP:
    """A finite MDP: next-state probabilities and expected rewards of every state and action.

    An action of a terminal state leads to the state itself with reward 0.
    """

    transitions: Any
    """Next-state probabilities: dense [S, A, S], sparse [S * A, S] with row state * A + action, or a list of A sparse
    matrices [S, S]. Stored as a read-only scipy CSR array [S * A, S] whose rows are scaled to sum to 1."""

    rewards: Any
    """Expected rewards, [S, A]; [S] if they don't depend on the action. Stored as read-only float64 [S, A]."""

    def __post_init__(self) -> None:
        rewards = np.array(self.rewards, dtype=np.float64)
        if rewards.ndim not in (1, 2) or 0 in rewards.shape:
            raise UserError(f"expected rewards [S, A] with at least one state and action, got shape {rewards.shape}")
        rows, actions = _as_rows(self.transitions, rewards.shape)
        rewards = np.repeat(rewards[:, None], actions, axis=1) if rewards.ndim == 1 else rewards
        if rows.shape[0] != rewards.size or rows.shape[1] != len(rewards):
            raise UserError(
                f"expected transitions for {rewards.shape[0]} states and {rewards.shape[1]} actions as in the rewards, "
                f"got {rows.shape[0]} rows (state, action) over {rows.shape[1]} next states"
            )
        rows = scaled_rows(rows, actions)
        wrong = np.argwhere(~np.isfinite(rewards))
        if wrong.size:
            state, action = wrong[0]
            raise UserError(f"expected finite rewards, got {rewards[state, action]} at state {state}, action {action}")
        for array in (rewards, rows.data, rows.indices, rows.indptr):
            array.setflags(write=False)
        object.__setattr__(self, "transitions", rows)
        object.__setattr__(self, "rewards", rewards)

    @property
    def n_states(self) -> int:
        """The number of states."""
        return int(self.rewards.shape[0])

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        return int(self.rewards.shape[1])

    def chain(self) -> Chain:
        """The next-state distributions of every state and action."""
        return chain_from_rows(self.transitions, self.n_actions)

    def policy_chain(self, policy: ArrayLike) -> Chain:
        """The next-state distributions under a policy [S, A]: P(s' | s) = sum_a policy[s, a] P(s' | s, a)."""
        weights = check_policy(policy, self)
        pick = scipy.sparse.csr_array(
            (weights.ravel(), np.arange(weights.size), np.arange(0, weights.size + 1, self.n_actions)),
            shape=(self.n_states, weights.size),
        )
        return chain_from_rows(pick @ self.transitions, 1)

    def policy_rewards(self, policy: ArrayLike) -> FloatArray:
        """Expected reward of every state under a policy, [S]."""
        return np.asarray((check_policy(policy, self) * self.rewards).sum(axis=1))

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the MDP to an npz file without pickles."""
        rows = self.transitions
        arrays = {
            "shape": np.array([self.n_states, self.n_actions]),
            "probability": rows.data,
            "next_state": rows.indices.astype(np.int64),
            "pointer": rows.indptr.astype(np.int64),
            "rewards": self.rewards,
        }
        with Path(path).open("wb") as file:  # numpy would add a suffix to a name
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> FiniteMDP:
        """Reads an MDP from an npz file: what `save` wrote, or dense arrays `transitions` [S, A, S] and `rewards`."""
        arrays = load_arrays("an MDP", Path(path))
        if {"transitions", "rewards"} <= arrays.keys():
            return cls(arrays["transitions"], arrays["rewards"])
        missing = [name for name in FILE_KEYS if name not in arrays]
        if missing:
            raise UserError(
                f"expected arrays transitions and rewards, or {', '.join(FILE_KEYS)}, in {path}, got {sorted(arrays)}"
            )
        return cls(_stored_rows(arrays, path), arrays["rewards"])

    @classmethod
    def from_gymnasium(cls, environment: Any) -> FiniteMDP:
        """Reads the `P` dictionary of a toy-text environment (FrozenLake, CliffWalking, Taxi).

        A state that is entered only by transitions which end the episode becomes absorbing with reward 0. If an ending
        transition leads into a state that is also entered otherwise, it is sent to one extra terminal state, the last.
        """
        table = getattr(getattr(environment, "unwrapped", environment), "P", None)
        if not isinstance(table, dict) or not table:
            raise UserError(f"expected a toy-text environment with a P dictionary, got {environment!r}")
        return cls(*arrays_from_table(table))

    @classmethod
    def from_samples(
        cls,
        states: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        next_states: ArrayLike,
        *,
        shape: tuple[int, int],
        smoothing: float = 0.0,
    ) -> FiniteMDP:
        """Estimates an MDP from sampled transitions by counting.

        P(s' | s, a) = (count(s, a, s') + smoothing) / (count(s, a) + smoothing * S); rewards are means. A state and
        action without samples leads to the same state with reward 0 if `smoothing` is 0, and to all states with equal
        probability otherwise.

        Args:
            states: integers [T].
            actions: integers [T].
            rewards: numbers [T].
            next_states: integers [T].
            shape: (number of states, number of actions).
            smoothing: count added to every next state; >= 0.
        """
        s, a, n = (_check_index(values, name) for values, name in
                   ((states, "states"), (actions, "actions"), (next_states, "next_states")))  # fmt: skip
        return cls(*arrays_from_counts((s, a, np.asarray(rewards, dtype=np.float64), n), shape, smoothing))


def check_policy(policy: ArrayLike, mdp: FiniteMDP) -> FloatArray:
    """Returns a policy as float64 [S, A] whose rows are scaled to sum to 1, or raises if it is invalid.

    Integer actions [S] are accepted.
    """
    values = np.asarray(policy)
    if values.shape == (mdp.n_states,) and np.issubdtype(values.dtype, np.integer):
        if values.min() < 0 or values.max() >= mdp.n_actions:
            raise UserError(f"expected actions 0 to {mdp.n_actions - 1}, got {values.min()} to {values.max()}")
        return np.asarray(np.eye(mdp.n_actions)[values], dtype=np.float64)
    if values.shape != (mdp.n_states, mdp.n_actions):
        raise UserError(f"expected a policy of shape [{mdp.n_states}, {mdp.n_actions}], got {list(values.shape)}")
    weights = values.astype(np.float64)
    check_probabilities("action probabilities", weights)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def reward_rounding(mdp_x: FiniteMDP, mdp_y: FiniteMDP) -> float:
    """Returns the largest rounding error in the difference of two expected rewards under policies."""
    return sum(2.0**-52 * (mdp.n_actions + 2) * float(np.abs(mdp.rewards).max()) for mdp in (mdp_x, mdp_y))


def _as_rows(transitions: Any, reward_shape: tuple[int, ...]) -> tuple[scipy.sparse.csr_array, int]:
    if isinstance(transitions, list | tuple) and transitions and all(scipy.sparse.issparse(t) for t in transitions):
        shapes = {matrix.shape for matrix in transitions}
        if len(shapes) != 1 or len(next(iter(shapes))) != 2:
            raise UserError(f"expected one [S, S] matrix per action, all of one shape, got {sorted(shapes)}")
        stacked = scipy.sparse.vstack([scipy.sparse.csr_array(matrix) for matrix in transitions]).tocsr()
        states, actions = transitions[0].shape[0], len(transitions)
        order = (np.arange(actions)[None, :] * states + np.arange(states)[:, None]).ravel()
        return scipy.sparse.csr_array(stacked[order], dtype=np.float64), actions
    if scipy.sparse.issparse(transitions):
        rows = scipy.sparse.csr_array(transitions, dtype=np.float64, copy=True)
        actions = reward_shape[1] if len(reward_shape) == 2 else max(1, rows.shape[0] // max(1, rows.shape[1]))
        return rows, actions
    dense = np.asarray(transitions, dtype=np.float64)
    if dense.ndim != 3 or 0 in dense.shape or dense.shape[0] != dense.shape[2]:
        raise UserError(f"expected transitions [S, A, S] with at least one state and action, got {list(dense.shape)}")
    return scipy.sparse.csr_array(dense.reshape(-1, dense.shape[2])), dense.shape[1]


def _stored_rows(arrays: dict[str, NDArray[Any]], path: Any) -> scipy.sparse.csr_array:
    try:
        states, actions = (int(size) for size in arrays["shape"])
        parts = (arrays["probability"], arrays["next_state"], arrays["pointer"])
        rows = scipy.sparse.csr_array(parts, shape=(states * actions, states))
        rows.check_format(full_check=True)
    except (ValueError, TypeError, IndexError, OverflowError, MemoryError) as error:
        raise UserError(f"expected consistent sparse arrays in {path}, got: {error}") from None
    return rows


def _check_index(values: ArrayLike, name: str) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise UserError(f"expected {name} as integers [T], got {array.dtype} {list(array.shape)}")
    return array.astype(np.int64)
