import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_mdps import operator, policy_rows, random_mdp, random_policy

from pisces.errors import UserError
from pisces.metrics import (
    FiniteMDP,
    bisimulation_metric,
    chain_metric,
    optimal_transport,
    pi_bisimulation_metric,
    policy_similarity_metric,
    reward_difference,
    sequence_metric,
    total_variation,
)

SEEDS = st.integers(0, 2**32 - 1)
DISCOUNTS = st.sampled_from([0.0, 0.5, 0.9, 0.97])


def random_pair(seed, decimals=None):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, size=2)
    x, y = (random_mdp(rng, size, support=int(rng.integers(1, 6)), decimals=decimals) for size in sizes)
    return x, random_policy(rng, x), y, random_policy(rng, y)


@given(SEEDS, DISCOUNTS, st.sampled_from([None, 0]))
def test_psm_is_the_fixed_point_of_its_operator(seed, discount, decimals):
    x, policy_x, y, policy_y = random_pair(seed, decimals)
    result = policy_similarity_metric(x, y, discount=discount, policy_x=policy_x, policy_y=policy_y, tolerance=1e-9)
    rows_x, rows_y = policy_rows(x, policy_x), policy_rows(y, policy_y)
    image = operator(result.distance, total_variation(policy_x, policy_y), rows_x, rows_y, discount)
    assert result.error_bound <= 1e-9
    np.testing.assert_allclose(image, result.distance, atol=2e-9)


@given(SEEDS, DISCOUNTS, st.sampled_from([None, 0]))
def test_bisimulation_is_the_fixed_point_of_its_operator(seed, discount, decimals):
    x, _, y, _ = random_pair(seed, decimals)
    result = bisimulation_metric(x, y, discount=discount, tolerance=1e-9)
    images = []
    for action in range(2):
        rows_x, rows_y = (m.transitions.toarray()[action::2] for m in (x, y))
        cost = reward_difference(x.rewards[:, action], y.rewards[:, action])
        images.append(operator(result.distance, cost, rows_x, rows_y, discount))
    np.testing.assert_allclose(np.max(images, axis=0), result.distance, atol=2e-9)


@given(SEEDS, st.sampled_from([0.3, 0.9]))
def test_the_operator_contracts_by_the_discount(seed, discount):
    x, policy_x, y, policy_y = random_pair(seed)
    rng = np.random.default_rng(seed)
    first, second = rng.random((2, x.n_states, y.n_states))
    rows = policy_rows(x, policy_x), policy_rows(y, policy_y)
    images = [operator(d, total_variation(policy_x, policy_y), *rows, discount) for d in (first, second)]
    assert np.abs(images[0] - images[1]).max() <= discount * np.abs(first - second).max() + 1e-12


@given(SEEDS, DISCOUNTS)
def test_pseudometric_axioms(seed, discount):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 6, decimals=0)
    policy = random_policy(rng, mdp, deterministic=bool(seed % 2))
    for result in (
        policy_similarity_metric(mdp, discount=discount, policy_x=policy, tolerance=1e-8),
        pi_bisimulation_metric(mdp, discount=discount, policy_x=policy, tolerance=1e-8),
        bisimulation_metric(mdp, discount=discount, tolerance=1e-8),
    ):
        d = result.distance
        assert (d >= 0).all()
        assert (np.diagonal(d) == 0).all()
        np.testing.assert_array_equal(d, d.T)
        assert (d[:, None, :] <= d[:, :, None] + d[None, :, :] + 3e-8).all()


@given(SEEDS, st.sampled_from([0.5, 0.9, 0.99]))
def test_half_the_pairs_give_the_same_as_all(seed, discount):
    # An equal copy of the MDP is not known to be the same, so every pair is solved.
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 7)
    copy = FiniteMDP(mdp.transitions, mdp.rewards)
    policy = random_policy(rng, mdp)
    half = policy_similarity_metric(mdp, discount=discount, policy_x=policy, tolerance=1e-8)
    full = policy_similarity_metric(mdp, copy, discount=discount, policy_x=policy, policy_y=policy, tolerance=1e-8)
    assert np.abs(half.distance - full.distance).max() <= half.error_bound + full.error_bound


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99, 0.999])
@pytest.mark.parametrize("tolerance", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("seed", range(3))
def test_the_certified_bound_holds_against_a_much_tighter_solve(discount, tolerance, seed):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 25, support=4, decimals=seed % 2 or None)
    policy = random_policy(rng, mdp)
    for metric, arguments in ((policy_similarity_metric, {"policy_x": policy}), (bisimulation_metric, {})):
        loose = metric(mdp, discount=discount, tolerance=tolerance, **arguments)
        tight = metric(mdp, discount=discount, tolerance=1e-8 / (1 - discount) * 0.1, **arguments)
        assert loose.error_bound <= tolerance
        assert np.abs(loose.distance - tight.distance).max() <= loose.error_bound + tight.error_bound


