"""Compares an agent's embedding with behavioral similarity, for each unseen environment."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.errors import UserError
from pisces.metrics.alignment import TOLERANCE, cosine_distance
from pisces.metrics.embedding.agreement import Agreement, distance_agreement
from pisces.metrics.embedding.failures import (
    Act,
    Comparison,
    FailingState,
    agent_actions,
    expert_actions,
    failing_states,
)
from pisces.metrics.trajectory import (
    TrajectoryCost,
    behavior_cost,
    check_trajectories,
    is_discrete,
    trajectory_metric,
)
from pisces.metrics.transfer import transfer_bound
from pisces.trajectories import Trajectory
from pisces.validation import as_reals

FloatArray = NDArray[np.float64]
Embed = Callable[[NDArray[Any]], NDArray[Any]]
"""Maps observations [n, ...] to embeddings [n, k]."""


@dataclass(frozen=True)
class EnvironmentDiagnosis:
    """Diagnosis of one unseen environment; shares are of the states of its trajectory."""

    name: str
    """The environment's name."""
    states: int
    """Number of states."""
    alignment: float
    """Share of states whose nearest training state in the embedding is a nearest one by the metric, up to 1e-6."""
    regret: float
    """Mean of how much further, by the metric, the neighbor in the embedding is than the nearest state."""
    unmatched_share: float
    """Share of states to which no training state is as near as the threshold."""
    transfer_bound: float | None
    """Theorem 1's bound from the first state, for discrete actions; None for continuous ones."""
    invariance: float | None
    """Share of states whose neighbor in the embedding is the same after augmentation; None without one."""
    agreement: Agreement | None = None
    """How well the embedding's cosine distances to all training states agree with the metric."""
    accuracy: float | None = None
    """Share of states in which the agent's action is the expert's; None without `act`."""
    unmatched_accuracy: float | None = None
    """The same among states without a match; None without `act`, and if all states have one."""
    failures: tuple[FailingState, ...] = ()
    """The states in which the agent's action is not the expert's; empty without `act`."""


