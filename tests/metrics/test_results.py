import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_mdps import random_mdp, random_policy

from pisces.errors import UserError
from pisces.metrics import (
    FiniteMDP,
    bisimulation_metric,
    chain_metric,
    l1_distance,
    mico_distance,
    nearest_neighbors,
    pi_bisimulation_metric,
    policy_similarity_metric,
    transfer_bound,
)

RNG = np.random.default_rng(0)
X, Y = random_mdp(RNG, 5), random_mdp(RNG, 4)
METRICS = {
    "policy-similarity": policy_similarity_metric,
    "pi-bisimulation": pi_bisimulation_metric,
    "bisimulation": bisimulation_metric,
    "mico": mico_distance,
}


@pytest.mark.parametrize("name", METRICS)
def test_results_record_what_they_belong_to(name):
    between, within = METRICS[name](X, Y, discount=0.9), METRICS[name](X, discount=np.float32(0.5))
    assert (between.definition.metric, between.definition.discount) == (name, 0.9)
    assert between.definition.n_states == (5, 4)
    assert between.definition.n_actions == (2, 2)
    assert (between.definition.within, within.definition.within) == (False, True)
    assert within.definition.discount == 0.5
    expected = "total_variation" if name == "policy-similarity" else "reward_difference"
    assert between.definition.cost == expected
    assert (between.definition.policies is None) == (name == "bisimulation")
    if name != "bisimulation":
        policy = random_policy(RNG, X)
        apart = METRICS[name](X, discount=0.9, policy_x=policy, policy_y=random_policy(RNG, X))
        assert not apart.definition.within
        np.testing.assert_allclose(apart.definition.policies[0], policy)


def test_chains_record_what_they_belong_to():
    definition = chain_metric(np.eye(2), cost=np.eye(2), discount=0.25).definition
    assert (definition.metric, definition.discount, definition.n_states) == ("chain", 0.25, (2, 2))


def test_the_transfer_bound_takes_its_own_metric_and_discount_only():
    result = policy_similarity_metric(X, Y, discount=0.9)
    np.testing.assert_array_equal(transfer_bound(result), transfer_bound(result, 0.9))
    with pytest.raises(UserError, match=r"discount must be the metric's, 0.9, got 0.99"):
        transfer_bound(result, 0.99)
    for other in (bisimulation_metric, pi_bisimulation_metric, mico_distance):
        with pytest.raises(UserError, match="holds for policy_similarity_metric with cost total_variation, got"):
            transfer_bound(other(X, Y, discount=0.9), 0.9)
    with pytest.raises(UserError, match="with cost l1_distance"):
        transfer_bound(policy_similarity_metric(X, Y, discount=0.9, cost=l1_distance))
    with pytest.raises(UserError, match="pass discount="):
        transfer_bound(result.distance)


def test_neighbors_within_one_mdp_leave_out_the_state_itself():
    result = bisimulation_metric(X, discount=0.9)
    found = nearest_neighbors(result, count=9)
    assert found.nearest_x.shape == found.nearest_y.shape == (5, 4)
    for state in range(5):
        assert sorted(found.nearest_x[state]) == sorted(found.nearest_y[state]) == sorted(set(range(5)) - {state})
        order = result.distance[found.nearest_x[state], state]
        assert (np.diff(order) >= 0).all()
    np.testing.assert_array_equal(nearest_neighbors(result, include_self=True).nearest_x[:, 0], np.arange(5))
    np.testing.assert_array_equal(nearest_neighbors(result.distance).nearest_x[:, 0], np.arange(5))
    np.testing.assert_array_equal(
        nearest_neighbors(result.distance, include_self=False).nearest_x, found.nearest_x[:, :1]
    )
    assert nearest_neighbors(bisimulation_metric(X, Y, discount=0.9), count=9).nearest_x.shape == (4, 5)
    with pytest.raises(UserError, match="n >= 2"):
        nearest_neighbors([[0.0]], include_self=False)


@pytest.mark.parametrize("metric", [pi_bisimulation_metric, bisimulation_metric, mico_distance])
@pytest.mark.parametrize("unit", [1e-8, 1e6, 1e8])
def test_the_unit_of_rewards_does_not_matter(metric, unit):
    scaled = [FiniteMDP(mdp.transitions, unit * mdp.rewards) for mdp in (X, Y)]
    one, other = metric(X, Y, discount=0.99), metric(*scaled, discount=0.99)
    assert other.error_bound <= 1e-5 * unit
    np.testing.assert_allclose(other.distance / unit, one.distance, atol=one.error_bound + other.error_bound / unit)


@given(st.sampled_from(list(METRICS.values())), st.sampled_from([1e-3, 1e-7]), st.sampled_from([0.5, 0.99]))
def test_a_relative_tolerance_is_relative_to_the_largest_distance(metric, tolerance, discount):
    result = metric(X, Y, discount=discount, relative_tolerance=tolerance)
    tight = metric(X, Y, discount=discount, relative_tolerance=1e-9).distance
    assert result.error_bound <= tolerance * tight.max()
    assert np.abs(result.distance - tight).max() <= tolerance * tight.max() * 1.01


def test_a_relative_tolerance_reaches_small_distances():
    # Distances of 1e-5 of what rewards allow: the first guess of the scale is too coarse.
    rewards = np.array([[0.0, 5.0], [1e-5, 5.0], [0.0, 5.0]])
    mdp = FiniteMDP(np.eye(3)[:, None].repeat(2, axis=1), rewards)
    result = pi_bisimulation_metric(mdp, discount=0.9, policy_x=[0, 0, 0], relative_tolerance=1e-6)
    assert result.distance[0, 1] == pytest.approx(1e-4, rel=1e-6)
    assert result.error_bound <= 1e-10


@pytest.mark.parametrize("metric", [pi_bisimulation_metric, bisimulation_metric, mico_distance])
@pytest.mark.parametrize("reward", [0.0, 1.0, 1e8])
def test_equal_rewards_are_at_distance_zero(metric, reward):
    mdp = FiniteMDP(X.transitions, np.full((5, 2), reward))
    for options in ({}, {"relative_tolerance": 1e-6}):
        result = metric(mdp, discount=0.99, **options)
        assert np.abs(result.distance).max() <= 1e-6 * max(reward, 1)


def test_one_tolerance_at_a_time():
    with pytest.raises(UserError, match="not both"):
        bisimulation_metric(X, discount=0.9, tolerance=1e-3, relative_tolerance=1e-3)


def test_mico_refuses_pairs_with_a_hint():
    with pytest.raises(UserError, match="leave out pairs"):
        mico_distance(X, discount=0.9, pairs=[[0, 1]])
