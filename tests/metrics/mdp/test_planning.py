import gymnasium
import numpy as np
import pytest
import scipy.sparse
from exact_planning import exact_action_values
from hypothesis import given
from hypothesis import strategies as st
from random_mdps import random_mdp

from pisces.errors import UserError
from pisces.metrics import FiniteMDP, optimal_policy, policy_iteration, policy_similarity_metric, policy_values
from pisces.metrics.mdp import bellman

SEEDS = st.integers(0, 2**32 - 1)


def corridor(states, reward=1.0):
    """Action 0 goes left, action 1 right; the right end pays."""
    place = np.arange(states)
    following = np.stack([np.maximum(place - 1, 0), np.minimum(place + 1, states - 1)], axis=1).ravel()
    entries = (np.ones(2 * states), (np.arange(2 * states), following))
    rewards = np.zeros((states, 2))
    rewards[-1, 1] = reward
    return FiniteMDP(scipy.sparse.coo_array(entries, shape=(2 * states, states)), rewards)


def slippery_grid(size, slip):
    """Four moves that slip to either side; entering the last cell pays 1 and ends."""
    cells, moves = np.arange(size * size).reshape(size, size), [(0, -1), (1, 0), (0, 1), (-1, 0)]
    transitions = np.zeros((size * size, 4, size * size))
    for (i, j), cell in np.ndenumerate(cells):
        for action in range(4):
            for turn, probability in ((0, 1 - slip), (1, slip / 2), (3, slip / 2)):
                di, dj = moves[(action + turn) % 4]
                to = cells[np.clip(i + di, 0, size - 1), np.clip(j + dj, 0, size - 1)]
                transitions[cell, action, to] += probability
    transitions[-1] = np.eye(size * size)[-1]
    rewards = transitions[:, :, -1].copy()
    rewards[-1] = 0
    return FiniteMDP(transitions, rewards)


def test_the_corridor_leads_right_from_everywhere():
    mdp = corridor(400)
    plan = policy_iteration(mdp, 0.9)
    np.testing.assert_array_equal(plan.optimal_actions, np.tile([False, True], (400, 1)))
    np.testing.assert_allclose(plan.values, 0.9 ** np.arange(399, -1, -1) * 10, rtol=1e-11)
    assert not plan.tied_states.any()
    result = policy_similarity_metric(mdp, discount=0.9, tolerance=1e-9)
    np.testing.assert_allclose(result.distance, 0, atol=1e-9)
    assert result.definition.tied_states == (0, 0)


@pytest.mark.parametrize(("states", "reward"), [(400, 1e-8), (400, 1e8), (4000, 1e-300), (4000, 1e300), (10_000, 1.0)])
def test_the_corridor_of_any_length_and_unit(states, reward):
    assert policy_iteration(corridor(states, reward), 0.9).optimal_actions[:, 0].sum() == 0


def test_values_beyond_the_range_of_floats_are_reported_as_ties():
    plan = policy_iteration(corridor(20_000), 0.9)
    assert plan.tied_states[:6000].all()
    assert not plan.tied_states[8000:].any()
    np.testing.assert_array_equal(plan.policy[:6000], np.tile([1.0, 0.0], (6000, 1)))
    np.testing.assert_array_equal(plan.uniform_policy[:6000], 0.5)


@pytest.mark.parametrize(
    ("mdp", "discount"),
    [
        (FiniteMDP.from_gymnasium(gymnasium.make("FrozenLake-v1", map_name="8x8")), 0.3),
        (FiniteMDP.from_gymnasium(gymnasium.make("FrozenLake-v1", map_name="8x8", is_slippery=False)), 0.3),
        (slippery_grid(12, 0.2), 0.5),
        (slippery_grid(12, 2 / 3), 0.5),
    ],
)
def test_optimal_actions_agree_with_sixty_digits(mdp, discount):
    plan = policy_iteration(mdp, discount)
    exact, gaps = exact_action_values(mdp, discount)
    assert plan.optimal_actions[gaps <= 1e-15].all()  # equal up to the rounding of the MDP's own numbers
    assert not plan.optimal_actions[gaps > 1e-11].any()
    assert (np.abs(plan.action_values - exact) <= plan.action_errors + 1e-300).all()
    for ties in ("first", "uniform"):
        policy = optimal_policy(mdp, discount, ties=ties)
        np.testing.assert_allclose(policy_values(mdp, policy, discount), exact.max(axis=1), rtol=1e-9, atol=1e-300)


