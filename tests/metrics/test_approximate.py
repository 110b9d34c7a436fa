import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_mdps import policy_rows, random_mdp, random_policy

from pisces.errors import UserError
from pisces.metrics import (
    FiniteMDP,
    bisimulation_metric,
    l1_distance,
    mico_distance,
    pi_bisimulation_metric,
    reward_difference,
)

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.sampled_from([0.0, 0.5, 0.95]))
def test_mico_solves_its_linear_system(seed, discount):
    rng = np.random.default_rng(seed)
    x, y = random_mdp(rng, 4), random_mdp(rng, 6)
    policy_x, policy_y = random_policy(rng, x), random_policy(rng, y)
    rows_x, rows_y = policy_rows(x, policy_x), policy_rows(y, policy_y)
    cost = reward_difference(x.policy_rewards(policy_x), y.policy_rewards(policy_y))
    exact = np.linalg.solve(np.eye(24) - discount * np.kron(rows_x, rows_y), cost.ravel()).reshape(4, 6)
    result = mico_distance(x, y, discount=discount, policy_x=policy_x, policy_y=policy_y, tolerance=1e-6)
    assert result.error_bound <= 1e-6
    assert np.abs(result.distance - exact).max() <= result.error_bound


@given(SEEDS)
def test_mico_bounds_pi_bisimulation_from_above(seed):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 6)
    policy = random_policy(rng, mdp)
    loose = mico_distance(mdp, discount=0.9, policy_x=policy).distance
    tight = pi_bisimulation_metric(mdp, discount=0.9, policy_x=policy).distance
    assert (tight <= loose + 2e-6).all()
    assert np.diagonal(loose).max() > 0


def test_bad_input():
    mdp = random_mdp(np.random.default_rng(0), 3)
    policy = np.full((3, 2), 0.5)
    with pytest.raises(UserError, match="tolerance"):
        mico_distance(mdp, discount=0.9, policy_x=policy, tolerance=0.0)


def test_metrics_do_without_torch():
    script = "import sys, pisces.metrics; print('torch' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "False\n"
    )


def test_costs_that_are_not_numbers_are_explained():
    mdp = FiniteMDP(np.eye(2)[:, None, :], np.ones((2, 1)))
    with pytest.raises(UserError, match="finite costs"):
        mico_distance(mdp, discount=0.9, cost=lambda x, y: np.full((2, 2), np.nan))


def test_bounds_hold_for_rewards_with_a_large_common_part():
    rewards = np.array([[1e12 + 1, 1e12 + 3], [1e12, 1e12 + 2]])
    mdp = FiniteMDP(np.eye(2)[:, None, :].repeat(2, axis=1), rewards)
    policy = np.array([[0.3, 0.7], [0.1, 0.9]])
    for metric in (pi_bisimulation_metric, mico_distance):
        result = metric(mdp, discount=0.99, policy_x=policy, tolerance=1.0)
        # Expected rewards differ by 1e12 + 2.4 - (1e12 + 1.8) = 0.6, for ever.
        assert abs(result.distance[0, 1] - 60) <= result.error_bound


TWO_ENDS = FiniteMDP(np.eye(2)[:, None, :], [[0.0], [1.0]])


@pytest.mark.parametrize("discount", [0.99, 0.9999, 0.99999])
def test_mico_of_chains_that_do_not_mix_takes_few_sweeps(discount):
    cycle = FiniteMDP(np.roll(np.eye(3), 1, axis=1)[:, None, :], [[0.0], [1.0], [5.0]])
    for mdp in (TWO_ENDS, cycle):
        result = mico_distance(mdp, discount=discount)
        rows = policy_rows(mdp, np.ones((mdp.n_states, 1)))
        n = mdp.n_states
        cost = reward_difference(mdp.rewards[:, 0], mdp.rewards[:, 0])
        exact = np.linalg.solve(np.eye(n * n) - discount * np.kron(rows, rows), cost.ravel()).reshape(n, n)
        assert np.abs(result.distance - exact).max() <= result.error_bound + 1e-9 / (1 - discount)
        assert result.iterations < 200


@pytest.mark.parametrize("metric", [mico_distance, pi_bisimulation_metric, bisimulation_metric])
def test_without_a_tolerance_the_rounding_error_is_enough(metric):
    result = metric(TWO_ENDS, discount=0.999999)
    assert 1e-6 < result.error_bound < 1.0
    assert abs(result.distance[0, 1] - 1e6) <= result.error_bound
    with pytest.raises(UserError, match="expected a tolerance of at least"):
        metric(TWO_ENDS, discount=0.999999, tolerance=1e-6)


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e9])
@pytest.mark.parametrize("cost", [l1_distance, lambda x, y: np.abs(x[:, None] - y)])
@pytest.mark.parametrize("metric", [mico_distance, pi_bisimulation_metric, bisimulation_metric])
def test_the_usual_tolerance_follows_the_rewards_for_any_cost(metric, cost, unit):
    mdp = random_mdp(np.random.default_rng(0), 4)
    scaled = FiniteMDP(mdp.transitions, unit * mdp.rewards)
    result, plain = metric(scaled, discount=0.9, cost=cost), metric(mdp, discount=0.9)
    np.testing.assert_allclose(result.distance / unit, plain.distance, atol=1e-4)
    assert result.error_bound <= 1e-5 * result.distance.max()


def test_a_relative_tolerance_that_is_missed_is_reported():
    rng = np.random.default_rng(0)
    mdp = FiniteMDP(rng.dirichlet(np.ones(10), (10, 2)), 1e9 + 1e-3 * rng.random((10, 2)))
    with pytest.warns(UserWarning, match="relative_tolerance=0.01 is not reached"):
        pi_bisimulation_metric(mdp, discount=0.99, relative_tolerance=1e-2)
    equal = FiniteMDP(mdp.transitions, np.ones((10, 2)))
    assert pi_bisimulation_metric(equal, discount=0.99, relative_tolerance=1e-2).distance.max() == 0


def test_the_smallest_tolerance_that_is_named_is_accepted():
    rng = np.random.default_rng(0)
    x, y = random_mdp(rng, 5), random_mdp(rng, 6)
    for metric in (pi_bisimulation_metric, mico_distance):
        with pytest.raises(UserError, match="expected a tolerance of at least") as error:
            metric(x, y, discount=0.99, tolerance=1e-300)
        named = float(str(error.value).split("at least ")[1].split(",")[0])
        assert metric(x, y, discount=0.99, tolerance=named).error_bound <= named
