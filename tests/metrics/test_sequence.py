import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pisces.metrics import sequence_metric, sequence_metrics

COSTS = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 7), st.integers(1, 7)), elements=st.floats(0, 10, allow_subnormal=False)
)
DISCOUNTS = st.sampled_from([0.0, 0.5, 0.9, 0.99])


def by_value_iteration(cost, discount, last):
    """An independent solution: iterate the operator on the pairs' graph until it stands still."""
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
    expected = by_value_iteration(cost, discount, last)
    np.testing.assert_allclose(sequence_metric(cost, discount, last), expected, rtol=1e-9, atol=1e-9)


@given(COSTS, DISCOUNTS)
def test_ends_agree_when_the_last_pair_costs_nothing(cost, discount):
    cost[-1, -1] = 0
    np.testing.assert_array_equal(sequence_metric(cost, discount, "self-loop"), sequence_metric(cost, discount, "stop"))


@given(COSTS, DISCOUNTS)
def test_transposing_the_costs_transposes_the_metric(cost, discount):
    np.testing.assert_allclose(sequence_metric(cost.T, discount), sequence_metric(cost, discount).T, rtol=1e-12)


@given(st.lists(COSTS, min_size=1, max_size=5), DISCOUNTS)
def test_batches_equal_single_calls(costs, discount):
    for together, cost in zip(sequence_metrics(costs, discount), costs, strict=True):
        np.testing.assert_array_equal(together, sequence_metric(cost, discount))
    stacked = np.stack([costs[0]] * 3).reshape(3, 1, *costs[0].shape)
    np.testing.assert_array_equal(sequence_metric(stacked, discount)[2, 0], sequence_metric(costs[0], discount))


@given(hnp.arrays(np.int64, 6, elements=st.integers(0, 2)), hnp.arrays(np.int64, 6, elements=st.integers(0, 2)))
def test_is_a_pseudometric_on_trajectories(x, y):
    both = np.concatenate([x, y])
    cost = lambda a, b: (a[:, None] != b[None]).astype(float)  # noqa: E731
    dxx, dyy, dxy = (sequence_metric(cost(a, b), 0.9) for a, b in ((x, x), (y, y), (x, y)))
    distance = np.block([[dxx, dxy], [dxy.T, dyy]])
    assert len(both) == len(distance)
    assert (np.diag(distance) == 0).all()
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
        ((np.zeros((2, 2)), 1.0), r"discount in \[0, 1\), got 1.0"),
        ((np.zeros((2, 2)), -0.1), "discount"),
        ((np.zeros((2, 2)), float("nan")), "discount"),
        ((np.zeros((2, 2)), 0.9, "selfloop"), "did you mean 'self-loop'"),
    ],
)
def test_bad_input_is_explained(arguments, message):
    with pytest.raises(ValueError, match=message):
        sequence_metric(*arguments)


@pytest.mark.parametrize(
    ("costs", "discount", "last", "message"),
    [
        ([[1.0, 2.0], [3.0, 4.0]], 0.5, "self-loop", "one cost matrix"),
        ([np.zeros((2, 2, 2))], 0.5, "self-loop", "one cost matrix"),
        ([], 5.0, "self-loop", "discount"),
        ([], "0.5", "self-loop", "discount"),
        ([np.zeros((2, 2))], 0.5, None, "expected last to be one of"),
    ],
)
def test_bad_lists_of_costs_are_explained(costs, discount, last, message):
    with pytest.raises(ValueError, match=message):
        sequence_metrics(costs, discount, last)
