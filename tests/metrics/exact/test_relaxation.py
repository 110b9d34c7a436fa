import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from pisces.metrics.exact.relaxation.elimination import DONE, FIXED, SLOTS, WIDE, eliminate
from pisces.metrics.exact.relaxation.factoring import Factors


def random_weights(rng, size, support, discount):
    """Rows that sum to at most the discount, as discounted couplings do; some mass leaves the system."""
    weights = np.zeros((size, size))
    for row in weights:
        row[rng.choice(size, min(support, size), replace=False)] = rng.dirichlet(np.ones(min(support, size)))
    return discount * weights * rng.choice([1.0, 0.5], size=(size, 1), p=[0.8, 0.2])


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 70),
    st.integers(1, 4),
    st.sampled_from([0.5, 0.99, 0.9999]),
    st.booleans(),
    st.booleans(),
)
def test_factors_solve_the_system(seed, size, support, discount, wide_row, wide_column):
    rng = np.random.default_rng(seed)
    weights = random_weights(rng, size, support, discount)
    if wide_row:
        weights[rng.integers(size)] = discount * rng.dirichlet(np.ones(size))
    if wide_column:
        weights *= 0.5
        weights[:, rng.integers(size)] += 0.5 * discount
    right = rng.normal(size=size)
    exact = np.linalg.solve(np.eye(size) - weights, right)
    found = Factors(scipy.sparse.csr_array(weights)).solve(right)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-8 * np.abs(exact).max())


def test_repeated_entries_of_a_row_add_up():
    pointer, column = np.array([0, 3, 5]), np.array([1, 1, 0, 0, 1], np.int64)
    weights = scipy.sparse.csr_array((np.array([0.2, 0.3, 0.1, 0.4, 0.2]), column, pointer), shape=(2, 2))
    exact = np.linalg.solve(np.eye(2) - weights.toarray(), [1.0, 2.0])
    np.testing.assert_allclose(Factors(weights).solve(np.array([1.0, 2.0])), exact, rtol=1e-14)


def test_paths_are_eliminated_whole_and_wide_rows_stay():
    size = 5 * SLOTS
    path = scipy.sparse.diags_array([np.full(size - 1, 0.5)], offsets=[1], format="csr")
    found = eliminate(path.indptr.astype(np.int64), path.indices.astype(np.int64), path.data)
    assert (found.state == DONE).all()
    assert sorted(found.order) == list(range(size))
    spread = path.tolil()
    spread[0, : 2 * SLOTS] = 0.9 / (2 * SLOTS)
    spread = scipy.sparse.csr_array(spread)
    found = eliminate(spread.indptr.astype(np.int64), spread.indices.astype(np.int64), spread.data)
    assert found.state[0] == WIDE
    assert (found.state[1 : 2 * SLOTS] == FIXED).all()
    assert (found.state[2 * SLOTS :] == DONE).all()
    assert found.diagonal[0] == pytest.approx(1 - 0.9 / (2 * SLOTS))
