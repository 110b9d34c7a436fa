"""How well the distances of an embedding agree with an exact metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pisces.errors import UserError, unknown_name
from pisces.metrics.alignment import TOLERANCE, cosine_distance
from pisces.metrics.exact.problem import MetricResult
from pisces.metrics.mdp.enumeration import EnumeratedMDP
from pisces.metrics.mdp.finite_mdp import FiniteMDP
from pisces.validation import as_reals, check_finite

FloatArray = NDArray[np.float64]
Distance = Callable[[FloatArray, FloatArray], ArrayLike]
"""Maps embeddings [n, k] and [m, k] to distances [n, m]."""
Metric = Callable[[FiniteMDP, FiniteMDP], MetricResult]
"""Computes the exact metric between the states of two MDPs."""


def _minkowski(x: FloatArray, y: FloatArray, norm: float) -> FloatArray:
    from scipy.spatial.distance import cdist  # slow to import, and rarely needed

    return np.asarray(cdist(x, y, "minkowski", p=norm))


DISTANCES: Mapping[str, Distance] = {
    "cosine": cosine_distance,
    "euclidean": partial(_minkowski, norm=2.0),
    "l1": partial(_minkowski, norm=1.0),
}


@dataclass(frozen=True)
class Agreement:
    """Agreement of learned distances with a metric, of n states with those that they are compared with."""

    states: int
    """Number of states, n."""
    rank_correlation: float
    """Spearman's correlation of both distances over all pairs, in [-1, 1]; 0 if one of them is constant."""
    neighbor_agreement: float
    """Share of states whose nearest one by the learned distance is a nearest one by the metric, up to 1e-6."""
    regret: float
    """Mean of how much further, by the metric, the nearest one by the learned distance is than the nearest."""
    distortion: float
    """Smallest relative error over all scales c: min_c |c d - metric| / |metric| (Euclidean norms over all pairs), in
    [0, 1]; 0 if both are proportional, and if the metric is zero."""

    def as_dict(self) -> dict[str, float]:
        """Returns the fields by name."""
        return dict(self.__dict__)


def distance_agreement(distance: ArrayLike, metric: ArrayLike, *, among: bool = False) -> Agreement:
    """Compares learned distances with a metric.

    Example:
        >>> distance_agreement([[0.0, 2.0], [4.0, 0.0]], [[0.0, 1.0], [2.0, 0.0]])
        Agreement(states=2, rank_correlation=1.0, neighbor_agreement=1.0, regret=0.0, distortion=0.0)

    Args:
        distance: learned distances, [n, m]: the rows are the states to judge, the columns those known.
        metric: the metric, [n, m].
        among: whether rows and columns are the same states, so that the diagonal is left out.
    """
    learned, exact = as_reals("distance", distance), as_reals("metric", metric)
    if learned.ndim != 2 or learned.shape != exact.shape or 0 in learned.shape:
        raise UserError(f"expected two matrices of one shape [n, m], got {learned.shape} and {exact.shape}")
    for name, values in (("distance", learned), ("metric", exact)):
        check_finite(name, values)
    if among and (len(learned) != learned.shape[1] or len(learned) < 2):
        raise UserError(f"among=True needs a square matrix of at least 2 states, got shape {learned.shape}")
    kept = ~np.eye(len(learned), dtype=bool) if among else np.ones(learned.shape, dtype=bool)
    regrets = _regrets(np.where(kept, learned, np.inf), np.where(kept, exact, np.inf))
    return Agreement(
        len(learned),
        _rank_correlation(learned[kept], exact[kept]),
        float((regrets <= TOLERANCE).mean()),
        float(regrets.mean()),
        _distortion(learned[kept], exact[kept]),
    )


def _regrets(learned: FloatArray, exact: FloatArray) -> FloatArray:
    chosen = exact[np.arange(len(exact)), learned.argmin(axis=1)]
    return np.asarray(chosen - exact.min(axis=1))


def _rank_correlation(learned: FloatArray, exact: FloatArray) -> float:
    if np.ptp(learned) == 0 or np.ptp(exact) == 0:
        return 0.0
    return float(np.corrcoef(_ranks(learned), _ranks(exact))[0, 1])