@given(SEEDS)
def test_permuting_states_permutes_the_answer(seed):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 8, decimals=0)
    policy = random_policy(rng, mdp)
    order = rng.permutation(8)
    dense = mdp.transitions.toarray().reshape(8, 2, 8)
    moved = FiniteMDP(dense[order][:, :, order], mdp.rewards[order])
    result = policy_similarity_metric(mdp, discount=0.9, policy_x=policy, tolerance=1e-9).distance
    again = policy_similarity_metric(moved, discount=0.9, policy_x=policy[order], tolerance=1e-9).distance
    np.testing.assert_allclose(again, result[np.ix_(order, order)], atol=2e-9)


@given(SEEDS, st.sampled_from([0.0, 0.9, 0.99]))
def test_deterministic_mdps_agree_with_the_sequence_metric(seed, discount):
    rng = np.random.default_rng(seed)
    policies = [rng.dirichlet(np.ones(3), rng.integers(1, 12)) for _ in range(2)]
    mdps = []
    for policy in policies:  # a line that ends in an absorbing state, whatever the action
        successor = np.minimum(np.arange(len(policy)) + 1, len(policy) - 1)
        mdps.append(
            FiniteMDP(np.repeat(np.eye(len(policy))[successor][:, None], 3, axis=1), np.zeros((len(policy), 3)))
        )
    result = policy_similarity_metric(
        mdps[0], mdps[1], discount=discount, policy_x=policies[0], policy_y=policies[1], tolerance=1e-9
    )
    expected = sequence_metric(total_variation(*policies), discount)
    np.testing.assert_allclose(result.distance, expected, atol=1e-9)
    assert result.iterations == 2  # one pass, and one that certifies it


@pytest.mark.parametrize(("reward_x", "reward_y", "discount"), [(1.0, 5.0, 0.9), (1.0, 1.5, 0.5), (2.0, 0.5, 0.8)])
def test_cake_example_by_its_closed_forms(reward_x, reward_y, discount):
    # Appendix: states 0 -> 1 -> 2 by cake (action 0) and then no cake (action 1); 0 -> 2 by no cake.
    transitions = np.zeros((3, 2, 3))
    transitions[0, 0, 1] = transitions[0, 1, 2] = transitions[1, :, 2] = transitions[2, :, 2] = 1
    mdps = []
    for reward in (reward_x, reward_y):
        rewards = np.zeros((3, 2))
        rewards[0, 0] = rewards[1, 1] = reward
        mdps.append(FiniteMDP(transitions, rewards))
    gap = abs(reward_y - reward_x)
    full = bisimulation_metric(*mdps, discount=discount, tolerance=1e-9).distance
    optimal = pi_bisimulation_metric(mdps[0], mdps[1], discount=discount, tolerance=1e-9).distance
    similar = policy_similarity_metric(mdps[0], mdps[1], discount=discount, tolerance=1e-9).distance
    assert full[0, 0] == pytest.approx((1 + discount) * gap)
    assert optimal[0, 0] == pytest.approx((1 + discount) * gap)
    assert optimal[0, 1] == pytest.approx(gap + discount * reward_x)
    if reward_y >= reward_x:
        assert full[0, 1] == pytest.approx(max((1 + discount) * reward_x, reward_y))
    assert similar[0, 0] == similar[1, 1] == similar[2, 2] == 0
    if reward_y > (1 + 1 / discount) * reward_x:  # bisimulation pairs x0 with the wrong state, the PSM does not
        assert full[0, 1] < full[0, 0]
        assert optimal[0, 1] < optimal[0, 0]


def test_rewards_can_be_far_apart_where_policies_are_equal():
    # Proposition: zero PSM, and a pi-bisimulation distance of (max - min reward) / (1 - discount).
    x, y = FiniteMDP(np.ones((1, 2, 1)), [[1.0, 0.0]]), FiniteMDP(np.ones((1, 2, 1)), [[9.0, 0.0]])
    assert policy_similarity_metric(x, y, discount=0.9).distance[0, 0] == 0
    assert pi_bisimulation_metric(x, y, discount=0.9).distance[0, 0] == pytest.approx(80, abs=1e-6)


@given(SEEDS)
def test_pi_bisimulation_bounds_value_differences(seed):
    from pisces.metrics import policy_values

    x, policy_x, y, policy_y = random_pair(seed)
    result = pi_bisimulation_metric(x, y, discount=0.9, policy_x=policy_x, policy_y=policy_y, tolerance=1e-8)
    values_x, values_y = policy_values(x, policy_x, 0.9), policy_values(y, policy_y, 0.9)
    assert (np.abs(values_x[:, None] - values_y[None]) <= result.distance + 1e-7).all()


def test_a_cost_that_is_no_metric_takes_the_slower_correct_path():
    rng = np.random.default_rng(3)
    mdp = random_mdp(rng, 6)
    policy = random_policy(rng, mdp)

    def one_sided(a, b):
        return np.maximum(np.asarray(a)[:, None, 0] - np.asarray(b)[None, :, 0], 0) + 0.1

    result = policy_similarity_metric(mdp, discount=0.9, policy_x=policy, cost=one_sided, tolerance=1e-9)
    rows = policy_rows(mdp, policy)
    image = operator(result.distance, one_sided(policy, policy), rows, rows, 0.9)
    np.testing.assert_allclose(result.distance, image, atol=2e-9)
    assert np.abs(result.distance - result.distance.T).max() > 1e-3
    assert (np.diagonal(result.distance) > 0).all()


