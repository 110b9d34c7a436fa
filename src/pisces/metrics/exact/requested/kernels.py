"""Compiled parts of the bounds of requested pairs: expansion, backups and the flow of weights along couplings."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from pisces.metrics.exact.chain import FloatArray, IntArray, Rows
from pisces.metrics.exact.requested.table import EMPTY, grown, place_pair
from pisces.metrics.exact.simplex.basis import COLUMN, DEMAND, MASS, ROW, SUPPLY, start_basis
from pisces.metrics.exact.simplex.solve import solve_pair


class Chains(NamedTuple):
    """The chains of a metric and its discount."""

    x: Rows
    """The rows of the chain of X."""
    y: Rows
    """The rows of the chain of Y."""
    n_actions: int
    """The number of actions A."""
    discount: float
    """The discount, in [0, 1)."""
    slack: float
    """Reduced costs above minus this count as zero."""


class Workspace(NamedTuple):
    """Memory for one transport; see `simplex`."""

    cost: FloatArray
    """The lower bounds of the next pairs."""
    tree: IntArray
    """The basis as a tree."""
    flow: FloatArray
    """Masses, potentials and marginals."""
    size: IntArray
    """The number of cells of the basis, [1]."""


class Bounds(NamedTuple):
    """Bounds of the distances of pairs, in the order of a `PairTable`, with room for more pairs."""

    low: FloatArray
    """Lower bounds."""
    high: FloatArray
    """Upper bounds."""
    cost: FloatArray
    """The cost of each pair and action, [room, A]."""
    child: IntArray
    """Where the next pairs of each pair begin in `children`, or EMPTY if they were not listed yet."""
    weight: FloatArray
    """How much the error of each pair counts in the error of the requested pairs."""
    listed: NDArray[Any]
    """Whether a pair is on the list of pairs to visit."""


@numba.njit(cache=True, nogil=True)
def expand(chosen, table, count, child, children, used, chains):  # type: ignore[no-untyped-def]
    """Lists the next pairs of some pairs; returns the table, its number of pairs, the next pairs and their number."""
    x, y, actions, _, _ = chains
    for k in chosen:
        i, j = np.int64(table.first[k]), np.int64(table.second[k])
        child[k] = used
        for action in range(actions):
            a, b = i * actions + action, j * actions + action
            room = (x.pointer[a + 1] - x.pointer[a]) * (y.pointer[b + 1] - y.pointer[b])
            table = grown(table, count, room)
            if used + room > len(children):
                longer = np.empty(2 * (used + room), children.dtype)
                longer[:used] = children[:used]
                children = longer
            for u in range(x.pointer[a], x.pointer[a + 1]):
                for v in range(y.pointer[b], y.pointer[b + 1]):
                    following = place_pair(table, count, x.next_state[u], y.next_state[v])
                    count += following == count
                    children[used] = following
                    used += 1
    return table, count, children, used


@numba.njit(cache=True, nogil=True)
def back_up(trail, table, bounds, children, chains, scratch):  # type: ignore[no-untyped-def]
    """Improves the bounds of visited pairs, the last one first."""
    for place in range(len(trail) - 1, -1, -1):
        _backup(trail[place], table, bounds, children, chains, scratch)


@numba.njit(cache=True, nogil=True)
def spread(current, threshold, table, bounds, children, chains, scratch):  # type: ignore[no-untyped-def]
    """Passes the weights of some pairs on to their next pairs, along couplings that are optimal for the lower bounds.

    Args:
        current: expanded pairs.
        threshold: next pairs whose weight times the gap of their bounds is below this are left out.
        table: the pairs.
        bounds: their bounds; those of the given pairs are improved.
        children: the next pairs.
        chains: the chains.
        scratch: memory for one transport.

    Returns:
        The next pairs whose weight times gap is at least the threshold.
    """
    weight, listed, low, high = bounds.weight, bounds.listed, bounds.low, bounds.high
    tree, flow = scratch.tree, scratch.flow
    following, ahead = np.empty(min(len(low), len(current) * tree.shape[1]), np.int32), 0
    for k in current:
        listed[k] = False
        passed, weight[k] = chains.discount * weight[k], 0.0
        at, ky = _backup(k, table, bounds, children, chains, scratch)
        for e in range(scratch.size[0]):
            to = np.int64(children[at + tree[ROW, e] * ky + tree[COLUMN, e]])
            if to == EMPTY:
                continue
            weight[to] += passed * flow[MASS, e]
            if not listed[to] and weight[to] * (high[to] - low[to]) >= threshold:
                listed[to] = True
                following[ahead] = to
                ahead += 1
    return following[:ahead]


@numba.njit(cache=True, nogil=True)
def _backup(k, table, bounds, children, chains, scratch):  # type: ignore[no-untyped-def]
    # Improves both bounds of an expanded pair, and leaves the coupling of the action with the largest upper bound in
    # the scratch memory; returns where its next pairs begin and how many columns it has.
    low, high, chosen, actions = -np.inf, -np.inf, 0, chains.n_actions
    at = np.int64(bounds.child[k])
    chosen_at, width = at, 0
    for action in range(actions):
        lower, upper, cells, ky = _transport(k, action, at, table, bounds, children, chains, scratch)
        low = max(low, bounds.cost[k, action] + chains.discount * lower)
        if bounds.cost[k, action] + chains.discount * upper > high:
            high = bounds.cost[k, action] + chains.discount * upper
            chosen, chosen_at, width = action, at, ky
        at += cells
    if chosen != actions - 1:
        _transport(k, chosen, chosen_at, table, bounds, children, chains, scratch)
    bounds.low[k], bounds.high[k] = max(bounds.low[k], low), min(bounds.high[k], high)
    return chosen_at, width


@numba.njit(cache=True, nogil=True)
def _transport(k, action, at, table, bounds, children, chains, scratch):  # type: ignore[no-untyped-def]
    # Solves one transport on the lower bounds; its coupling bounds the transport on the upper bounds from above.
    (x_pointer, _, p), (y_pointer, _, q), actions, _, slack = chains
    a, b = np.int64(table.first[k]) * actions + action, np.int64(table.second[k]) * actions + action
    x0, y0 = x_pointer[a], y_pointer[b]
    kx, ky = x_pointer[a + 1] - x0, y_pointer[b + 1] - y0
    cost, tree, flow, size = scratch
    for r in range(kx):
        flow[SUPPLY, r] = p[x0 + r]
        for c in range(ky):
            to = np.int64(children[at + r * ky + c])
            cost[r, c] = bounds.low[to] if to != EMPTY else 0.0
    for c in range(ky):
        flow[DEMAND, c] = q[y0 + c]
    start_basis(cost, kx, ky, tree, flow)
    solve_pair(cost, kx, ky, tree, flow, slack)
    lower, upper, size[0] = 0.0, 0.0, kx + ky - 1
    for e in range(kx + ky - 1):
        to = np.int64(children[at + tree[ROW, e] * ky + tree[COLUMN, e]])
        lower += flow[MASS, e] * cost[tree[ROW, e], tree[COLUMN, e]]
        upper += flow[MASS, e] * (bounds.high[to] if to != EMPTY else 0.0)
    return lower, upper, kx * ky, ky