def _ranks(values: FloatArray) -> FloatArray:
    """Ranks of values [n]; equal ones share the mean of theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((counts.cumsum() - (counts - 1) / 2)[places])


def _distortion(learned: FloatArray, exact: FloatArray) -> float:
    size = float(exact @ exact)
    if size == 0:
        return 0.0
    scale = float(learned @ exact) / max(float(learned @ learned), np.finfo(float).tiny)
    return float(np.sqrt(np.square(scale * learned - exact).sum() / size))


def embedding_agreement(
    embeddings: ArrayLike, metric: ArrayLike, known: ArrayLike | None = None, *, distance: str | Distance = "cosine"
) -> Agreement:
    """Compares the distances of embeddings with a metric; see `distance_agreement`.

    Args:
        embeddings: of the states to judge, [n, k].
        metric: the metric between them and the known states, [n, m].
        known: embeddings of the known states, [m, k]; None compares the states among each other.
        distance: "cosine", "euclidean", "l1", or a function of embeddings [n, k] and [m, k], such as a loss's own.
    """
    rows = as_reals("embeddings", embeddings)
    columns = rows if known is None else as_reals("known", known)
    if rows.ndim != 2 or columns.ndim != 2 or rows.shape[1] != columns.shape[1]:
        raise UserError(f"expected embeddings [n, k] and known [m, k], got {rows.shape} and {columns.shape}")
    if isinstance(distance, str):
        if distance not in DISTANCES:
            raise unknown_name("distance", distance, DISTANCES)
        distance = DISTANCES[distance]
    return distance_agreement(distance(rows, columns), metric, among=known is None)


@dataclass(frozen=True)
class Judgment:
    """The result of `judge_embedding`."""

    training: tuple[Agreement, ...]
    """Of each training MDP, with the states of the other training MDPs."""
    unseen: tuple[Agreement, ...]
    """Of each unseen MDP, with the states of all training MDPs."""

    def summary(self) -> dict[str, float]:
        """Returns the mean of each measure over MDPs, as "training_..." and "unseen_..."."""
        sides = {"training": self.training, "unseen": self.unseen}
        names = [name for name in Agreement.__dataclass_fields__ if name != "states"]
        return {
            f"{side}_{name}": float(np.mean([getattr(one, name) for one in entries]))
            for side, entries in sides.items()
            for name in names
            if entries
        }


def judge_embedding(
    embed: Callable[[NDArray[Any]], ArrayLike],
    training: Sequence[EnumeratedMDP],
    unseen: Sequence[EnumeratedMDP] = (),
    *,
    metric: Metric,
    distance: str | Distance = "cosine",
) -> Judgment:
    """Compares the distances of an encoder with an exact metric between the states of finite MDPs.

    Every training MDP is compared with the other training MDPs, every unseen one with all of them. Terminal states,
    which have no observation, are left out.

    Example:
        The policy similarity metric as judge of an agent that has `embed`::

            levels = [FiniteMDP.enumerate(make_env(level)) for level in range(8)]
            psm = functools.partial(policy_similarity_metric, discount=0.9)
            judge_embedding(agent.embed, levels[:4], levels[4:], metric=psm).summary()

    Args:
        embed: maps observations [n, ...] to embeddings [n, k].
        training: MDPs of the environments that the agent trained in, at least two; see `FiniteMDP.enumerate`.
        unseen: MDPs of other environments.
        metric: a function of two MDPs such as `policy_similarity_metric` with its discount.
        distance: "cosine", "euclidean", "l1", or a function of embeddings [n, k] and [m, k].
    """
    if len(training) < 2:
        raise UserError(f"expected at least 2 training MDPs, got {len(training)}")
    known = [_embedded(embed, mdp) for mdp in training]
    entries = []
    for number, mdp in enumerate([*training, *unseen]):
        others = [k for k in range(len(training)) if k != number]
        metrics = [_observed(metric(mdp, training[k]).distance, mdp, training[k]) for k in others]
        own = known[number] if number < len(training) else _embedded(embed, mdp)
        columns = np.concatenate([known[k] for k in others])
        entries.append(embedding_agreement(own, np.concatenate(metrics, axis=1), columns, distance=distance))
    return Judgment(tuple(entries[: len(training)]), tuple(entries[len(training) :]))


def _embedded(embed: Callable[[NDArray[Any]], ArrayLike], mdp: EnumeratedMDP) -> FloatArray:
    if getattr(mdp, "observations", None) is None:
        raise UserError("expected MDPs with observations; FiniteMDP.enumerate makes them of environments")
    observations = np.stack([one for one in mdp.observations if one is not None])
    embeddings = as_reals("embeddings", embed(observations))
    if embeddings.ndim != 2 or len(embeddings) != len(observations):
        raise UserError(f"expected embeddings [{len(observations)}, k], got {embeddings.shape}")
    return embeddings


def _observed(distance: FloatArray, mdp_x: EnumeratedMDP, mdp_y: EnumeratedMDP) -> FloatArray:
    rows, columns = ([one is not None for one in mdp.observations] for mdp in (mdp_x, mdp_y))
    return np.asarray(distance[np.ix_(rows, columns)])
