"""Bootstrap intervals of distances between MDPs that were estimated from samples."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pisces.errors import UserError
from pisces.metrics.exact.problem import MetricResult
from pisces.metrics.mdp.estimation import EstimatedMDP, smoothed_shares
from pisces.metrics.mdp.finite_mdp import FiniteMDP, check_mdp
from pisces.validation import as_generator

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BootstrapResult:
    """Distances of estimated MDPs with bootstrap errors."""

    result: MetricResult
    """The distances of the estimated MDPs."""

    confidence: float
    """The approximate probability with which an error holds."""

    error: FloatArray
    """Error of each distance alone, in the shape of `result.distance`."""

    largest_error: float
    """Error of all distances at once."""


def bootstrap_metric(
    metric: Callable[..., MetricResult],
    mdp_x: FiniteMDP,
    mdp_y: FiniteMDP | None = None,
    *,
    confidence: float = 0.95,
    resamples: int = 200,
    seed: int | np.random.Generator = 0,
    **arguments: Any,
) -> BootstrapResult:
    """Estimates by resampling how far distances of estimated MDPs are from those of the true ones.

    Next states are drawn anew from the sampled ones, as many for each state and action as there were, mean rewards from
    a normal distribution with the variance of the sampled ones, and the metric is computed again. The errors are
    quantiles of the differences to the distances found. They are approximate, and too small where a state and action
    has few samples or none: the rigorous bound is `MetricResult.sampling`. Policies are kept as they are.

    Args:
        metric: a metric of this module, e.g. `policy_similarity_metric`.
        mdp_x: the first MDP.
        mdp_y: the second; None for `mdp_x`. At least one must come from `FiniteMDP.from_samples`.
        confidence: in (0, 1).
        resamples: number of times that the metric is computed again.
        seed: seed or generator.
        arguments: further arguments of the metric, e.g. `discount`.
    """
    if not callable(metric):
        raise UserError(f"metric must be a function, e.g. policy_similarity_metric, got {metric!r}")
    check_resampling(confidence, resamples)
    mdps = (check_mdp("mdp_x", mdp_x), None if mdp_y is None else check_mdp("mdp_y", mdp_y))
    if not any(isinstance(mdp, EstimatedMDP) for mdp in mdps):
        raise UserError("bootstrap_metric needs an MDP from FiniteMDP.from_samples, which keeps its counts")
    rng = as_generator(seed)
    result = metric(*mdps, **arguments)
    if result.definition is not None and result.definition.policies is not None:
        arguments |= dict(zip(("policy_x", "policy_y"), result.definition.policies, strict=True))
    moved = []
    for _ in range(resamples):
        x = _resampled(mdps[0], rng)
        y = x if mdps[0] is mdps[1] else None if mdps[1] is None else _resampled(mdps[1], rng)
        moved.append(np.abs(metric(x, y, **arguments).distance - result.distance))
    largest = [float(np.nanmax(one, initial=0.0)) for one in moved]
    error = np.quantile(np.stack(moved), confidence, axis=0)
    return BootstrapResult(result, float(confidence), error, float(np.quantile(largest, confidence)))


def check_resampling(confidence: float, resamples: int) -> None:
    """Raises if the arguments of a bootstrap are not valid."""
    if not (isinstance(confidence, numbers.Real) and 0 < confidence < 1):
        raise UserError(f"confidence must be in (0, 1), got {confidence!r}")
    if not (isinstance(resamples, numbers.Integral) and resamples >= 1):
        raise UserError(f"resamples must be an integer >= 1, got {resamples!r}")


def _resampled(mdp: FiniteMDP, rng: np.random.Generator) -> FiniteMDP:
    if not isinstance(mdp, EstimatedMDP):
        return mdp
    counts = mdp.next_counts
    drawn = np.concatenate(
        [
            np.zeros(0),
            *(
                rng.multinomial(int(part.sum()), part / part.sum())
                for part in np.split(counts.data, counts.indptr[1:-1])
                if part.size
            ),
        ]
    )
    resampled = scipy.sparse.csr_array((drawn.astype(float), counts.indices, counts.indptr), shape=counts.shape)
    noise = rng.normal(size=mdp.rewards.shape) * np.sqrt(mdp.reward_variances / np.maximum(mdp.counts, 1))
    return FiniteMDP(smoothed_shares(resampled, mdp.terminal, mdp.smoothing), mdp.rewards + noise)
