"""Anderson mixing: accelerates a fixed-point iteration x -> g(x) by combining its last few steps."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BLOCK = 1 << 16
"""Entries per partial sum; a fixed size keeps sums equal whatever the number of threads."""


class Mixer:
    """Keeps the last steps of an iteration and proposes the next point.

    With f = g - x, and dF, dG the differences of the last steps, the next point is g - dG t, t = argmin |f - dF t|.
    A step whose residual grew clears the stored steps, and the plain iterate g is taken. With depth 0 nothing is
    stored: every other step, the decay rate of the mean of f is estimated and the rest of its geometric series added.
    """

    def __init__(self, size: int, depth: int) -> None:
        self._depth = depth
        self._steps_g, self._steps_f = np.empty((depth, size)), np.empty((depth, size))
        self._last_g, self._last_f = (np.empty(size), np.empty(size)) if depth else (np.empty(0), np.empty(0))
        self._gram = np.empty((depth, depth))
        self.reset()

    def reset(self) -> None:
        """Clears the stored steps, e.g. because the map has changed."""
        self._taken, self._residual, self._mean = -1, np.inf, 0.0

    def mix(self, x: FloatArray, g: FloatArray, residual: float) -> None:
        """Overwrites x with the next point, given g = g(x) and residual = max |g - x|."""
        if residual > 2 * self._residual:
            self.reset()
        if not self._depth:
            self._extrapolate(x, g)
            self._residual = residual
            return
        self._taken += 1
        self._residual = residual
        slot = (self._taken - 1) % self._depth
        _record(x, g, self._last_g, self._last_f, self._steps_g[slot], self._steps_f[slot], self._taken > 0)
        count = min(self._taken, self._depth)
        weights = _weights(self._steps_f, count, slot, self._last_f, self._gram) if count else np.zeros(0)
        _combine(g, self._steps_g, weights, x)

    def _extrapolate(self, x: FloatArray, g: FloatArray) -> None:
        mean = _mean_step(x, g)
        rate = mean / self._mean if self._mean else 0.0
        fading = 0.0 < rate < 0.9999
        _shift(x, g, mean * rate / (1 - rate) if fading else 0.0)
        self._mean = 0.0 if fading else mean


@numba.njit(cache=True, nogil=True)
def _mean_step(x, g):  # type: ignore[no-untyped-def]
    total = 0.0
    for start in range(0, len(x), BLOCK):
        part = 0.0
        for k in range(start, min(start + BLOCK, len(x))):
            part += g[k] - x[k]
        total += part
    return total / max(1, len(x))


@numba.njit(cache=True, nogil=True)
def _shift(x, g, amount):  # type: ignore[no-untyped-def]
    for k in range(len(x)):
        x[k] = g[k] + amount


@numba.njit(cache=True, nogil=True)
def _record(x, g, last_g, last_f, step_g, step_f, differences):  # type: ignore[no-untyped-def]
    for k in range(len(x)):
        f = g[k] - x[k]
        if differences:
            step_g[k] = g[k] - last_g[k]
            step_f[k] = f - last_f[k]
        last_g[k] = g[k]
        last_f[k] = f


@numba.njit(cache=True, nogil=True)
def _weights(vectors, count, newest, latest, gram):  # type: ignore[no-untyped-def]
    # Least squares |latest - vectors^T weights| by the normal equations; zeros if rounding makes them unsolvable.
    sums = _products(vectors, count, newest, latest)
    for a in range(count):
        gram[newest, a] = gram[a, newest] = sums[0, a]
    system, weights, trace = gram[:count, :count].copy(), sums[1].copy(), 0.0
    for a in range(count):
        trace += system[a, a]
    for a in range(count):
        system[a, a] += 1e-14 * trace
        if not system[a, a] > 0.0:
            return np.zeros(count)
        for b in range(a + 1, count):
            factor = system[b, a] / system[a, a]
            weights[b] -= factor * weights[a]
            for c in range(a, count):
                system[b, c] -= factor * system[a, c]
    for a in range(count - 1, -1, -1):
        for c in range(a + 1, count):
            weights[a] -= system[a, c] * weights[c]
        weights[a] /= system[a, a]
    return weights


@numba.njit(cache=True, nogil=True)
def _products(vectors, count, newest, latest):  # type: ignore[no-untyped-def]
    sums = np.zeros((2, count))
    for start in range(0, len(latest), BLOCK):
        stop = min(start + BLOCK, len(latest))
        for a in range(count):
            with_newest, with_latest = 0.0, 0.0
            for k in range(start, stop):
                with_newest += vectors[a, k] * vectors[newest, k]
                with_latest += vectors[a, k] * latest[k]
            sums[0, a] += with_newest
            sums[1, a] += with_latest
    return sums


@numba.njit(cache=True, nogil=True)
def _combine(g, steps_g, weights, x):  # type: ignore[no-untyped-def]
    for k in range(len(x)):
        x[k] = g[k]
    for a in range(len(weights)):
        for k in range(len(x)):
            x[k] -= weights[a] * steps_g[a, k]
