"""Arrays of finite MDPs from Gymnasium's transition tables and from sampled transitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pisces.errors import UserError

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Table = dict[int, dict[int, list[tuple[float, int, float, bool]]]]
"""Gymnasium's P: table[state][action] = [(probability, next state, reward, ends the episode), ...]."""


def arrays_from_table(table: Table) -> tuple[scipy.sparse.csr_array, FloatArray]:
    """Returns transitions [S * A, S] and rewards [S, A] of a toy-text table; see `FiniteMDP.from_gymnasium`."""
    states, actions = len(table), len(next(iter(table.values())))
    entries = [
        (state, action, float(probability), int(following), float(reward), bool(ends))
        for state in range(states)
        for action in range(actions)
        for probability, following, reward, ends in table[state][action]
        if probability > 0
    ]
    continued = {following for state, _, _, following, _, ends in entries if not ends}
    final = {following for *_, following, _, ends in entries if ends}
    extra = int(bool(final & continued))
    rewards = np.zeros((states + extra, actions))
    rows: list[tuple[float, int, int]] = []
    for state, action, probability, following, reward, ends in entries:
        if state in final - continued:
            continue
        rewards[state, action] += probability * reward
        target = states if ends and following in continued else following
        rows.append((probability, state * actions + action, target))
    absorbing = sorted(final - continued) + [states] * extra
    rows += [(1.0, state * actions + action, state) for state in absorbing for action in range(actions)]
    data, row, column = zip(*rows, strict=True)
    shape = ((states + extra) * actions, states + extra)
    return scipy.sparse.coo_array((data, (row, column)), shape=shape).tocsr(), rewards


def arrays_from_counts(
    samples: tuple[IntArray, IntArray, FloatArray, IntArray], shape: tuple[int, int], smoothing: float
) -> tuple[Any, FloatArray]:
    """Returns transitions [S * A, S] and mean rewards [S, A] of samples (states, actions, rewards, next states)."""
    state, action, reward, following = samples
    states, actions = shape
    if any(values.ndim != 1 for values in samples) or len({len(values) for values in samples}) != 1:
        raise UserError(f"expected samples [T] of one length, got shapes {[values.shape for values in samples]}")
    if states < 1 or actions < 1 or not smoothing >= 0:
        raise UserError(f"expected shape >= (1, 1) and smoothing >= 0, got {shape} and {smoothing}")
    for name, values, size in (
        ("states", state, states),
        ("actions", action, actions),
        ("next states", following, states),
    ):
        if values.size and not (values.min() >= 0 and values.max() < size):
            raise UserError(f"expected {name} from 0 to {size - 1}, got {values.min()} to {values.max()}")
    row = state * actions + action
    seen = np.bincount(row, minlength=states * actions)
    totals = np.bincount(row, weights=reward, minlength=states * actions)
    counts = scipy.sparse.coo_array((np.ones(len(row)), (row, following)), shape=(states * actions, states)).tocsr()
    rewards = (totals / np.maximum(seen, 1)).reshape(states, actions)
    if smoothing:
        dense = counts.toarray() + smoothing
        return scipy.sparse.csr_array(dense / dense.sum(axis=1, keepdims=True)), rewards
    unseen = np.flatnonzero(seen == 0)
    loops = scipy.sparse.coo_array((np.ones(len(unseen)), (unseen, unseen // actions)), shape=counts.shape)
    weights = scipy.sparse.diags_array(1.0 / np.maximum(seen, 1))
    return scipy.sparse.csr_array(weights @ counts + loops), rewards
