"""Compares an agent's embedding with behavioral similarity, for each unseen environment."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.errors import UserError
from pisces.metrics.alignment import TOLERANCE, cosine_distance
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
    """Share of states to which no training state is as near as the threshold: no behavior to transfer."""
    transfer_bound: float | None
    """Theorem 1's bound from the first state, for discrete actions; None for continuous ones."""
    invariance: float | None
    """Share of states whose neighbor in the embedding is the same after augmentation; None without one."""


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

    def text(self) -> str:
        """The diagnosis as a table, and a warning if states have no match."""
        header = ("environment", "states", "aligned", "regret", "unmatched", "bound", "invariant")
        rows = [header, *(_row(one) for one in self.environments)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        lines.append(
            f"{self.alignment:.0%} of unseen states are nearest to a training state with the most similar behavior."
        )
        if self.unmatched_share:
            lines.append(
                f"Warning: {self.unmatched_share:.0%} of unseen states have no behavioral match (nearest training "
                f"state further than {self.threshold:g}); no embedding can tell the agent what to do there."
            )
        return "\n".join(lines)

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
    """
    counts = [check_trajectories(name, given) for name, given in (("training", training), ("unseen", unseen))]
    if 0 in counts:
        raise UserError(f"expected training and unseen trajectories, got {counts[0]} and {counts[1]}")
    _check_functions(embed, augment, threshold)
    labels = [str(index) for index in range(len(unseen))] if names is None else list(names)
    if len(labels) != len(unseen):
        raise UserError(f"expected {len(unseen)} names, got {len(labels)}")
    known = np.concatenate([_embedded(embed, trajectory.observations, len(trajectory)) for trajectory in training])
    entries = []
    for name, trajectory in zip(labels, unseen, strict=True):
        metric = np.concatenate([trajectory_metric(x, trajectory, discount, cost) for x in training])
        neighbors = _neighbors(known, _embedded(embed, trajectory.observations, len(trajectory)))
        invariance = None
        if augment is not None:
            moved = _neighbors(known, _embedded(embed, augment(trajectory.observations), len(trajectory)))
            invariance = float((moved == neighbors).mean())
        # Distances of truncated episodes are lower bounds, which bound nothing.
        whole = all(one.terminated for one in (*training, trajectory))
        bound = float(transfer_bound(metric, discount)[0]) if whole and _is_discrete(trajectory, cost) else None
        entries.append(_entry(name, metric, neighbors, threshold, bound, invariance))
    return Diagnosis(tuple(entries), threshold)


def _check_functions(embed: Any, augment: Any, threshold: Any) -> None:
    for name, function in (("embed", embed), ("augment", augment)):
        if not (callable(function) or (name == "augment" and function is None)):
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


def _embedded(embed: Embed, observations: NDArray[Any], states: int) -> NDArray[Any]:
    embeddings = as_reals("embeddings", embed(observations))
    if embeddings.ndim != 2 or len(embeddings) != states:
        raise UserError(f"expected embeddings [{states}, k] of as many observations, got {embeddings.shape}")
    return embeddings


def _neighbors(known: NDArray[Any], embeddings: NDArray[Any]) -> NDArray[np.int64]:
    """The nearest training state to each embedding, [m]."""
    return np.asarray(cosine_distance(known, embeddings).argmin(axis=0), dtype=np.int64)


def _is_discrete(trajectory: Trajectory, cost: TrajectoryCost) -> bool:
    """Whether the metric is built on total variation, which Theorem 1 asks for."""
    actions = trajectory.actions
    return cost is behavior_cost and (trajectory.policies is not None or (actions is not None and is_discrete(actions)))


def _row(one: EnvironmentDiagnosis) -> tuple[str, ...]:
    bound = "-" if one.transfer_bound is None else f"{one.transfer_bound:.3g}"
    invariance = "-" if one.invariance is None else f"{one.invariance:.0%}"
    shares = (f"{one.alignment:.0%}", f"{one.regret:.3g}", f"{one.unmatched_share:.0%}")
    return (one.name, str(one.states), *shares, bound, invariance)
