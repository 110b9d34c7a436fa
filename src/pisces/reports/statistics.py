"""Statistics of runs, on scores that carry their labels: no bare axes to mix up.

`Scores` holds the runs of one method by task. Spread and intervals are always those between runs of the same task;
tasks are averaged or pooled only by functions that say so, and every task then weighs the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from pisces.errors import UserError
from pisces.validation import as_generator, check_finite

FloatArray = NDArray[np.float64]
RESAMPLES = 2000
TRIM = 0.25
"""The interquartile mean leaves out this share of the runs at either end."""


@dataclass(frozen=True)
class Scores:
    """The scores of one method, one per run, by task."""

    runs: Mapping[str, tuple[float, ...]]
    """The runs' scores under the name of their task; tasks may have different numbers of runs."""

    def __post_init__(self) -> None:
        if not self.runs:
            raise UserError("expected scores of at least one task, got none")
        frozen: dict[str, tuple[float, ...]] = {}
        for task, values in self.runs.items():
            runs = np.asarray(values)
            if runs.ndim != 1 or not runs.size:
                raise UserError(f"expected at least one run of every task, as a list, got {values!r} for {task!r}")
            check_finite(f"scores of {task!r}", runs)
            frozen[task] = tuple(runs.astype(np.float64).tolist())
        object.__setattr__(self, "runs", MappingProxyType(frozen))

    def __reduce__(self) -> tuple[Any, ...]:
        return Scores, (dict(self.runs),)  # a read-only view can't be pickled

    def __hash__(self) -> int:
        return hash(tuple(self.runs.items()))

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks' names."""
        return tuple(self.runs)

    def arrays(self) -> list[FloatArray]:
        """The runs of each task, in the order of `tasks`."""
        return [np.asarray(values, dtype=np.float64) for values in self.runs.values()]


@dataclass(frozen=True)
class Interval:
    """A confidence interval."""

    low: float
    """Lower end."""
    high: float
    """Upper end."""
    confidence: float
    """How often intervals made like this hold the truth."""


@dataclass(frozen=True)
class Summary:
    """What the runs of one task say."""

    count: int
    """Number of runs."""
    mean: float
    """Mean."""
    deviation: float
    """Standard deviation between runs, with n - 1 below the sum of squares; NaN for a single run."""
    error: float
    """Standard error of the mean: deviation / sqrt(n)."""
    median: float
    """Median."""
    interquartile_mean: float
    """Mean of the middle half of the runs."""


def summarize(values: Sequence[float]) -> Summary:
    """Summarizes the runs of one task."""
    runs = _runs(values)
    deviation = float(np.std(runs, ddof=1)) if len(runs) > 1 else float("nan")
    return Summary(
        len(runs),
        float(np.mean(runs)),
        deviation,
        deviation / float(np.sqrt(len(runs))),
        float(np.median(runs)),
        _middle_mean(runs),
    )


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Confidence interval (t) of the mean over the runs of one task, 95 % by default; None for a single run.

    It is wide for few runs, as it must be; a bootstrap of few runs is too narrow.
    """
    _check_confidence(confidence)
    summary = summarize(values)
    if summary.count < 2:
        return None
    reach = t_quantile(confidence, summary.count - 1) * summary.error
    return Interval(summary.mean - reach, summary.mean + reach, confidence)


def t_quantile(confidence: float, degrees: int) -> float:
    """Returns the quantile of Student's t distribution at the upper end of a two-sided interval."""
    return float(special.stdtrit(degrees, (1 + confidence) / 2))


def mean(scores: Scores) -> float:
    """Mean over tasks of the mean over each task's runs: every task weighs the same."""
    return float(np.mean([runs.mean() for runs in scores.arrays()]))


def median(scores: Scores) -> float:
    """Median of the runs of all tasks: every task weighs the same, however many runs it has."""
    return float(np.median(_balanced(scores)))


def interquartile_mean(scores: Scores) -> float:
    """Mean of the middle half of the runs of all tasks: every task weighs the same, however many runs it has."""
    return _middle_mean(_balanced(scores))


