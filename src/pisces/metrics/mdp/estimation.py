"""MDPs estimated from samples, which know how many samples each number rests on."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from pisces.errors import UserError, unknown_name
from pisces.metrics.mdp.finite_mdp import FiniteMDP, sparse_from_file
from pisces.validation import as_array, as_integers, as_reals, check_finite, check_memory

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
COUNT_KEYS = ("count", "count_next_state", "count_pointer", "reward_variance", "reward_range", "terminal", "smoothing")
UNSEEN = ("error", "self-loop")


@dataclass(frozen=True, eq=False)
class Samples:
    """Sampled transitions."""

    states: Any
    """Integers [T]."""
    actions: Any
    """Integers [T]."""
    rewards: Any
    """Numbers [T]."""
    next_states: Any
    """Integers [T]."""
    terminated: Any
    """Whether each transition ended its episode, booleans [T]; None for never."""
    shape: tuple[int, int]
    """The number of states and of actions."""

    _bounds: ClassVar = (("states", 0), ("actions", 1), ("next_states", 0))

    def __post_init__(self) -> None:
        sizes = self.shape if isinstance(self.shape, tuple | list) else ()
        if len(sizes) != 2 or not all(isinstance(size, numbers.Integral) and size >= 1 for size in sizes):
            raise UserError(f"shape must be (number of states, number of actions), both >= 1, got {self.shape!r}")
        arrays: dict[str, NDArray[Any]] = {
            name: as_integers(name, getattr(self, name), "[T]") for name, _ in self._bounds
        }
        arrays["rewards"] = as_reals("rewards", self.rewards)
        ended = (
            np.zeros(arrays["states"].shape, bool)
            if self.terminated is None
            else as_array("terminated", self.terminated)
        )
        if ended.dtype.kind != "b":
            raise UserError(f"terminated must be booleans [T], got {ended.dtype} {list(ended.shape)}")
        arrays["terminated"] = ended
        lengths = {name: list(array.shape) for name, array in arrays.items()}
        if len({tuple(shape) for shape in lengths.values()}) != 1 or arrays["states"].ndim != 1:
            raise UserError(f"samples must be arrays [T] of one length, got {lengths}")
        check_finite("rewards", arrays["rewards"])
        for name, axis in self._bounds:
            values = arrays[name]
            if values.size and not (values.min() >= 0 and values.max() < sizes[axis]):
                raise UserError(f"{name} must be from 0 to {sizes[axis] - 1}, got {values.min()} to {values.max()}")
        for name, array in arrays.items():
            object.__setattr__(self, name, array)


@dataclass(frozen=True, eq=False, kw_only=True)
class EstimatedMDP(FiniteMDP):
    """A finite MDP estimated from samples, with their counts; made by `FiniteMDP.from_samples`.

    Optimal policies use only actions that have samples, in states where any has. The metrics report a `sampling` error
    beside the solver's.
    """

    next_counts: Any
    """Number of samples of each transition, CSR [S * A, S]; none in terminal states."""

    reward_variances: FloatArray
    """Variance of the sampled rewards, [S, A]."""

    reward_range: tuple[float, float]
    """Smallest and largest reward that can occur."""

    terminal: NDArray[np.bool_]
    """Whether a state is terminal: entered by transitions that ended an episode, [S]."""

    smoothing: float = 0.0
    """The count that was added to every next state."""

    @property
    def counts(self) -> IntArray:
        """Number of samples of each state and action, [S, A]."""
        totals = np.asarray(self.next_counts.sum(axis=1), dtype=np.int64)
        return totals.reshape(self.n_states, self.n_actions)

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """Whether a state and action has no samples, [S, A]; terminal states need none."""
        return np.asarray((self.counts == 0) & ~self.terminal[:, None])

    @property
    def available(self) -> NDArray[np.bool_]:
        """Whether a plan may use an action: it has samples, or no action of the state has, [S, A]."""
        unseen = self.unseen
        return np.asarray(~unseen | unseen.all(axis=1, keepdims=True))

    def transition_radii(self, confidence: float) -> FloatArray:
        """Bounds on the total variation between estimated and true next-state distributions, [S, A].

        All hold at once with at least the given probability, for any rule by which the samples were gathered: for each
        number of samples n, the smaller of two bounds (Weissman et al. 2003, and McDiarmid's inequality with the mean
        of the distance) is taken at a level that adds up over n, states and actions.
        """
        n, size = np.maximum(self.counts, 1), self.n_states
        level = np.log(self.counts.size * n * (n + 1) / (1 - confidence))
        weissman = np.sqrt((size * np.log(2) + level) / (2 * n))
        mcdiarmid = 0.5 * np.sqrt((size - 1) / n) + np.sqrt(level / (2 * n))
        radii = np.minimum(weissman, mcdiarmid) + self._bias() if size > 1 else np.zeros(n.shape)
        return np.where(self.terminal[:, None], 0.0, np.where(self.unseen, 1.0, np.minimum(radii, 1.0)))

    def reward_radii(self, confidence: float) -> FloatArray:
        """Bounds on the error of the expected rewards, [S, A], that all hold at once (Hoeffding's inequality).

        Rewards without samples are taken as 0, which may lie outside the range.
        """
        low, high = self.reward_range
        n, width = np.maximum(self.counts, 1), high - low
        level = np.log(2 * self.counts.size * n * (n + 1) / (1 - confidence))
        radii = width * np.minimum(np.sqrt(level / (2 * n)), 1.0)
        radii = np.where(self.unseen, max(abs(low), abs(high)), radii)
        return np.asarray(np.where(self.terminal[:, None], 0.0, radii))

    def _bias(self) -> FloatArray:
        # Total variation between the smoothed rows and the shares of the counts.
        weights = scipy.sparse.diags_array(1.0 / np.maximum(self.counts.ravel(), 1))
        gap = abs(self.transitions - weights @ self.next_counts)
        return 0.5 * np.asarray(gap.sum(axis=1)).reshape(self.n_states, self.n_actions)

    def _arrays(self) -> dict[str, Any]:
        counts = self.next_counts
        parts = (counts.data, counts.indices.astype(np.int64), counts.indptr.astype(np.int64))
        kept = (*parts, self.reward_variances, np.array(self.reward_range), self.terminal, np.float64(self.smoothing))
        return super()._arrays() | dict(zip(COUNT_KEYS, kept, strict=True))

    @classmethod
    def from_arrays(cls, rows: scipy.sparse.csr_array, arrays: dict[str, NDArray[Any]], path: Any) -> EstimatedMDP:
        """Builds the MDP from the arrays of a file."""
        counts = sparse_from_file(arrays, ("count", "count_next_state", "count_pointer"), path)
        _check_file(arrays, counts, path)
        low, high = arrays["reward_range"]
        return cls(
            rows,
            arrays["rewards"],
            next_counts=counts,
            reward_variances=arrays["reward_variance"],
            reward_range=(float(low), float(high)),
            terminal=arrays["terminal"],
            smoothing=float(arrays["smoothing"]),
        )

    @classmethod
    def from_counts(
        cls, samples: Samples, smoothing: float, unseen: str, reward_range: tuple[float, float] | None
    ) -> EstimatedMDP:
        """Estimates the MDP; see `FiniteMDP.from_samples`."""
        if not (isinstance(smoothing, numbers.Real) and 0 <= smoothing < np.inf):
            raise UserError(f"smoothing must be a number >= 0, got {smoothing!r}")
        if unseen not in UNSEEN:
            raise unknown_name("unseen", unseen, UNSEEN)
        span = _reward_range(samples.rewards, reward_range)
        terminal, targets = _terminal_states(samples)
        states, actions = len(terminal), samples.shape[1]
        row = samples.states * actions + samples.actions
        size = (states * actions, states)
        counts = scipy.sparse.coo_array((np.ones(len(row)), (row, targets)), shape=size).tocsr()
        seen = np.asarray(counts.sum(axis=1)).ravel()
        missing = np.flatnonzero((seen == 0) & ~np.repeat(terminal, actions))
        if missing.size and not smoothing and unseen == "error":
            raise UserError(_missing_message(missing, seen.size, actions))
        weights, means = np.maximum(seen, 1), _totals(row, samples.rewards, seen.size)
        means = means / weights
        variances = _totals(row, (samples.rewards - means[row]) ** 2, seen.size) / weights
        return cls(
            smoothed_shares(counts, terminal, float(smoothing)),
            means.reshape(states, actions),
            next_counts=counts,
            reward_variances=variances.reshape(states, actions),
            reward_range=span,
            terminal=terminal,
            smoothing=float(smoothing),
        )


def _check_file(arrays: dict[str, NDArray[Any]], counts: scipy.sparse.csr_array, path: Any) -> None:
    """Raises unless the arrays of a file are those of an estimated MDP."""
    states = counts.shape[1]
    shapes = {
        "reward_variance": (states, counts.shape[0] // states),
        "reward_range": (2,),
        "terminal": (states,),
        "smoothing": (),
    }
    for name, shape in shapes.items():
        array = arrays[name]
        if array.shape != shape or array.dtype.kind not in ("b" if name == "terminal" else "iuf"):
            raise UserError(f"expected {name} of shape {list(shape)} in {path}, got {array.dtype} {list(array.shape)}")
        check_finite(f"{name} in {path}", array)
    low, high = arrays["reward_range"]
    parts = (counts.data, arrays["reward_variance"], arrays["smoothing"])
    if low > high or not all(np.isfinite(part).all() and (part >= 0).all() for part in parts):
        raise UserError(
            f"{path} is damaged: counts, reward_variance and smoothing must be >= 0, and reward_range sorted"
        )


def _totals(row: IntArray, weights: FloatArray, size: int) -> FloatArray:
    return np.bincount(row, weights=weights, minlength=size).astype(np.float64)


def _reward_range(rewards: FloatArray, given: ArrayLike | None) -> tuple[float, float]:
    if given is None:
        return (float(rewards.min()), float(rewards.max())) if rewards.size else (0.0, 0.0)
    values = as_reals("reward_range", given)
    if values.shape != (2,) or not (np.isfinite(values).all() and values[0] <= values[1]):
        raise UserError(f"reward_range must be (smallest, largest reward), got {given!r}")
    if rewards.size and (rewards.min() < values[0] or rewards.max() > values[1]):
        raise UserError(f"rewards must lie in reward_range {given!r}, got {rewards.min()} to {rewards.max()}")
    return float(values[0]), float(values[1])


def _terminal_states(samples: Samples) -> tuple[NDArray[np.bool_], IntArray]:
    """Returns which states are terminal, [S] or [S + 1] if one must be added, and the next states with it."""
    states, ended = samples.shape[0], samples.terminated
    final, occupied = np.zeros(states, bool), np.zeros(states, bool)
    final[samples.next_states[ended]] = True
    occupied[samples.next_states[~ended]] = occupied[samples.states] = True
    targets = np.where(ended & occupied[samples.next_states], states, samples.next_states)
    extra = [True] if (final & occupied).any() else []
    return np.append(final & ~occupied, extra).astype(bool), targets


def _missing_message(missing: IntArray, size: int, actions: int) -> str:
    state, action = divmod(int(missing[0]), actions)
    return (
        f"{missing.size} of {size} pairs of state and action have no samples (the first: state {state}, action "
        f'{action}); pass unseen="self-loop" to keep them, marked in `unseen`, or smoothing > 0'
    )


def smoothed_shares(
    counts: scipy.sparse.csr_array, terminal: NDArray[np.bool_], smoothing: float
) -> scipy.sparse.csr_array:
    """Returns next-state probabilities [S * A, S]: shares of the counts, and self-loops where there are none."""
    seen = np.asarray(counts.sum(axis=1)).ravel()
    actions = len(seen) // len(terminal)
    ends = np.repeat(terminal, actions)
    if smoothing:
        check_memory("the smoothed transitions", 4 * 8 * float(np.prod(counts.shape)))
        dense = counts.toarray() + smoothing
        shares = scipy.sparse.csr_array(np.where(ends[:, None], 0.0, dense / dense.sum(axis=1, keepdims=True)))
    else:
        shares = scipy.sparse.diags_array(1.0 / np.maximum(seen, 1)) @ counts
    staying = np.flatnonzero(ends | (seen + smoothing == 0))
    loops = scipy.sparse.coo_array((np.ones(len(staying)), (staying, staying // actions)), shape=counts.shape)
    return scipy.sparse.csr_array(shares + loops)
