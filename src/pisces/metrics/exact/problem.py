"""A metric between two chains as a problem for the solver, and its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pisces.errors import UserError
from pisces.metrics.costs import Cost
from pisces.metrics.definition import MetricDefinition, SamplingError
from pisces.metrics.exact.chain import Chain, Reduction, reduce_chain
from pisces.metrics.exact.pairs import Pairs, all_pairs, reached_pairs
from pisces.metrics.exact.solver import Progress, Solver
from pisces.metrics.exact.workers import Workers
from pisces.validation import check_discount, check_tolerance

FloatArray = NDArray[np.float64]
CHUNK = 1 << 17
"""Number of pairs per call into compiled code; Python can be interrupted between calls."""


@dataclass(frozen=True, eq=False)
class MetricResult:
    """Distances between the states of two MDPs, with a certified error."""

    distance: FloatArray
    """The distance of every pair of states, [n, m]; NaN for pairs that were neither requested nor reached."""

    error_bound: float
    """|distance - exact distance| <= error_bound for every pair, rounding included."""

    iterations: int
    """The number of times that all transports (for MICo and Sinkhorn, the whole matrix) were solved."""

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
    """Only these pairs [k, 2] of states, and the pairs that they reach, are solved; None for all."""

    threads: int | None
    """Number of threads; None for all cores, at most 8."""

    progress: Progress | None
    """Called after each round with the number of rounds and the certified error."""

    def __post_init__(self) -> None:
        check_discount(self.discount)
        check_tolerance(self.tolerance)
        if self.progress is not None and not callable(self.progress):
            raise UserError(f"progress must be a function of (rounds, error), got {self.progress!r}")


def solve_chains(
    chain_x: Chain,
    chain_y: Chain,
    costs: Callable[[], Sequence[FloatArray]],
    options: Options,
    cost_rounding: float = 0.0,
) -> MetricResult:
    """Solves d(x, y) = max_a costs()[a][x, y] + discount * W1(d)(chain_x(. | x, a), chain_y(. | y, a)).

    Args:
        chain_x: the first chain, n states; the same object as `chain_y` for distances within one chain.
        chain_y: the second chain, m states.
        costs: returns the cost of every pair of states, [n, m] for every action; called once, so that the tables are
            freed before the solver needs memory.
        options: discount, tolerance and the like.
        cost_rounding: the largest rounding error in the costs.
    """
    tables = costs()
    symmetric = chain_x is chain_y and _is_symmetric(tables)
    x = reduce_chain(chain_x, tables)
    y = x if symmetric else reduce_chain(chain_y, [table.T for table in tables])
    pairs = _pairs_to_solve(x, y, options.pairs, symmetric)
    chosen = (x.member[pairs.first], y.member[pairs.second])
    packed = np.stack([table[chosen] for table in tables], axis=1).ravel()
    del tables, chosen  # large compared to what the solver needs
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
    return check_cost(cost(features_x, features_y), (len(features_x), len(features_y)))


def check_cost(cost: ArrayLike, shape: tuple[int, int]) -> FloatArray:
    """Returns a cost matrix as float64, or raises if its shape is wrong or it is not finite."""
    table = np.asarray(cost, dtype=np.float64)
    if table.shape != shape:
        raise UserError(f"expected a cost of shape {shape}, got {table.shape}")
    if not np.isfinite(table).all():
        raise UserError("expected finite costs, got NaN or infinity")
    return table


def _is_symmetric(tables: Sequence[FloatArray]) -> bool:
    # Half the pairs suffice only if d(i, j) = d(j, i) and d(i, i) = 0, which these three properties imply.
    return all(
        not table.diagonal().any() and bool((table >= 0).all()) and np.array_equal(table, table.T) for table in tables
    )


def _pairs_to_solve(x: Reduction, y: Reduction, requested: ArrayLike | None, symmetric: bool) -> Pairs:
    if requested is None:
        return all_pairs(x.chain.n_states, y.chain.n_states, symmetric)
    pairs = np.asarray(requested)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise UserError(f"expected pairs of states as integers [k, 2], got {pairs.dtype} {list(pairs.shape)}")
    if pairs.size and (pairs.min() < 0 or (pairs.max(axis=0) >= (len(x.class_of), len(y.class_of))).any()):
        raise UserError(f"expected states below {len(x.class_of)} and {len(y.class_of)}, got {pairs.max(axis=0)}")
    classes = np.stack([x.class_of[pairs[:, 0]], y.class_of[pairs[:, 1]]], axis=1)
    return reached_pairs(x.chain, y.chain, classes, symmetric)