def _balanced(scores: Scores) -> FloatArray:
    """The runs of all tasks, repeated so that each task has equally many."""
    arrays = scores.arrays()
    count = math.lcm(*map(len, arrays))
    return np.concatenate([np.repeat(runs, count // len(runs)) for runs in arrays])


def bootstrap_interval(
    scores: Scores,
    statistic: Callable[[Scores], float],
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Percentile bootstrap interval, stratified: the runs of each task are drawn anew from that task's runs.

    Args:
        scores: at least two runs of every task.
        statistic: e.g. `interquartile_mean`.
        confidence: in (0, 1).
        resamples: how many times to draw.
        seed: decides the draws.
    """

    def value(*arrays: FloatArray) -> float:
        return statistic(_relabel(scores, arrays))

    return _bootstrap(scores.arrays(), value, confidence, resamples, seed)


def probability_of_improvement(x: Scores, y: Scores) -> float:
    """How often a run of x beats a run of y on the same task, averaged over tasks; a draw counts one half.

    P(X > Y) = U / (n m) with Mann and Whitney's U.
    """
    _check_same_tasks(x, y)
    return float(np.mean([_wins(np.array(x.runs[task]), np.array(y.runs[task])) for task in x.tasks]))


def improvement_interval(
    x: Scores, y: Scores, confidence: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """Stratified bootstrap interval of `probability_of_improvement`."""
    _check_same_tasks(x, y)
    count = len(x.tasks)

    def value(*arrays: FloatArray) -> float:
        return float(np.mean([_wins(a, b) for a, b in zip(arrays[:count], arrays[count:], strict=True)]))

    other = [np.array(y.runs[task]) for task in x.tasks]
    return _bootstrap([*x.arrays(), *other], value, confidence, resamples, seed)


@dataclass(frozen=True, eq=False)
class Profile:
    """A performance profile: which share of the runs scores above each threshold."""

    thresholds: FloatArray
    """Scores, [k]."""
    share: FloatArray
    """Share of runs above them, every task weighing the same, [k]."""
    low: FloatArray
    """Lower ends of the pointwise intervals, [k]."""
    high: FloatArray
    """Upper ends, [k]."""


def performance_profile(
    scores: Scores, thresholds: ArrayLike, confidence: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Profile:
    """Shares of runs above thresholds, with pointwise stratified bootstrap intervals."""
    levels = np.asarray(thresholds, dtype=np.float64)
    if levels.ndim != 1 or not levels.size or np.isnan(levels).any():
        raise UserError(f"expected thresholds [k] that are numbers, got {levels}")
    _check_bootstrap(scores.arrays(), confidence, resamples)
    rng = as_generator(seed)
    above = [runs[:, None] > levels for runs in scores.arrays()]
    draws = np.zeros((resamples, len(levels)))
    for flags in above:
        # Resampling flags with replacement is the same as counting them by a binomial draw.
        draws += rng.binomial(len(flags), flags.mean(axis=0), (resamples, len(levels))) / len(flags)
    tail = 50 * (1 - confidence)
    low, high = np.percentile(draws / len(above), [tail, 100 - tail], axis=0)
    return Profile(levels, np.mean([flags.mean(axis=0) for flags in above], axis=0), low, high)


def _bootstrap(
    arrays: Sequence[FloatArray], value: Callable[..., float], confidence: float, resamples: int, seed: int
) -> Interval:
    from scipy import stats  # takes a second, and is needed here alone

    _check_bootstrap(arrays, confidence, resamples)
    result: Any = stats.bootstrap(
        tuple(arrays),
        value,
        n_resamples=resamples,
        confidence_level=confidence,
        method="percentile",
        vectorized=False,
        rng=as_generator(seed),
    )
    ends = result.confidence_interval
    return Interval(float(ends.low), float(ends.high), confidence)


def _wins(x: FloatArray, y: FloatArray) -> float:
    # Mann and Whitney's U / (n m); a tie counts from one side only.
    ordered = np.sort(y)
    u = np.searchsorted(ordered, x, "left").sum() + np.searchsorted(ordered, x, "right").sum()
    return float(u) / (2 * len(x) * len(y))


def _middle_mean(runs: FloatArray) -> float:
    cut = int(TRIM * len(runs))
    return float(np.mean(np.partition(runs, (cut, len(runs) - cut - 1))[cut : len(runs) - cut]))


def _relabel(scores: Scores, arrays: Sequence[FloatArray]) -> Scores:
    return Scores({task: tuple(values) for task, values in zip(scores.tasks, arrays, strict=True)})


def _runs(values: Sequence[float]) -> FloatArray:
    runs = np.asarray(values, dtype=np.float64)
    if runs.ndim != 1 or not runs.size:
        raise UserError(f"expected the scores of at least one run, got shape {runs.shape}")
    check_finite("scores", runs)
    return runs


def _check_bootstrap(arrays: Sequence[FloatArray], confidence: float, resamples: int) -> None:
    _check_confidence(confidence)
    if resamples < 1:
        raise UserError(f"expected at least one resample, got {resamples}")
    if min(map(len, arrays)) < 2:
        raise UserError("expected at least two runs of every task for an interval, got one")


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise UserError(f"expected a confidence in (0, 1), got {confidence}")


def _check_same_tasks(x: Scores, y: Scores) -> None:
    if set(x.tasks) != set(y.tasks):
        raise UserError(f"expected scores of the same tasks, got {sorted(x.tasks)} and {sorted(y.tasks)}")
