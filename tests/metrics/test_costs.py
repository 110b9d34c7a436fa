import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pisces.errors import UserError
from pisces.metrics import l1_distance, reward_difference, total_variation

UNIT = st.floats(0.01, 1)


def policies(rows, actions=3):
    return hnp.arrays(np.float64, (rows, actions), elements=UNIT).map(lambda a: a / a.sum(axis=1, keepdims=True))


@given(policies(4), policies(3))
def test_total_variation_is_the_largest_difference_of_any_event(x, y):
    # An independent definition: the maximum over subsets of actions of the difference in probability.
    events = np.array([[(e >> a) & 1 for a in range(3)] for e in range(8)])
    brute = np.abs(x[:, None] @ events.T - y[None] @ events.T).max(axis=-1)
    np.testing.assert_allclose(total_variation(x, y), brute, atol=1e-12)


def test_total_variation_of_actions_equals_that_of_one_hot_policies():
    x, y = np.array([0, 1, 2, 1]), np.array([2, 2, 1])
    np.testing.assert_array_equal(total_variation(x, y), total_variation(np.eye(3)[x], np.eye(3)[y]))


def test_l1_sums_over_dimensions():
    x, y = np.array([[0.0, 1.0], [2.0, 2.0]]), np.array([[1.0, -1.0]])
    np.testing.assert_array_equal(l1_distance(x, y), [[3.0], [4.0]])
    np.testing.assert_array_equal(l1_distance([0.0, 5.0], [2.0]), [[2.0], [3.0]])


def test_reward_difference():
    np.testing.assert_array_equal(reward_difference([1, 2], [1, 5, -1]), [[0, 4, 2], [1, 3, 3]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: total_variation(np.array([0.5, 1.0]), np.array([1])), "l1_distance"),
        (lambda: total_variation(np.eye(2), np.eye(3)), "same number"),
        (lambda: total_variation(np.full((1, 2), 0.6), np.eye(2)), "at state 0"),
        (lambda: total_variation(np.array([[np.nan, 1.0]]), np.eye(2)), "finite"),
        (lambda: total_variation(np.array([0]), np.eye(2)), "shape"),
        (lambda: l1_distance(np.zeros((1, 2)), np.zeros((1, 3))), "same number"),
        (lambda: l1_distance(np.zeros((1, 2, 2)), np.zeros((1, 2))), "shape"),
        (lambda: l1_distance([np.inf], [0.0]), "finite"),
        (lambda: reward_difference(np.zeros((1, 2)), np.zeros(2)), "one reward per state"),
        (lambda: reward_difference([np.nan], [0.0]), "finite"),
    ],
)
def test_bad_input_is_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("actions", [np.array([1j]), np.array(["a"]), np.array([None])])
def test_only_real_numbers_have_distances(actions):
    with pytest.raises(UserError, match="must be real numbers"):
        l1_distance(actions, actions)
    with pytest.raises(UserError, match="must be real numbers"):
        total_variation(actions[:, None], actions[:, None])
