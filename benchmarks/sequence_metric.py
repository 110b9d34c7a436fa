"""The one-pass trajectory metric against the paper's fixed-point iteration (App. H, arXiv:2101.05265).

Both compute the same thing: `last="stop"` is the pseudo-code's end. Times are the best of several.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from pisces.metrics import sequence_metric

DISCOUNT = 0.99
THRESHOLD = 1e-7
"""Total change at which the published iteration stops."""


def fixed_point(cost: np.ndarray, discount: float) -> np.ndarray:
    """The published procedure: apply the operator to the whole matrix until it changes no more."""
    distance = np.zeros_like(cost)
    while True:
        update = cost.copy()
        update[:-1, :-1] += discount * distance[1:, 1:]
        update[:-1, -1] += discount * distance[1:, -1]
        update[-1, :-1] += discount * distance[-1, 1:]
        if np.abs(update - distance).sum() < THRESHOLD:
            return update
        distance = update


def seconds(function: Callable[[], object], repeats: int) -> float:
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def compare(name: str, costs: np.ndarray, repeats: int) -> None:
    expected = np.stack([fixed_point(cost, DISCOUNT) for cost in costs])
    error = np.abs(expected - sequence_metric(costs, discount=DISCOUNT, last="stop")).max()
    theirs = seconds(lambda: [fixed_point(cost, DISCOUNT) for cost in costs], 1)
    ours = seconds(lambda: sequence_metric(costs, discount=DISCOUNT, last="stop"), repeats)
    print(
        f"{name}: fixed point {theirs * 1e3:.1f} ms, one pass {ours * 1e3:.3f} ms, {theirs / ours:.0f} times faster, "
        f"largest difference {error:.1e}"
    )


def main() -> None:
    rng = np.random.default_rng(0)
    compare("one pair of 1000 x 1000", rng.integers(0, 2, (1, 1000, 1000)).astype(float), 20)
    compare("153 pairs of 56 x 56", rng.integers(0, 2, (153, 56, 56)).astype(float), 50)


if __name__ == "__main__":
    main()
