"""Finite Markov decision processes: validated, sparse, from arrays, Gymnasium's toy-text tasks, samples or files."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import InitVar, dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from pisces.errors import UserError
from pisces.metrics.exact.chain import Chain, chain_from_rows, scaled_rows
from pisces.metrics.mdp.layout import Axes, transition_rows
from pisces.metrics.mdp.sources import arrays_from_table, table_of
from pisces.validation import as_array, as_reals, check_probabilities, load_arrays

if TYPE_CHECKING:
    from pisces.metrics.mdp.enumeration import EnumeratedMDP, SampledMDP
    from pisces.metrics.mdp.estimation import EstimatedMDP

FloatArray = NDArray[np.float64]
FILE_KEYS = ("shape", "probability", "next_state", "pointer", "rewards")


@dataclass(frozen=True, eq=False)
class FiniteMDP:
    """A finite MDP: next-state probabilities and expected rewards of every state and action.

    An action of a terminal state leads to the state itself with reward 0.
    """

    transitions: Any
    """Next-state probabilities: dense [S, A, S], sparse [S * A, S] with row state * A + action, or a list of A
    matrices [S, S], dense or sparse. Stored as a read-only scipy CSR array [S * A, S] whose rows are scaled to sum to
    1."""

    rewards: Any
    """Expected rewards, [S, A]; [S] if they don't depend on the action. Stored as read-only float64 [S, A]."""

    axes: InitVar[Axes | None] = None
    """How transitions are to be read: "state-action" for [S, A, S] (sparse: row state * A + action) or "action-state"
    for [A, S, S] (row action * S + state). Needed for a list of S matrices [S, S], which could be either."""

    def __post_init__(self, axes: str | None) -> None:
        rewards = as_reals("rewards", self.rewards)
        if rewards.ndim not in (1, 2) or 0 in rewards.shape:
            raise UserError(f"rewards must have shape [S, A] with at least one state and action, got {rewards.shape}")
        rows, actions = transition_rows(self.transitions, rewards.shape, axes)
        rewards = np.repeat(rewards[:, None], actions, axis=1) if rewards.ndim == 1 else rewards
        if rewards.shape != (rows.shape[1], actions):
            raise UserError(
                f"transitions of {rows.shape[1]} states and {actions} actions don't fit rewards of {rewards.shape[0]} "
                f"states and {rewards.shape[1]} actions"
            )
        rows = scaled_rows(rows, actions)
        wrong = np.argwhere(~np.isfinite(rewards))
        if wrong.size:
            state, action = wrong[0]
            raise UserError(f"rewards must be finite, got {rewards[state, action]} at state {state}, action {action}")
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

    @property
    def available(self) -> NDArray[np.bool_]:
        """Whether a plan may use an action, [S, A]; all here, those with samples in an estimated MDP."""
        return np.ones(self.rewards.shape, dtype=bool)

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
        with Path(path).open("wb") as file:  # numpy would add a suffix to a name
            np.savez_compressed(file, **self._arrays())

    def _arrays(self) -> dict[str, Any]:
        rows = self.transitions
        return {
            "shape": np.array([self.n_states, self.n_actions]),
            "probability": rows.data,
            "next_state": rows.indices.astype(np.int64),
            "pointer": rows.indptr.astype(np.int64),
            "rewards": self.rewards,
        }

    @classmethod
    def load(cls, path: str | PathLike[str]) -> FiniteMDP:
        """Reads an MDP from an npz file: what `save` wrote, or dense arrays `transitions` [S, A, S] and `rewards`."""
        from pisces.metrics.mdp.estimation import COUNT_KEYS, EstimatedMDP

        arrays = load_arrays("an MDP", Path(path))
        if {"transitions", "rewards"} <= arrays.keys():
            return FiniteMDP(arrays["transitions"], arrays["rewards"])
        missing = [name for name in FILE_KEYS if name not in arrays]
        if missing:
            raise UserError(
                f"expected arrays transitions and rewards, or {', '.join(FILE_KEYS)}, in {path}, got {sorted(arrays)}"
            )
        rows = sparse_from_file(arrays, ("probability", "next_state", "pointer"), path)
        if set(COUNT_KEYS) <= arrays.keys():
            return EstimatedMDP.from_arrays(rows, arrays, path)
        return FiniteMDP(rows, arrays["rewards"])

    @classmethod
    def from_gymnasium(cls, environment: Any) -> FiniteMDP:
        """Reads the `P` dictionary of a toy-text environment (FrozenLake, CliffWalking, Taxi).

        A state that is entered only by transitions which end the episode, and in which no episode starts, becomes
        absorbing with reward 0. An ending transition into any other state is sent to one extra terminal state, the
        last. Start states are those of `initial_state_distrib`; without it, all states that an action can leave or
        that have rewards.
        """
        return FiniteMDP(*arrays_from_table(*table_of(environment)))

    @classmethod
    def enumerate(
        cls,
        environment: Any,
        key: Callable[[Any], Hashable] | None = None,
        *,
        max_states: int = 10_000,
        seed: int | None = 0,
        restore: Callable[[Any, Any], Any] | None = None,
    ) -> EnumeratedMDP:
        """Builds the MDP of a deterministic Gymnasium environment with discrete actions by search.

        Every action is taken in a copy of the environment (`copy.deepcopy`) in every state found, breadth first. A
        transition that terminates leads to one terminal state, the last; truncation (a time limit) is ignored. Each
        action is taken twice, with different random numbers (`np_random`): if the outcomes differ, the environment is
        refused.

        Args:
            environment: the environment; it is reset.
            key: maps an observation to what tells states apart, which must determine what happens next; None for the
                whole observation.
            max_states: number of states at which to give up.
            seed: seed of the reset.
            restore: function of (environment, observation) that puts the environment into the state in which the
                observation was seen, for environments that cannot be copied or are slow to copy.
        """
        from pisces.metrics.mdp.enumeration import enumerate_states

        return enumerate_states(environment, key, max_states, seed, restore)

    @classmethod
    def enumerate_random(
        cls,
        environment: Any,
        samples: int,
        key: Callable[[Any], Hashable] | None = None,
        *,
        max_states: int = 10_000,
        seed: int | None = 0,
        restore: Callable[[Any, Any], Any] | None = None,
    ) -> SampledMDP:
        """Estimates the MDP of a random Gymnasium environment by search, sampling every action in every state found.

        As `enumerate`, but each action is taken `samples` times with new random numbers (`np_random`), and the result
        keeps the counts, as that of `from_samples` does. Outcomes that no sample shows are missing.
        """
        from pisces.metrics.mdp.enumeration import sample_states

        return sample_states(environment, samples, key, max_states, seed, restore)

    @classmethod
    def from_samples(
        cls,
        states: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        next_states: ArrayLike,
        *,
        shape: tuple[int, int],
        terminated: ArrayLike | None = None,
        smoothing: float = 0.0,
        unseen: Literal["error", "self-loop"] = "error",
        reward_range: tuple[float, float] | None = None,
    ) -> EstimatedMDP:
        """Estimates an MDP from sampled transitions by counting; see `EstimatedMDP` for what it keeps.

        P(s' | s, a) = (count(s, a, s') + smoothing) / (count(s, a) + smoothing * S); rewards are means.

        Args:
            states: integers [T].
            actions: integers [T].
            rewards: numbers [T].
            next_states: integers [T].
            shape: (number of states, number of actions).
            terminated: whether each transition ended its episode, booleans [T]; None for never. A state that is
                entered only in this way and has no samples becomes absorbing with reward 0; into any other state, an
                ending transition is sent to one extra terminal state, the last.
            smoothing: count added to every next state; >= 0.
            unseen: what to do about states and actions without samples if `smoothing` is 0: "error", or "self-loop",
                which lets them lead to the same state with reward 0. In either case they are marked in
                `EstimatedMDP.unseen`, optimal policies avoid them, and the sampling error counts them as unknown.
            reward_range: smallest and largest reward that can occur, for confidence bounds; None for the sampled ones.
        """
        from pisces.metrics.mdp.estimation import EstimatedMDP, Samples

        samples = Samples(states, actions, rewards, next_states, terminated, shape)
        return EstimatedMDP.from_counts(samples, smoothing, unseen, reward_range)