@dataclass(frozen=True)
class Diagnosis:
    """The result of `diagnose`."""

    environments: tuple[EnvironmentDiagnosis, ...]
    """One entry per unseen environment."""
    threshold: float
    """The distance above which a state has no behavioral match."""

    @property
    def alignment(self) -> float:
        """Share of all unseen states that are aligned."""
        return self._mean("alignment")

    @property
    def unmatched_share(self) -> float:
        """Share of all unseen states that have no behavioral match."""
        return self._mean("unmatched_share")

    def worst(self, count: int = 5) -> tuple[EnvironmentDiagnosis, ...]:
        """The environments with the largest regret, worst first."""
        return tuple(sorted(self.environments, key=lambda one: -one.regret)[:count])

    @property
    def accuracy(self) -> float | None:
        """Share of all unseen states in which the agent's action is the expert's; None without `act`."""
        return None if self.environments[0].accuracy is None else self._mean("accuracy")

    @property
    def failures(self) -> tuple[tuple[str, FailingState], ...]:
        """All failing states, each with the name of its environment."""
        return tuple((one.name, state) for one in self.environments for state in one.failures)

    def text(self, failures: int = 10) -> str:
        """The diagnosis as a table, and what the numbers say about it.

        Args:
            failures: number of failing states to list at most.
        """
        header = (
            *("environment", "states", "aligned", "regret", "rank corr.", "distortion"),
            *("unmatched", "bound", "invariant", "as expert"),
        )
        rows = [header, *(_row(one) for one in self.environments)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        lines.append(
            f"{self.alignment:.0%} of unseen states are nearest to a training state with the most similar behavior."
        )
        if self.unmatched_share:
            lines.append(self._unmatched_sentence())
        return "\n".join([*lines, *self._failure_lines(failures)])

    def _unmatched_sentence(self) -> str:
        known = ""
        shares = [(one.unmatched_accuracy, one.unmatched_share * one.states) for one in self.environments]
        counted = [(share, weight) for share, weight in shares if share is not None]
        if counted:
            values, weights = zip(*counted, strict=True)
            known = f" The agent acts as the expert in {np.average(values, weights=weights):.0%} of them."
        return (
            f"Warning: {self.unmatched_share:.0%} of unseen states have no behavioral match (nearest training state "
            f"further than {self.threshold:g}): nearest neighbors by this metric do not show what to do there.{known}"
        )

    def _failure_lines(self, count: int) -> list[str]:
        failures = self.failures
        if not failures:
            return []
        following = sum(state.follows_neighbor for _, state in failures)
        lines = [
            f"The agent's action differs from the expert's in {len(failures)} states; in {following} of them it is the "
            "expert's action in the nearest training state of the embedding."
        ]
        lines += [f"  {name}, {state.text()}" for name, state in failures[:count]]
        return lines + ([f"  and {len(failures) - count} more"] if len(failures) > count else [])

    def _mean(self, name: str) -> float:
        weights = [one.states for one in self.environments]
        return float(np.average([getattr(one, name) for one in self.environments], weights=weights))


def diagnose(
    training: Sequence[Trajectory],
    unseen: Sequence[Trajectory],
    embed: Embed,
    *,
    discount: float = 0.99,
    threshold: float = 0.5,
    augment: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
    cost: TrajectoryCost = behavior_cost,
    names: Sequence[str] | None = None,
    act: Act | None = None,
) -> Diagnosis:
    """Compares, for every state of unseen environments, its neighbor in the embedding with its neighbors by PSM.

    Actions or policies of the trajectories should be optimal (an expert's, or those of an agent trained in the same
    environment); with those of the agent itself the metric is the generalized PSM of that agent.

    Example:
        >>> import numpy as np
        >>> x = Trajectory(np.array([[0.0, 1.0], [1.0, 0.0]]), actions=np.array([0, 1]))
        >>> found = diagnose([x], [x], embed=lambda observations: observations)
        >>> found.alignment, found.unmatched_share
        (1.0, 0.0)

    Args:
        training: trajectories of the environments that the agent trained in.
        unseen: one trajectory per unseen environment.
        embed: maps observations [n, ...] to embeddings [n, k]: `callback.embed` of a Stable-Baselines3 model, or
            `embed` of a policy that `pisces.experiments.load` returned.
        discount: of the metric.
        threshold: distance above which a state counts as unmatched.
        augment: maps observations [n, ...] to augmented ones; None leaves the invariance out.
        cost: the cost at one step; the default gives the PSM.
        names: of the unseen environments; None numbers them.
        act: maps observations [n, ...] to the agent's greedy actions, integers [n], which are compared with the
            trajectories' actions; None leaves the failing states out.
    """
    counts = [check_trajectories(name, given) for name, given in (("training", training), ("unseen", unseen))]
    if 0 in counts:
        raise UserError(f"expected training and unseen trajectories, got {counts[0]} and {counts[1]}")
    _check_functions(embed, augment, act, threshold)
    labels = [str(index) for index in range(len(unseen))] if names is None else [str(name) for name in names]
    if len(labels) != len(unseen):
        raise UserError(f"expected {len(unseen)} names, got {len(labels)}")
    known = np.concatenate([_embedded(embed, trajectory.observations, len(trajectory)) for trajectory in training])
    entries = []
    for name, trajectory in zip(labels, unseen, strict=True):
        metric = np.concatenate([trajectory_metric(x, trajectory, discount, cost) for x in training])
        distance = cosine_distance(known, _embedded(embed, trajectory.observations, len(trajectory)))
        neighbors = distance.argmin(axis=0)
        invariance = None
        if augment is not None:
            moved = cosine_distance(known, _embedded(embed, augment(trajectory.observations), len(trajectory)))
            invariance = float((moved.argmin(axis=0) == neighbors).mean())
        # Distances of truncated episodes are lower bounds, which bound nothing.
        whole = all(one.terminated for one in (*training, trajectory))
        bound = float(transfer_bound(metric, discount)[0]) if whole and _is_discrete(trajectory, cost) else None
        entry = _entry(name, metric, neighbors, threshold, bound, invariance)
        entry = replace(entry, agreement=distance_agreement(distance.T, metric.T))
        if act is not None:
            entry = _with_actions(entry, Comparison(training, trajectory, metric, neighbors), act, threshold)
        entries.append(entry)
    return Diagnosis(tuple(entries), threshold)


def _check_functions(embed: Any, augment: Any, act: Any, threshold: Any) -> None:
    for name, function in (("embed", embed), ("augment", augment), ("act", act)):
        if not (callable(function) or (name != "embed" and function is None)):
            raise UserError(f"{name} must be a function of observations [n, ...], got {function!r}")
    if not (isinstance(threshold, numbers.Real) and float(threshold) >= 0):
        raise UserError(f"threshold must be a distance >= 0, got {threshold!r}")


def _entry(
    name: str,
    metric: FloatArray,
    neighbors: NDArray[np.int64],
    threshold: float,
    bound: float | None,
    invariance: float | None,
) -> EnvironmentDiagnosis:
    nearest = metric.min(axis=0)
    regrets = metric[neighbors, np.arange(metric.shape[1])] - nearest
    return EnvironmentDiagnosis(
        name,
        metric.shape[1],
        float((regrets <= TOLERANCE).mean()),
        float(regrets.mean()),
        float((nearest > threshold).mean()),
        bound,
        invariance,
    )


def _with_actions(
    entry: EnvironmentDiagnosis, comparison: Comparison, act: Act, threshold: float
) -> EnvironmentDiagnosis:
    """Adds what the agent does in the states of an environment."""
    chosen = agent_actions(act, comparison.trajectory)
    right = chosen == expert_actions(comparison.trajectory)
    unmatched = comparison.metric.min(axis=0) > threshold
    return replace(
        entry,
        accuracy=float(right.mean()),
        unmatched_accuracy=float(right[unmatched].mean()) if unmatched.any() else None,
        failures=failing_states(comparison, chosen),
    )


def _embedded(embed: Embed, observations: NDArray[Any], states: int) -> NDArray[Any]:
    embeddings = as_reals("embeddings", embed(observations))
    if embeddings.ndim != 2 or len(embeddings) != states:
        raise UserError(f"expected embeddings [{states}, k] of as many observations, got {embeddings.shape}")
    return embeddings


def _is_discrete(trajectory: Trajectory, cost: TrajectoryCost) -> bool:
    """Whether the metric is built on total variation, which Theorem 1 asks for."""
    actions = trajectory.actions
    return cost is behavior_cost and (trajectory.policies is not None or (actions is not None and is_discrete(actions)))


def _row(one: EnvironmentDiagnosis) -> tuple[str, ...]:
    def share(value: float | None) -> str:
        return "-" if value is None else f"{value:.0%}"

    bound = "-" if one.transfer_bound is None else f"{one.transfer_bound:.3g}"
    ranks, distortion = "-", "-"
    if one.agreement is not None:
        ranks, distortion = f"{one.agreement.rank_correlation:.2f}", f"{one.agreement.distortion:.2f}"
    first = (one.name, str(one.states), share(one.alignment), f"{one.regret:.3g}", ranks, distortion)
    return (*first, share(one.unmatched_share), bound, share(one.invariance), share(one.accuracy))
