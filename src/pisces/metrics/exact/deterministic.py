"""Metrics of deterministic chains: every pair of states has one next pair per action, so pairs form a graph.

Within a fixed choice of actions, each pair follows a path into a cycle, and one pass over the pairs gives all distances
in closed form. Policy iteration finds the maximizing actions; a chain without actions needs one pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numpy.typing import NDArray

from pisces.metrics.exact.chain import Chain, FloatArray
from pisces.metrics.exact.records import Progress, Solution, check_reachable

if TYPE_CHECKING:
    from pisces.metrics.exact.problem import Options

ROUNDING = 4 * 2.0**-53
"""Relative rounding error of cost + discount * distance and of the difference to the distance."""
NEW, ON_PATH, DONE = 0, 1, 2


def is_deterministic(chain: Chain) -> bool:
    """Whether every row has one next state."""
    return chain.widest == 1


def solve_successors(
    successor: NDArray[Any],
    cost: FloatArray,
    discount: float,
    tolerance: float,
    cost_rounding: float,
    progress: Progress | None,
) -> Solution:
    """Solves d[k] = max_a cost[k, a] + discount * d[successor[k, a]], where d[-1] = 0.

    Args:
        successor: the index of the next pair of every pair and action, [P, A].
        cost: the cost of every pair and action, [P, A].
        discount: in [0, 1).
        tolerance: certified error at which to stop.
        cost_rounding: the largest rounding error in the costs.
        progress: called after each round with (rounds, certified error).
    """
    values, image = np.zeros(len(cost)), np.empty(len(cost))
    choice = np.zeros(len(cost), np.uint8 if cost.shape[1] <= 1 << 8 else np.int32)
    rounds = 1
    while True:
        _evaluate(successor, cost, choice, discount, values)
        change, largest = _improve(successor, cost, choice, discount, values, image)
        rounds += 1
        hidden = ROUNDING * largest + cost_rounding
        error = (discount * change + hidden) / (1 - discount)
        if progress is not None:
            progress(rounds, error)
        if error <= tolerance:
            return Solution(image, error, rounds)
        check_reachable(change, hidden, error, tolerance)


@numba.njit(cache=True, nogil=True)
def _evaluate(successor, cost, choice, discount, values):  # type: ignore[no-untyped-def]
    # Follows each pair to a pair that is known, or around a cycle, and returns along the path.
    state, path = np.zeros(len(values), np.uint8), np.empty(len(values), np.int64)
    for root in range(len(values)):
        if state[root] != NEW:
            continue
        node, height = np.int64(root), 0
        while node >= 0 and state[node] == NEW:
            state[node], path[height] = ON_PATH, node
            height += 1
            node = np.int64(successor[node, choice[node]])
        value = values[node] if node >= 0 else 0.0
        if node >= 0 and state[node] == ON_PATH:
            value = _cycle(path, height, node, cost, choice, discount)
        for h in range(height - 1, -1, -1):
            node = path[h]
            value = cost[node, choice[node]] + discount * value
            values[node], state[node] = value, DONE


@numba.njit(cache=True, nogil=True)
def _cycle(path, height, node, cost, choice, discount):  # type: ignore[no-untyped-def]
    # The distance of the pair at which the cycle closes: one turn's costs over 1 - discount^length.
    total, h = 0.0, height
    while h == height or path[h] != node:
        h -= 1
        total = cost[path[h], choice[path[h]]] + discount * total
    return total / -np.expm1((height - h) * np.log(discount)) if discount > 0.0 else total


@numba.njit(cache=True, nogil=True)
def _improve(successor, cost, choice, discount, values, image):  # type: ignore[no-untyped-def]
    change, largest = 0.0, 0.0
    for k in range(len(values)):
        top = -np.inf
        for action in range(cost.shape[1]):
            following = successor[k, action]
            value = cost[k, action] + (discount * values[following] if following >= 0 else 0.0)
            if value > top:
                top = value
                # Less would let rounding errors alternate between two choices.
                if value > values[k] + ROUNDING * abs(values[k]):
                    choice[k] = action
        image[k] = top
        change, largest = max(change, abs(top - values[k])), max(largest, abs(top), abs(values[k]))
    return change, largest


def solve_all(
    chain_x: Chain,
    chain_y: Chain,
    tables: Sequence[FloatArray],
    symmetric: bool,
    options: Options,
    cost_rounding: float,
) -> tuple[FloatArray, Solution]:
    """Solves all pairs of states of two deterministic chains; returns their distances [n, m] as well."""
    shape, actions = (chain_x.n_states, chain_y.n_states), chain_x.n_actions
    count = shape[0] * (shape[0] - 1) // 2 if symmetric else shape[0] * shape[1]
    start = _row_starts(shape, symmetric)
    successor = np.empty((count, actions), np.int32 if count < 1 << 31 else np.int64)
    _fill_successors(chain_x.next_state, chain_y.next_state, start, symmetric, successor)
    cost = np.empty((count, actions))
    for action, table in enumerate(tables):
        _pack(table, start, symmetric, cost[:, action])
    solution = solve_successors(
        successor, cost, float(options.discount), options.tolerance, cost_rounding, options.progress
    )
    matrix = np.zeros(shape)
    _unpack(solution.values, start, symmetric, matrix)
    return matrix, solution


def _row_starts(shape: tuple[int, int], symmetric: bool) -> NDArray[np.int64]:
    # Pair (i, j) has index start[i] + j; of a symmetric problem, pairs with i < j are numbered.
    i = np.arange(shape[0])
    return i * (2 * shape[0] - i - 3) // 2 - 1 if symmetric else i * shape[1]


@numba.njit(cache=True, nogil=True)
def _fill_successors(next_x, next_y, start, symmetric, successor):  # type: ignore[no-untyped-def]
    actions = successor.shape[1]
    for i in range(len(start)):
        for j in range(i + 1 if symmetric else 0, len(next_y) // actions):
            for action in range(actions):
                u, v = next_x[i * actions + action], next_y[j * actions + action]
                if not symmetric:
                    successor[start[i] + j, action] = start[u] + v
                elif u == v:
                    successor[start[i] + j, action] = -1
                else:
                    successor[start[i] + j, action] = start[min(u, v)] + max(u, v)


@numba.njit(cache=True, nogil=True)
def _pack(table, start, symmetric, cost):  # type: ignore[no-untyped-def]
    for i in range(len(start)):
        for j in range(i + 1 if symmetric else 0, table.shape[1]):
            cost[start[i] + j] = table[i, j]


@numba.njit(cache=True, nogil=True)
def _unpack(values, start, symmetric, matrix):  # type: ignore[no-untyped-def]
    for i in range(len(start)):
        for j in range(i + 1 if symmetric else 0, matrix.shape[1]):
            matrix[i, j] = values[start[i] + j]
            if symmetric:
                matrix[j, i] = values[start[i] + j]
