import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pisces.metrics import sequence_metric, total_variation

COSTS = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 7), st.integers(1, 7)), elements=st.floats(0, 10, allow_subnormal=False)
)
DISCOUNTS = st.sampled_from([0.0, 0.5, 0.9, 0.99])


def by_linear_system(cost, discount, last):
    """An independent solution: the linear system of the graph of pairs."""
    n, m = cost.shape
    successor = np.array([[min(i + 1, n - 1) * m + min(j + 1, m - 1) for j in range(m)] for i in range(n)]).ravel()
    weight = np.ones(n * m)
    if last == "stop":
        weight[-1] = 0
    system = np.eye(n * m)
    system[np.arange(n * m), successor] -= discount * weight
    return np.linalg.solve(system, cost.ravel()).reshape(n, m)


@given(COSTS, DISCOUNTS, st.sampled_from(["self-loop", "stop"]))
def test_equals_the_linear_system(cost, discount, last):
    expected = by_linear_system(cost, discount, last)
    np.testing.assert_allclose(sequence_metric(cost, discount, last), expected, rtol=1e-9, atol=1e-9)


@given(COSTS, DISCOUNTS)
def test_ends_agree_when_the_last_pair_costs_nothing(cost, discount):
    cost[-1, -1] = 0
    np.testing.assert_array_equal(sequence_metric(cost, discount, "self-loop"), sequence_metric(cost, discount, "stop"))


@given(COSTS, DISCOUNTS)
def test_transposing_the_costs_transposes_the_metric(cost, discount):
    np.testing.assert_allclose(sequence_metric(cost.T, discount), sequence_metric(cost, discount).T, rtol=1e-12)


@given(hnp.arrays(np.float64, (3, 2, 4, 5), elements=st.floats(0, 10)), DISCOUNTS)
def test_batches_equal_single_calls(costs, discount):
    together = sequence_metric(costs, discount)
    for index in np.ndindex(3, 2):
        np.testing.assert_array_equal(together[index], sequence_metric(costs[index], discount))


@given(*[hnp.arrays(np.int64, st.integers(1, 6), elements=st.integers(0, 2))] * 3)
def test_is_a_pseudometric_on_trajectories(x, y, z):
    # All nine blocks are computed, so that symmetry is not put in by hand.
    distance = np.block([[sequence_metric(total_variation(a, b), 0.9) for b in (x, y, z)] for a in (x, y, z)])
    assert (np.diag(distance) == 0).all()
    assert (distance >= 0).all()
    np.testing.assert_allclose(distance, distance.T)
    assert (distance[:, None, :] <= distance[:, :, None] + distance[None, :, :] + 1e-9).all()


def test_a_fixed_point_by_hand():
    cost = np.array([[1.0, 2.0], [3.0, 4.0]])
    last = 4 / (1 - 0.5)
    expected = [[1 + 0.5 * last, 2 + 0.5 * last], [3 + 0.5 * last, last]]
    np.testing.assert_allclose(sequence_metric(cost, 0.5), expected)
    np.testing.assert_allclose(sequence_metric(cost, 0.5, last="stop"), [[3, 4], [5, 4]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(3), 0.9), "cost matrix"),
        ((np.zeros((0, 3)), 0.9), "cost matrix"),
        ((np.full((2, 2), np.nan), 0.9), "finite"),
        ((np.zeros((2, 2)), 1.0), r"discount must be in \[0, 1\), got 1.0"),
        ((np.zeros((2, 2)), -0.1), "discount"),
        ((np.zeros((2, 2)), float("nan")), "discount"),
        ((np.zeros((2, 2)), "0.5"), "discount"),
        ((np.zeros((2, 2)), 0.9, "selfloop"), "did you mean 'self-loop'"),
        ((np.zeros((2, 2)), 0.9, None), "unknown last None; choose from: self-loop, stop"),
    ],
)
def test_bad_input_is_explained(arguments, message):
    with pytest.raises(ValueError, match=message):
        sequence_metric(*arguments)