def check_mdp(name: str, mdp: Any) -> FiniteMDP:
    """Returns an MDP, or raises if it is something else."""
    if not isinstance(mdp, FiniteMDP):
        raise UserError(f"{name} must be a FiniteMDP, got {type(mdp).__name__}; use FiniteMDP(transitions, rewards)")
    return mdp


def check_policy(policy: ArrayLike, mdp: FiniteMDP) -> FloatArray:
    """Returns a policy as float64 [S, A] whose rows are scaled to sum to 1, or raises if it is invalid.

    Integer actions [S] are accepted.
    """
    values = as_array("a policy", policy)
    if values.shape == (mdp.n_states,) and np.issubdtype(values.dtype, np.integer):
        if values.min() < 0 or values.max() >= mdp.n_actions:
            raise UserError(f"expected actions 0 to {mdp.n_actions - 1}, got {values.min()} to {values.max()}")
        return np.asarray(np.eye(mdp.n_actions)[values], dtype=np.float64)
    if values.shape != (mdp.n_states, mdp.n_actions):
        raise UserError(
            f"expected a policy of shape [{mdp.n_states}, {mdp.n_actions}] or integer actions [{mdp.n_states}], "
            f"got {values.dtype} {list(values.shape)}"
        )
    check_probabilities("action probabilities", values)
    weights = values.astype(np.float64)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def reward_rounding(mdp_x: FiniteMDP, mdp_y: FiniteMDP) -> float:
    """Returns the largest rounding error in the difference of two expected rewards under policies."""
    return sum(2.0**-52 * (mdp.n_actions + 2) * float(np.abs(mdp.rewards).max()) for mdp in (mdp_x, mdp_y))


def sparse_from_file(arrays: dict[str, NDArray[Any]], names: tuple[str, str, str], path: Any) -> scipy.sparse.csr_array:
    """Builds the sparse matrix [S * A, S] whose parts have the given names in a file."""
    try:
        states, actions = (int(size) for size in arrays["shape"])
        parts = tuple(arrays[name] for name in names)
        rows = scipy.sparse.csr_array(parts, shape=(states * actions, states))
        rows.check_format(full_check=True)
    except (ValueError, TypeError, IndexError, OverflowError, MemoryError) as error:
        raise UserError(f"expected consistent sparse arrays in {path}, got: {error}") from None
    return rows
