import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mdps import random_mdp

from pisces.errors import UserError
from pisces.metrics import (
    EstimatedMDP,
    FiniteMDP,
    bisimulation_metric,
    bootstrap_metric,
    mico_distance,
    optimal_policy,
    pi_bisimulation_metric,
    policy_similarity_metric,
)


def draw(rng, mdp, count):
    """The same number of samples of every state and action."""
    pairs = np.tile(np.arange(mdp.n_states * mdp.n_actions), count)
    states, actions = pairs // mdp.n_actions, pairs % mdp.n_actions
    rows = mdp.transitions.toarray()[pairs]
    following = np.array([rng.choice(mdp.n_states, p=row) for row in rows])
    return states, actions, mdp.rewards[states, actions], following


def estimate(rng, mdp, count, **options):
    shape = (mdp.n_states, mdp.n_actions)
    span = (float(mdp.rewards.min()), float(mdp.rewards.max()))
    return FiniteMDP.from_samples(*draw(rng, mdp, count), shape=shape, reward_range=span, **options)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("reward_range", np.zeros(3), "reward_range"),
        ("reward_range", np.array([1.0, 0.0]), "damaged"),
        ("reward_range", np.array([np.nan, 0.0]), "reward_range"),
        ("terminal", np.zeros(5, bool), "terminal"),
        ("terminal", np.zeros(2), "terminal"),
        ("smoothing", np.zeros(2), "smoothing"),
        ("smoothing", np.float64(-1.0), "damaged"),
        ("reward_variance", np.zeros((3, 2)), "reward_variance"),
        ("reward_variance", -np.ones((2, 2)), "damaged"),
        ("count", -np.ones(4), "damaged"),
        ("count", np.full(4, np.nan), "damaged"),
    ],
)
def test_damaged_files_are_explained(name, value, message, tmp_path):
    FiniteMDP.from_samples([0, 0, 1, 1], [0, 1, 0, 1], [0.0, 1, 0, 1], [1, 0, 0, 1], shape=(2, 2)).save(
        tmp_path / "mdp.npz"
    )
    with np.load(tmp_path / "mdp.npz") as file:
        arrays = dict(file)
    np.savez(tmp_path / "mdp.npz", **{**arrays, name: value})
    with pytest.raises(UserError, match=message):
        FiniteMDP.load(tmp_path / "mdp.npz")


def test_smoothing_checks_the_memory_that_it_takes(monkeypatch):
    monkeypatch.setenv("PISCES_MEMORY_GB", "0.001")
    with pytest.raises(UserError, match="the smoothed transitions would take"):
        FiniteMDP.from_samples([0], [0], [0.0], [1], shape=(200, 4), smoothing=1.0)


def test_an_mdp_without_samples_can_be_resampled():
    empty = FiniteMDP.from_samples([], [], [], [], shape=(2, 1), smoothing=1.0)
    found = bootstrap_metric(policy_similarity_metric, empty, discount=0.9, resamples=3)
    assert np.isfinite(found.error).all()


