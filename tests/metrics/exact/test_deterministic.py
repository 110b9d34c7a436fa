"""Deterministic chains against pointer doubling and exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pisces.errors import UserError
from pisces.metrics import FiniteMDP, bisimulation_metric, chain_metric, total_variation

SEEDS = st.integers(0, 2**32 - 1)


def doubling(next_x, next_y, cost, discount):
    """d = sum_t discount^t cost[next^t, next^t], by doubling the number of steps."""
    distance, power = cost.copy(), discount
    while power > 1e-18:
        distance = distance + power * distance[next_x][:, next_y]
        next_x, next_y, power = next_x[next_x], next_y[next_y], power * power
    return distance


@given(SEEDS, st.sampled_from([0.0, 0.5, 0.99, 0.999]), st.booleans())
def test_agrees_with_pointer_doubling(seed, discount, within):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 20, 2)
    next_x, next_y = rng.integers(n, size=n), rng.integers(m, size=m)
    labels = rng.dirichlet(np.ones(3), n)
    if within:
        result = chain_metric(
            np.eye(n)[next_x], cost=total_variation(labels, labels), discount=discount, tolerance=1e-8
        )
        expected = doubling(next_x, next_x, total_variation(labels, labels), discount)
    else:
        cost = rng.normal(size=(n, m))
        result = chain_metric(np.eye(n)[next_x], np.eye(m)[next_y], cost=cost, discount=discount, tolerance=1e-8)
        expected = doubling(next_x, next_y, cost, discount)
    assert np.abs(result.distance - expected).max() <= result.error_bound + 1e-13 * np.abs(expected).max(initial=1)


@given(SEEDS, st.sampled_from([0.5, 0.9, 0.999]))
def test_the_bound_holds_in_rational_arithmetic(seed, discount):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 7))
    following, cost = rng.integers(size, size=size), rng.random((size, size))
    result = chain_metric(np.eye(size)[following], np.eye(size)[following], cost=cost, discount=discount)
    gamma = Fraction(discount)
    for i in range(size):
        for j in range(size):
            seen, total, factor, (a, b) = {}, Fraction(0), Fraction(1), (i, j)
            while (a, b) not in seen:
                seen[a, b] = (total, factor)
                total, factor = total + factor * Fraction(cost[a, b]), factor * gamma
                a, b = following[a], following[b]
            before, entered = seen[a, b]
            exact = before + (total - before) / (1 - factor / entered)
            assert abs(Fraction(result.distance[i, j]) - exact) <= Fraction(result.error_bound)


@given(SEEDS, st.sampled_from([0.0, 0.9, 0.99]))
def test_the_maximum_over_actions_is_a_fixed_point(seed, discount):
    rng = np.random.default_rng(seed)
    states, actions = int(rng.integers(1, 15)), int(rng.integers(1, 4))
    following = rng.integers(states, size=(states, actions))
    rewards = np.round(rng.normal(size=(states, actions)), int(rng.integers(3)))
    result = bisimulation_metric(FiniteMDP(np.eye(states)[following], rewards), discount=discount, tolerance=1e-9)
    image = np.max(
        [
            np.abs(rewards[:, None, a] - rewards[None, :, a])
            + discount * result.distance[following[:, a]][:, following[:, a]]
            for a in range(actions)
        ],
        axis=0,
    )
    np.testing.assert_allclose(image, result.distance, atol=1e-10)
    assert (np.diagonal(result.distance) == 0).all()


def test_a_tolerance_below_the_rounding_error_is_refused():
    with pytest.raises(UserError, match="rounding error"):
        chain_metric(np.eye(2), cost=[[0.0, 1.0], [1.0, 0.0]], discount=0.999999, tolerance=1e-12)