def test_slippery_grid_of_400_states_has_ties_on_its_diagonal_only():
    plan = policy_iteration(slippery_grid(20, 0.2), 0.5)
    expected = np.eye(20, dtype=bool).ravel()
    np.testing.assert_array_equal(plan.tied_states, expected)  # the goal, the last cell, included
    down_or_right = plan.optimal_actions[~expected][:, [1, 2]].any(axis=1)
    assert down_or_right.all()


@given(SEEDS, st.sampled_from([0.0, 0.5, 0.9]), st.sampled_from([None, 0]), st.sampled_from([1e-8, 1.0, 1e8]))
def test_certified_errors_hold_and_no_optimal_action_is_missed(seed, discount, decimals, unit):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 4, actions=3, support=2, decimals=decimals)
    mdp = FiniteMDP(mdp.transitions, unit * mdp.rewards)
    plan = policy_iteration(mdp, discount)
    exact, _ = exact_action_values(mdp, discount, digits=40)
    assert (np.abs(plan.action_values - exact) <= plan.action_errors).all()
    assert plan.action_errors.max() <= 1e-12 * max(np.abs(exact).max(), unit)
    best = exact.max(axis=1, keepdims=True)
    assert plan.optimal_actions[exact >= best].all()
    assert not plan.optimal_actions[exact < best - 3 * plan.action_errors.max()].any()
    assert np.abs(plan.values - best[:, 0]).max() <= plan.error_bound


@given(SEEDS)
def test_the_choice_between_ties_does_not_depend_on_the_order_of_states(seed):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 6, actions=3, support=3, decimals=0)
    order = rng.permutation(6)
    dense = mdp.transitions.toarray().reshape(6, 3, 6)
    moved = FiniteMDP(dense[order][:, :, order], mdp.rewards[order])
    policies = [optimal_policy(one, 0.95) for one in (mdp, moved)]
    np.testing.assert_array_equal(policies[0][order], policies[1])


def test_a_failed_certificate_falls_back_to_one_bound_for_all(monkeypatch):
    mdp = corridor(30)
    monkeypatch.setattr(bellman, "CERTIFICATE_ATTEMPTS", 0)
    plan = policy_iteration(mdp, 0.9)
    exact, _ = exact_action_values(mdp, 0.9)
    assert (np.abs(plan.action_values - exact) <= plan.action_errors).all()
    assert plan.action_errors.min() > 1e-15  # as at the end that pays, which a bound per state falls far below
    assert not plan.optimal_actions[:, 0].any()


@pytest.mark.parametrize("limits", [{"MAX_IMPROVEMENTS": 1, "MAX_SWEEPS": 1}, {"MAX_IMPROVEMENTS": 0, "MAX_SWEEPS": 3}])
def test_an_unfinished_plan_knows_its_error(limits, monkeypatch):
    mdp = random_mdp(np.random.default_rng(1), 12)
    exact = policy_iteration(mdp, 0.95)
    for name, value in limits.items():
        monkeypatch.setattr(bellman, name, value)
    plan = policy_iteration(mdp, 0.95)
    assert (np.abs(plan.action_values - exact.action_values) <= plan.action_errors + exact.action_errors).all()
    assert plan.optimal_actions[exact.optimal_actions].all()


def test_ties_are_counted_in_results_and_can_be_shared():
    mdp = FiniteMDP(np.eye(3)[:, None].repeat(2, axis=1), np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]))
    first = policy_similarity_metric(mdp, discount=0.5)
    shared = policy_similarity_metric(mdp, discount=0.5, policy_x="optimal-uniform")
    assert first.definition.tied_states == shared.definition.tied_states == (1, 1)
    np.testing.assert_allclose(first.distance[0], [0, 2, 0], atol=1e-6)
    np.testing.assert_allclose(shared.distance[0], [0, 1, 1], atol=1e-6)
    np.testing.assert_array_equal(shared.definition.policies[0], [[0.5, 0.5], [0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda mdp: optimal_policy(mdp, 0.9, ties="last"), "unknown ties 'last'"),
        (lambda mdp: optimal_policy(mdp, 1), "discount must be in"),
        (lambda mdp: optimal_policy([[1]], 0.9), "mdp must be a FiniteMDP, got list"),
        (lambda mdp: policy_similarity_metric(mdp, discount=0.9, policy_x="optima"), "did you mean 'optimal'"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(UserError, match=words):
        call(random_mdp(np.random.default_rng(0), 3))
