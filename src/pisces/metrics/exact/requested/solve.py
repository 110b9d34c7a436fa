"""Distances of requested pairs: exactly as for all pairs where few are reached, by bounds on both sides otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pisces.metrics.exact.chain import Chain, FloatArray, IntArray, subchain
from pisces.metrics.exact.deterministic import is_deterministic, solve_successors
from pisces.metrics.exact.pairs import listed_pairs
from pisces.metrics.exact.records import Solution
from pisces.metrics.exact.requested.bounds import solve_by_bounds
from pisces.metrics.exact.requested.table import PairTable, place_pairs, reached_pairs, successors
from pisces.metrics.exact.solver import Solver
from pisces.metrics.exact.workers import CHUNK, Workers

if TYPE_CHECKING:
    from pisces.metrics.exact.problem import Costs, Options

REACHED_LIMIT = 1 << 20
"""Number of reached pairs up to which all of them are solved."""
MATRIX_SHARE = 1 / 16
"""Share of the pairs of reached states that must be reached themselves for distances to be stored as a matrix."""
SMALL_MATRIX = 1 << 22
"""Number of entries of a matrix that is small enough in any case."""


def solve_requested(
    chain_x: Chain, chain_y: Chain, costs: Costs, requested: IntArray, options: Options, cost_rounding: float
) -> Solution:
    """Solves the requested pairs [k, 2]; the solution has one value for each of them."""
    symmetric = chain_x is chain_y and costs.symmetric()
    table, count, closed = reached_pairs(chain_x, chain_y, requested, symmetric, REACHED_LIMIT)
    if not count:  # no pairs, or only pairs of equal states
        return Solution(np.zeros(len(requested)), 0.0, 0)
    index = np.empty(len(requested), np.int64)
    place_pairs(table, count, requested, index)
    if closed and is_deterministic(chain_x) and is_deterministic(chain_y):
        successor = successors(chain_x.rows, chain_y.rows, chain_x.n_actions, table, count)
        cost = costs.of_pairs(table.first[:count], table.second[:count])
        solution = solve_successors(
            successor, cost, float(options.discount), options.tolerance, cost_rounding, options.progress
        )
        return Solution(_chosen(solution.values, index), solution.error, solution.rounds)
    if closed:
        return _solve_closed(chain_x, chain_y, costs, table, count, index, options, cost_rounding)
    del table
    return solve_by_bounds(chain_x, chain_y, costs, requested, symmetric, options, cost_rounding)


def _chosen(values: FloatArray, index: IntArray) -> FloatArray:
    # Index -1 stands for a pair of equal states, whose distance is zero.
    return np.where(index >= 0, values[index], 0.0)


def _solve_closed(
    chain_x: Chain,
    chain_y: Chain,
    costs: Costs,
    table: PairTable,
    count: int,
    index: IntArray,
    options: Options,
    cost_rounding: float,
) -> Solution:
    first, second = table.first[:count].astype(np.int64), table.second[:count].astype(np.int64)
    part_x, states_x = subchain(chain_x, np.union1d(first, second) if table.symmetric else np.unique(first))
    part_y, states_y = (part_x, states_x) if table.symmetric else subchain(chain_y, np.unique(second))
    i, j = _renumbered(first, states_x), _renumbered(second, states_y)
    if table.symmetric:
        i, j = np.minimum(i, j), np.maximum(i, j)
    order = np.lexsort((j, i))
    pairs = listed_pairs(i[order], j[order], (len(states_x), len(states_y)), table.symmetric)
    cost = costs.of_pairs(first, second)[order].ravel()
    with Workers(options.threads, CHUNK) as workers:
        solver = Solver(part_x, part_y, pairs, cost, float(options.discount), workers)
        solver.cost_rounding = cost_rounding
        solution = solver.solve(options.tolerance, options.progress)
    values = np.empty(count)
    values[order] = solution.values
    return Solution(_chosen(values, index), solution.error, solution.rounds)


def _renumbered(states: IntArray, members: IntArray) -> IntArray:
    order = np.argsort(members)
    return order[np.searchsorted(members, states, sorter=order)]
