"""A metric between two chains as a problem for the solver, and its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pisces.errors import UserError
from pisces.metrics.costs import Cost
from pisces.metrics.definition import MetricDefinition, SamplingError
from pisces.metrics.exact.chain import Chain, IndexArray, IntArray
from pisces.metrics.exact.deterministic import is_deterministic, solve_all
from pisces.metrics.exact.pairs import all_pairs
from pisces.metrics.exact.records import Progress
from pisces.metrics.exact.reduction import reduce_chain
from pisces.metrics.exact.requested.solve import solve_requested
from pisces.metrics.exact.solver import Solver
from pisces.metrics.exact.workers import CHUNK, Workers
from pisces.validation import check_discount, check_distances, check_tolerance

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MetricResult:
    """Distances between the states of two MDPs, with a certified error."""

    distance: FloatArray
    """The distance of every pair of states, [n, m], or of the pairs that were requested, [k]."""

    error_bound: float
    """|distance - exact distance| <= error_bound for every pair, rounding included."""

    iterations: int
    """The number of times that all transports (for MICo, the whole matrix) were solved."""

    definition: MetricDefinition | None = None
    """The metric, discount, MDPs and policies that the distances belong to."""

    sampling: SamplingError | None = None
    """The error of estimated MDPs beside `error_bound`; None if both MDPs are known, or for a cost of one's own."""


@dataclass(frozen=True)
class Options:
    """The options that all exact metrics share."""

    discount: float
    """The discount, in [0, 1)."""

    tolerance: float
    """The solver stops when the certified error is at most this."""

    pairs: ArrayLike | None
    """Only these pairs [k, 2] of states, and what they need, are solved; None for all."""

    threads: int | None
    """Number of threads; None for all cores, at most 8."""

    progress: Progress | None
    """Called after each round with the number of rounds and the certified error."""

    def __post_init__(self) -> None:
        check_discount(self.discount)
        check_tolerance(self.tolerance)
        if self.progress is not None and not callable(self.progress):
            raise UserError(f"progress must be a function of (rounds, error), got {self.progress!r}")


class Costs(Protocol):
    """The costs of a problem; see `pair_costs`."""

    def tables(self) -> list[FloatArray]:
        """The cost of every pair of states, [n, m] for every action."""

    def of_pairs(self, first: IndexArray, second: IndexArray) -> FloatArray:
        """The cost of every listed pair and action, [k, A]."""

    def bounds(self) -> tuple[float, float]:
        """A lower and an upper bound of all costs."""

    def symmetric(self) -> bool:
        """Whether cost(i, j) = cost(j, i) >= 0 and cost(i, i) = 0 are known to hold within one chain."""

    def landmarks(self) -> list[tuple[FloatArray, FloatArray]]:
        """The costs between every state, [n, A] and [m, A], and some features; none if they may break the triangle."""


def solve_chains(
    chain_x: Chain, chain_y: Chain, costs: Costs, options: Options, cost_rounding: float = 0.0
) -> MetricResult:
    """Solves d(x, y) = max_a costs[a][x, y] + discount * W1(d)(chain_x(. | x, a), chain_y(. | y, a)).

    Args:
        chain_x: the first chain, n states; the same object as `chain_y` for distances within one chain.
        chain_y: the second chain, m states.
        costs: the costs of pairs of states.
        options: discount, tolerance and the like.
        cost_rounding: the largest rounding error in the costs.
    """
    if options.pairs is not None:
        requested = _check_pairs(options.pairs, (chain_x.n_states, chain_y.n_states))
        solution = solve_requested(chain_x, chain_y, costs, requested, options, cost_rounding)
        return MetricResult(solution.values, solution.error, solution.rounds)
    check_distances(chain_x.n_states, chain_y.n_states)
    tables = costs.tables()
    symmetric = chain_x is chain_y and is_symmetric(tables)
    if is_deterministic(chain_x) and is_deterministic(chain_y):
        matrix, solution = solve_all(chain_x, chain_y, tables, symmetric, options, cost_rounding)
        return MetricResult(matrix, solution.error, solution.rounds)
    return _solve_matrix(chain_x, chain_y, tables, symmetric, options, cost_rounding)


def _solve_matrix(
    chain_x: Chain,
    chain_y: Chain,
    tables: list[FloatArray],
    symmetric: bool,
    options: Options,
    cost_rounding: float,
) -> MetricResult:
    x = reduce_chain(chain_x, tables)
    y = x if symmetric else reduce_chain(chain_y, [table.T for table in tables])
    pairs = all_pairs(x.chain.n_states, y.chain.n_states, symmetric)
    chosen = (x.member[pairs.first], y.member[pairs.second])
    packed = np.stack([table[chosen] for table in tables], axis=1).ravel()
    tables.clear()  # large compared to what the solver needs
    del chosen
    with Workers(options.threads, CHUNK) as workers:
        solver = Solver(x.chain, y.chain, pairs, packed, float(options.discount), workers)
        solver.cost_rounding = cost_rounding
        solver.merged = len(x.member) < chain_x.n_states or len(y.member) < chain_y.n_states
        solution = solver.solve(options.tolerance, options.progress)
        matrix = solver.matrix(solution.values)
    del solver
    return MetricResult(matrix[np.ix_(x.class_of, y.class_of)], solution.error, solution.rounds)


def cost_table(cost: Cost, features_x: FloatArray, features_y: FloatArray) -> FloatArray:
    """Returns the cost of every pair of states, [n, m], after checking it."""
    check_distances(len(features_x), len(features_y))
    return check_cost(cost(features_x, features_y), (len(features_x), len(features_y)))


def check_cost(cost: ArrayLike, shape: tuple[int, int]) -> FloatArray:
    """Returns a cost matrix as float64, or raises if its shape is wrong or it is not finite."""
    table = np.asarray(cost, dtype=np.float64)
    if table.shape != shape:
        raise UserError(f"expected a cost of shape {shape}, got {table.shape}")
    if not np.isfinite(table).all():
        raise UserError("expected finite costs, got NaN or infinity")
    return table


def is_symmetric(tables: Sequence[FloatArray]) -> bool:
    """Whether half the pairs suffice: d(i, j) = d(j, i) and d(i, i) = 0, which three properties of the costs imply."""
    return all(
        not table.diagonal().any() and bool((table >= 0).all()) and np.array_equal(table, table.T) for table in tables
    )


def _check_pairs(requested: ArrayLike, shape: tuple[int, int]) -> IntArray:
    pairs = np.asarray(requested)
    if pairs.size == 0:
        pairs = np.zeros((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise UserError(f"expected pairs of states as integers [k, 2], got {pairs.dtype} {list(pairs.shape)}")
    if pairs.size and (pairs.min() < 0 or (pairs.max(axis=0) >= shape).any()):
        low, high = pairs.min(axis=0).tolist(), pairs.max(axis=0).tolist()
        raise UserError(f"expected states below {shape[0]} and {shape[1]}, got {low} to {high}")
    return pairs.astype(np.int64)
