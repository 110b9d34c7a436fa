import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_mdps import random_mdp, random_policy

from pisces.errors import UserError
from pisces.metrics import (
    FiniteMDP,
    approximation_bound,
    augmentation_invariance,
    bisimulation_metric,
    nearest_neighbors,
    optimal_policy,
    pi_bisimulation_metric,
    policy_divergence,
    policy_similarity_metric,
    transfer_bound,
    transfer_policy,
)

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.sampled_from([0.3, 0.8, 0.95]), st.sampled_from([1e-9, 0.05]))
def test_theorem_1(seed, discount, tolerance):
    rng = np.random.default_rng(seed)
    x, y = random_mdp(rng, 7), random_mdp(rng, 5)
    policy_x, policy_y = (optimal_policy(mdp, discount) for mdp in (x, y))
    result = policy_similarity_metric(
        x, y, discount=discount, policy_x=policy_x, policy_y=policy_y, tolerance=tolerance
    )
    divergence = policy_divergence(y, transfer_policy(result, policy_x), policy_y, discount)
    assert (divergence <= transfer_bound(result, discount) + 1e-9).all()


def loops(*rewards):
    """States that every action leaves as they are: one row of rewards each."""
    states = np.eye(len(rewards))
    return FiniteMDP(np.stack([states] * len(rewards[0]), axis=1), np.array(rewards))


@pytest.mark.parametrize("metric", [pi_bisimulation_metric, bisimulation_metric])
@pytest.mark.parametrize("discount", [0.5, 0.9])
def test_theorem_1_does_not_hold_for_bisimulation(metric, discount):
    """Rewards rate the state with the wrong action as nearest, and no factor of their distance bounds the divergence.

    In x0 the first action pays, in x1 the second one pays three times as much, in y the second one pays.
    """
    for reward in (0.1, 1e-3, 1e-6):
        x, y = loops((reward, 0.0), (0.0, 3 * reward)), loops((0.0, reward))
        policy_x, policy_y = (optimal_policy(mdp, discount) for mdp in (x, y))
        distance = metric(x, y, discount=discount, tolerance=1e-9).distance
        nearest = reward / (1 - discount) if metric is bisimulation_metric else 0.0
        np.testing.assert_allclose(distance[:, 0], [nearest, 2 * reward / (1 - discount)], atol=1e-8)
        divergence = policy_divergence(y, transfer_policy(distance, policy_x), policy_y, discount)
        np.testing.assert_allclose(divergence, 1 / (1 - discount))
        # The theorem's right side with this metric goes to zero with the rewards; the divergence does not.
        bound = (1 + discount) / (1 - discount) * distance.min()
        assert bound < divergence or reward > (1 - discount) / (1 + discount)
        similar = policy_similarity_metric(x, y, discount=discount)
        np.testing.assert_array_equal(transfer_policy(similar, policy_x), policy_y)


def test_zero_distance_transfers_the_optimal_policy():
    rng = np.random.default_rng(0)
    x = random_mdp(rng, 6)
    order = rng.permutation(6)
    y = FiniteMDP(x.transitions.toarray().reshape(6, 2, 6)[order][:, :, order], x.rewards[order])
    policy_x = optimal_policy(x, 0.9)
    result = policy_similarity_metric(x, y, discount=0.9, policy_x=policy_x, tolerance=1e-9)
    np.testing.assert_array_equal(transfer_policy(result, policy_x), optimal_policy(y, 0.9))
    assert transfer_bound(result.distance, 0.9).max() < 1e-6


def test_divergence_is_the_discounted_sum_along_the_acting_policy():
    # 0 -> 1 -> 1: the policies differ by 1 in state 0 and by 1/2 in state 1.
    mdp = FiniteMDP(np.eye(2)[[1, 1]][:, None].repeat(2, axis=1), np.zeros((2, 2)))
    divergence = policy_divergence(mdp, [[1, 0], [0.5, 0.5]], [[0, 1], [1, 0]], 0.5)
    np.testing.assert_allclose(divergence, [1.5, 1.0])