def test_counts_are_kept_and_saved(tmp_path):
    rng = np.random.default_rng(0)
    found = estimate(rng, random_mdp(rng, 4), 7, smoothing=0.5)
    assert isinstance(found, EstimatedMDP)
    np.testing.assert_array_equal(found.counts, 7)
    assert not found.unseen.any()
    found.save(tmp_path / "mdp.npz")
    again = FiniteMDP.load(tmp_path / "mdp.npz")
    assert isinstance(again, EstimatedMDP)
    for name in ("rewards", "counts", "reward_variances", "reward_range", "terminal", "smoothing"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
    np.testing.assert_array_equal(again.transition_radii(0.9), found.transition_radii(0.9))


def test_unseen_pairs_are_refused_or_marked_and_no_plan_uses_them():
    # Action 1 of state 0 was never tried; as a silent self-loop with reward 0 it would look better than -1 per step.
    samples = ([0, 1, 1], [0, 0, 1], [-1.0, -1.0, -2.0], [1, 0, 1])
    with pytest.raises(UserError, match=r'1 of 4 .* state 0, action 1\); pass unseen="self-loop"'):
        FiniteMDP.from_samples(*samples, shape=(2, 2))
    for options in ({"unseen": "self-loop"}, {"smoothing": 0.1}):
        mdp = FiniteMDP.from_samples(*samples, shape=(2, 2), **options)
        np.testing.assert_array_equal(mdp.unseen, [[False, True], [False, False]])
        np.testing.assert_array_equal(optimal_policy(mdp, 0.9), [[1, 0], [1, 0]])
        assert mdp.transition_radii(0.95)[0, 1] == 1
        assert mdp.reward_radii(0.95)[0, 1] == 2  # the true reward is between -2 and -1, the estimate is 0
    empty = FiniteMDP.from_samples([], [], [], [], shape=(2, 1), unseen="self-loop")
    assert empty.unseen.all()
    assert policy_similarity_metric(empty, discount=0.5).distance.max() == 0


def test_ending_transitions_lead_to_terminal_states():
    ended = np.array([False, True, True])
    inside = FiniteMDP.from_samples([0, 1, 1], [0, 0, 0], [0.0, 1.0, 1.0], [1, 2, 2], shape=(3, 1), terminated=ended)
    np.testing.assert_array_equal(inside.terminal, [False, False, True])
    assert not inside.unseen.any()
    np.testing.assert_array_equal(inside.transitions.toarray(), np.eye(3)[[1, 2, 2]])
    np.testing.assert_array_equal(inside.transition_radii(0.9)[2], 0)
    beside = FiniteMDP.from_samples([0, 1, 1], [0, 0, 0], [0.0, 1.0, 1.0], [1, 0, 0], shape=(2, 1), terminated=ended)
    np.testing.assert_array_equal(beside.terminal, [False, False, True])
    np.testing.assert_array_equal(beside.transitions.toarray(), np.eye(3)[[1, 2, 2]])
    endless = FiniteMDP.from_samples([0, 1, 1], [0, 0, 0], [0.0, 1.0, 1.0], [1, 0, 0], shape=(2, 1))
    np.testing.assert_array_equal(endless.transitions.toarray(), np.eye(2)[[1, 0]])


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 5, 200]), st.sampled_from([0.0, 1.0]))
@settings(max_examples=40)
def test_radii_hold_far_more_often_than_they_promise(seed, count, smoothing):
    # A probability of 0.5 would allow every second example to fail; none of 40 does.
    rng = np.random.default_rng(seed)
    true = random_mdp(rng, 5)
    found = estimate(rng, true, count, smoothing=smoothing)
    moved = 0.5 * np.abs(found.transitions.toarray() - true.transitions.toarray()).sum(axis=1).reshape(5, 2)
    assert (moved <= found.transition_radii(0.5) + 1e-12).all()
    assert (np.abs(found.rewards - true.rewards) <= found.reward_radii(0.5) + 1e-12).all()


METRICS = [policy_similarity_metric, pi_bisimulation_metric, bisimulation_metric, mico_distance]


@given(st.integers(0, 2**32 - 1), st.sampled_from(METRICS), st.sampled_from([3, 300, 100_000]))
@settings(max_examples=30)
def test_the_sampling_error_holds(seed, metric, count):
    rng = np.random.default_rng(seed)
    true, other = random_mdp(rng, 4, support=2), random_mdp(rng, 3, support=2)
    found = estimate_large(rng, true, count)
    policies = {"policy_x": [0, 1, 0, 1], "policy_y": [1, 0, 1]} if metric is not bisimulation_metric else {}
    exact = metric(true, other, discount=0.5, **policies)
    result = metric(found, other, discount=0.5, **policies)
    assert exact.sampling is None
    error = np.abs(result.distance - exact.distance)
    assert (error <= result.sampling.bounds() + result.error_bound + exact.error_bound).all()
    assert result.sampling.error_bound <= result.sampling.limit
    np.testing.assert_array_equal(result.sampling.error_y, 0)
    if count == 100_000:
        assert result.sampling.error_bound < 0.1 * result.sampling.limit


def estimate_large(rng, mdp, count):
    """An estimate from counts drawn at once."""
    rows = mdp.transitions.toarray()
    drawn = np.stack([rng.multinomial(count, row / row.sum()) for row in rows])
    row, following = np.nonzero(drawn)
    repeats = drawn[row, following]
    pairs, following = np.repeat(row, repeats), np.repeat(following, repeats)
    states, actions = pairs // mdp.n_actions, pairs % mdp.n_actions
    span = (float(mdp.rewards.min()), float(mdp.rewards.max()))
    rewards = mdp.rewards[states, actions]
    shape = (mdp.n_states, mdp.n_actions)
    return FiniteMDP.from_samples(states, actions, rewards, following, shape=shape, reward_range=span)