@pytest.mark.parametrize("scale", [2.0**140, 2.0**330, 2.0**-150])
def test_bounds_hold_for_costs_beyond_single_precision(scale):
    rng = np.random.default_rng(3)
    rows, rewards = rng.dirichlet(np.ones(12), (12, 3)), rng.random((12, 3))
    exact = bisimulation_metric(FiniteMDP(rows, rewards), FiniteMDP(rows, rewards), discount=0.9, tolerance=1e-9)
    mdp = FiniteMDP(rows, scale * rewards)
    result = bisimulation_metric(mdp, discount=0.9, tolerance=1e-6 * scale)
    assert np.abs(result.distance / scale - exact.distance).max() <= result.error_bound / scale + 1e-9


def test_a_discount_in_single_precision_is_taken_for_what_it_is():
    discount = np.float32(0.999)
    assert sequence_metric([[1.0]], discount)[0, 0] == 1 / (1 - float(discount))
    mdp = FiniteMDP(np.ones((1, 1, 1)), np.ones((1, 1)))
    other = FiniteMDP(np.ones((1, 1, 1)), np.zeros((1, 1)))
    result = bisimulation_metric(mdp, other, discount=discount)
    assert type(result.error_bound) is float
    np.testing.assert_allclose(result.distance, 1 / (1 - float(discount)), rtol=1e-12)


def test_results_can_be_told_apart_and_progress_must_be_a_function():
    mdp = FiniteMDP(np.full((2, 1, 2), 0.5), np.zeros((2, 1)))
    with pytest.raises(UserError, match=r"progress must be a function of .* got 1"):
        policy_similarity_metric(mdp, discount=0.5, progress=1)
    one, other = (optimal_transport([[1.0]], [1.0], [1.0]) for _ in range(2))
    assert len({one, other, one}) == 2
    assert (one == one, one == other) == (True, False)


@given(SEEDS, DISCOUNTS)
def test_chain_metric_equals_the_metric_of_an_mdp_with_one_action(seed, discount):
    rng = np.random.default_rng(seed)
    x, y = random_mdp(rng, 6, actions=1), random_mdp(rng, 5, actions=1)
    expected = bisimulation_metric(x, y, discount=discount, tolerance=1e-6)
    cost = reward_difference(x.rewards[:, 0], y.rewards[:, 0])
    for convert in (lambda rows: rows, lambda rows: rows.tocoo(), lambda rows: rows.toarray().tolist()):
        chains = (convert(x.transitions), convert(y.transitions))
        result = chain_metric(*chains, cost=cost, discount=discount, tolerance=1e-6)
        np.testing.assert_array_equal(result.distance, expected.distance)
    within = chain_metric(x.transitions, cost=total_variation(np.arange(6), np.arange(6)), discount=discount).distance
    np.testing.assert_array_equal(within, within.T)
    assert (np.diagonal(within) == 0).all()


@pytest.mark.parametrize(
    ("transitions", "cost", "words"),
    [
        (np.eye(2)[0], np.zeros((2, 2)), r"\[n, n\] with n >= 1, got shape \[2\]"),
        (np.ones((1, 2)), np.zeros((2, 2)), r"got shape \[1, 2\]"),
        (np.ones((2, 2)), np.zeros((2, 2)), "sum of 2.0 at state 0"),
        (np.array([[1.0, 0.0], [1.5, -0.5]]), np.zeros((2, 2)), "got -0.5 at state 1, next state 1"),
        (np.eye(2), np.zeros((2, 3)), r"cost of shape \(2, 2\), got \(2, 3\)"),
    ],
)
def test_bad_chains_are_explained(transitions, cost, words):
    with pytest.raises(UserError, match=words):
        chain_metric(transitions, cost=cost, discount=0.9)


def test_one_mdp_stands_for_both_and_a_second_policy_is_compared_with_the_first():
    rng = np.random.default_rng(0)
    mdp = random_mdp(rng, 5)
    policy, other = random_policy(rng, mdp), random_policy(rng, mdp)
    for metric in (policy_similarity_metric, pi_bisimulation_metric):
        within = metric(mdp, discount=0.9, policy_x=policy).distance
        np.testing.assert_array_equal(within, metric(mdp, mdp, discount=0.9, policy_x=policy, policy_y=policy).distance)
        np.testing.assert_array_equal(
            metric(mdp, discount=0.9, policy_x=policy, policy_y=other).distance,
            metric(mdp, mdp, discount=0.9, policy_x=policy, policy_y=other).distance,
        )
        assert np.diagonal(metric(mdp, mdp, discount=0.9, policy_x=policy).distance).max() > 0  # against the optimum