@given(SEEDS, st.sampled_from([0.3, 0.9]))
def test_approximation_bound_holds(seed, discount):
    rng = np.random.default_rng(seed)
    x, y = random_mdp(rng, 5), random_mdp(rng, 4)
    exact = [optimal_policy(mdp, discount) for mdp in (x, y)]
    share = rng.random()
    rough = [(1 - share) * p + share * random_policy(rng, mdp) for p, mdp in zip(exact, (x, y), strict=True)]
    best = policy_similarity_metric(
        x, y, discount=discount, policy_x=exact[0], policy_y=exact[1], tolerance=1e-9
    ).distance
    used = policy_similarity_metric(
        x, y, discount=discount, policy_x=rough[0], policy_y=rough[1], tolerance=1e-9
    ).distance
    assert (np.abs(best - used) <= approximation_bound((x, y), exact, rough, discount=discount) + 1e-8).all()


def test_approximation_bound_of_the_optimal_policies_is_their_error_alone():
    rng = np.random.default_rng(1)
    x, y = random_mdp(rng, 5), random_mdp(rng, 4)
    exact = [optimal_policy(mdp, 0.9) for mdp in (x, y)]
    assert approximation_bound((x, y), exact, exact, discount=0.9).max() <= 2e-6


def test_augmentation_invariance_tells_harmless_from_harmful():
    # A line of 4 states; action 0 goes right and pays at the end. Renaming states is harmless, swapping actions is not.
    right, left = np.minimum(np.arange(4) + 1, 3), np.maximum(np.arange(4) - 1, 0)
    transitions = np.stack([np.eye(4)[right], np.eye(4)[left]], axis=1)
    rewards = np.zeros((4, 2))
    rewards[3, 0] = 1
    mdp, flipped = FiniteMDP(transitions, rewards), FiniteMDP(transitions[:, ::-1], rewards[:, ::-1])
    renamed = FiniteMDP(transitions[::-1][:, :, ::-1], rewards[::-1])
    harmless = augmentation_invariance(mdp, renamed, np.arange(4)[::-1], discount=0.9)
    harmful = augmentation_invariance(mdp, flipped, np.arange(4), discount=0.9)
    np.testing.assert_allclose(harmless, 0, atol=1e-6)
    np.testing.assert_allclose(harmful, 10, atol=1e-5)
    with pytest.raises(UserError, match="4 integers"):
        augmentation_invariance(mdp, flipped, [0, 1], discount=0.9)


def test_nearest_neighbors_both_ways():
    distance = np.array([[0.0, 2.0, 1.0], [1.0, 2.0, np.nan]])
    found = nearest_neighbors(distance, count=2)
    np.testing.assert_array_equal(found.nearest_x, [[0, 1], [0, 1], [0, 1]])
    np.testing.assert_array_equal(found.nearest_y, [[0, 2], [0, 1]])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: nearest_neighbors(np.ones((2, 2)), 0), "count"),
        (lambda: transfer_policy(np.ones((2, 2)), [0]), "policy for 2 states"),
        (lambda: transfer_policy(np.ones(2), [0]), r"distances \[n, m\]"),
        (lambda: transfer_policy(np.array([[0.0, np.nan]]), [0]), "only NaN for state 1"),
        (lambda: transfer_bound(np.ones((1, 1)), 1.0), "discount"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(UserError, match=words):
        call()


def test_states_that_were_compared_with_none_have_no_neighbor():
    distance = np.array([[0.0, 1.0], [np.nan, np.nan]])
    with pytest.raises(UserError, match="state 1 of x"):
        nearest_neighbors(distance)
    with pytest.raises(UserError, match="state 1 of y"):
        nearest_neighbors(distance.T)
    np.testing.assert_array_equal(transfer_policy(distance, [3, 4]), [3, 3])  # asks in one direction only


def test_a_count_or_a_policy_of_another_kind_is_refused():
    with pytest.raises(UserError, match="count of neighbors"):
        nearest_neighbors([[1.0]], 1.5)
    with pytest.raises(UserError, match="a policy for 1 states"):
        transfer_policy([[1.0]], 0)