def test_the_sampling_error_counts_both_mdps_and_needs_a_known_cost():
    rng = np.random.default_rng(0)
    x, y = (estimate_large(rng, random_mdp(rng, 4, support=2), 10_000) for _ in range(2))
    both = policy_similarity_metric(x, y, discount=0.5).sampling
    assert both.error_x.min() > 0
    assert both.error_y.min() > 0
    own = policy_similarity_metric(x, y, discount=0.5, cost=lambda p, q: np.zeros((4, 4)))
    assert own.sampling is None


def chain_of_thirty(rng):
    rows = np.zeros((30, 1, 30))
    for row in rows[:, 0]:
        row[rng.choice(30, 4, replace=False)] = rng.dirichlet(np.ones(4))
    return FiniteMDP(rows, rng.random((30, 1)))


def test_a_thousand_samples_of_thirty_states():
    # The solver is exact to 1e-6; the distances are wrong by about 0.3, as the bootstrap says. The rigorous bound says
    # that so few samples prove nothing.
    hits = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        true = chain_of_thirty(rng)
        found = estimate(rng, true, 33)
        exact = pi_bisimulation_metric(true, discount=0.9).distance
        boot = bootstrap_metric(pi_bisimulation_metric, found, discount=0.9, tolerance=1e-3, resamples=30, seed=seed)
        error = np.abs(boot.result.distance - exact)
        assert boot.result.error_bound <= 1e-3
        assert error.max() > 0.1
        assert 0.2 < boot.largest_error < 1
        assert boot.result.sampling.error_bound == boot.result.sampling.limit
        assert boot.error.shape == (30, 30)
        assert boot.error.max() >= boot.largest_error * 0.5
        hits += error.max() <= boot.largest_error
    assert hits >= 4


def test_rewards_without_samples_may_be_anywhere_in_their_range():
    samples = ([0, 1, 1], [0, 0, 1], [5.5, 5.5, 5.5], [0, 1, 1])
    found = FiniteMDP.from_samples(*samples, shape=(2, 2), unseen="self-loop", reward_range=(5.0, 6.0))
    result = bisimulation_metric(found, discount=0.0)
    # All rewards may be 5.5, and the states the same.
    assert result.distance[0, 1] <= result.sampling.bounds()[0, 1] + result.error_bound


def test_the_bootstrap_within_one_mdp_takes_one_policy():
    rng = np.random.default_rng(4)
    found, policy = estimate(rng, random_mdp(rng, 3), 20), np.array([1, 0, 1])
    boot = bootstrap_metric(policy_similarity_metric, found, discount=0.5, policy_x=policy, resamples=2)
    expected = policy_similarity_metric(found, discount=0.5, policy_x=policy)
    np.testing.assert_array_equal(boot.result.distance, expected.distance)
    np.testing.assert_array_equal(boot.error.diagonal(), 0)
    fixed = functools.partial(policy_similarity_metric, policy_x=policy)
    np.testing.assert_array_equal(
        bootstrap_metric(fixed, found, discount=0.5, resamples=1).result.distance, expected.distance
    )


def test_equal_rewards_up_to_rounding_need_no_tolerance():
    samples = ([0] * 3 + [1] * 7, [0] * 10, [0.1] * 10, [0] * 3 + [1] * 7)
    found = FiniteMDP.from_samples(*samples, shape=(2, 1))
    assert found.rewards[0, 0] != found.rewards[1, 0]
    assert pi_bisimulation_metric(found, discount=0.9).distance.max() < 1e-6


def test_the_bootstrap_repeats_itself_and_keeps_policies():
    rng = np.random.default_rng(3)
    found = estimate(rng, random_mdp(rng, 4), 20)
    first, second = (
        bootstrap_metric(policy_similarity_metric, found, discount=0.9, resamples=5, seed=1) for _ in range(2)
    )
    np.testing.assert_array_equal(first.error, second.error)
    assert first.largest_error > 0
    with pytest.raises(UserError, match=r"from FiniteMDP\.from_samples"):
        bootstrap_metric(policy_similarity_metric, random_mdp(rng, 3), discount=0.9)
    for options in ({"confidence": 1.0}, {"resamples": 0}, {"seed": "x"}):
        with pytest.raises(UserError):
            bootstrap_metric(policy_similarity_metric, found, discount=0.9, **options)
