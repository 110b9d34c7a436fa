import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_mdps import random_mdp

from pisces.errors import UserError
from pisces.metrics import (
    FiniteMDP,
    StateAggregation,
    bisimulation_metric,
    optimal_policy,
    policy_iteration,
    policy_values,
    quotient_mdp,
)

SEEDS = st.integers(0, 2**32 - 1)
METRICS = ["bisimulation", "pi-bisimulation", "policy-similarity"]


def loss(mdp, found, discount):
    """What acting by the classes' policy loses."""
    return policy_iteration(mdp, discount).values - policy_values(mdp, found.lift_policy(), discount)


def copies(mdp, rng, extra):
    """An MDP in which some states have copies, entered instead of the originals at random."""
    source = np.concatenate([np.arange(mdp.n_states), rng.integers(mdp.n_states, size=extra)])
    share = rng.random(len(source))
    total = np.bincount(source, weights=share)
    dense = mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, -1)
    return FiniteMDP(dense[source][:, :, source] * (share / total[source]), mdp.rewards[source]), source


def refined(mdp):
    """The coarsest bisimulation by hand: split until every class has one signature."""
    dense = mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, -1)
    labels = np.zeros(mdp.n_states, int)
    while True:
        masses = np.stack([dense[:, :, labels == c].sum(axis=2) for c in range(labels.max() + 1)], axis=2)
        rows = np.concatenate([labels[:, None], mdp.rewards, masses.reshape(mdp.n_states, -1).round(9)], axis=1)
        _, again = np.unique(rows, axis=0, return_inverse=True)
        again = again.ravel()
        if again.max() == labels.max():
            return again
        labels = again


def same_partition(first, second):
    return len({*zip(first, second, strict=True)}) == len({*first}) == len({*second})


def sampled_mdp():
    """Three states whose action 1 was sampled in the last one only; all rewards are negative, unseen ones 0."""
    states, actions, following = [0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 0, 1], [1, 1, 2, 2, 2, 2]
    rewards = [-1, -1, -1, -1, -1, -5]
    return FiniteMDP.from_samples(states, actions, rewards, following, shape=(3, 2), unseen="self-loop")


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("options", [{"epsilon": 0}, {"epsilon": 0.1}, {"epsilon": 100.0}, {"n_clusters": 2}])
def test_classes_of_an_estimated_mdp_use_sampled_actions_only(metric, options):
    mdp = sampled_mdp()
    found = StateAggregation(metric, discount=0.9, **options).fit(mdp)
    policy = found.lift_policy()
    assert mdp.available[policy > 0].all()
    losses = policy_iteration(mdp, 0.9).values - policy_values(mdp, policy, 0.9)
    assert losses.max() <= found.value_loss_bound_ + 1e-9


def test_policy_similarity_merges_states_whose_chosen_action_was_sampled():
    found = StateAggregation("policy-similarity", epsilon=0, discount=0.9).fit(sampled_mdp())
    assert found.labels_.tolist() == [0, 0, 0]
    assert StateAggregation("policy-similarity", epsilon=0.5, discount=0.9).fit(sampled_mdp()).radius_ < 1e-3


def test_too_few_classes_for_the_sampled_actions_are_refused():
    with pytest.raises(UserError, match="1 classes are too few: states with different sampled actions"):
        StateAggregation(discount=0.9, n_clusters=1).fit(sampled_mdp())


@pytest.mark.parametrize(
    ("labels", "representatives", "words"),
    [
        ([0, 0, 5], [0], "expected 3 labels from 0 to 0, got"),
        ([0, 0], [0], "expected 3 labels"),
        ([0, 0, 0], [99], "expected 1 representatives from 0 to 2"),
        ([0, 0, 0], [-1], "expected 1 representatives from 0 to 2"),
        ([0, 0, 0], [], "at least one representative"),
        ([0, 1, 1], [0, 0], "representatives must be states of their own classes"),
    ],
)
def test_wrong_classes_are_explained(labels, representatives, words):
    with pytest.raises(UserError, match=words):
        quotient_mdp(sampled_mdp(), labels, representatives)


@given(SEEDS)
def test_epsilon_zero_is_exact_bisimulation(seed):
    rng = np.random.default_rng(seed)
    mdp, source = copies(random_mdp(rng, 4, decimals=0), rng, 4)
    found = StateAggregation(epsilon=0, discount=0.9).fit(mdp)
    assert same_partition(found.labels_.tolist(), refined(mdp).tolist())
    assert found.labels_[source[4:]].tolist() == found.labels_[4:].tolist()
    assert found.value_loss_bound_ == 0
    assert np.abs(loss(mdp, found, 0.9)).max() < 1e-9
    values = policy_iteration(found.quotient_, 0.9).values
    np.testing.assert_allclose(values[found.labels_], policy_iteration(mdp, 0.9).values, atol=1e-9)
    np.testing.assert_array_equal(found.labels_[found.representatives_], np.arange(found.quotient_.n_states))


@given(SEEDS, st.sampled_from(METRICS), st.sampled_from([0.0, 0.05, 0.5, 5.0]), st.sampled_from([0.3, 0.9]))
def test_the_bound_on_the_value_loss_holds(seed, metric, epsilon, discount):
    rng = np.random.default_rng(seed)
    mdp, _ = copies(random_mdp(rng, 5), rng, 3)
    rewards = mdp.rewards + rng.choice([0, 0.01]) * rng.random(mdp.rewards.shape)
    mdp = FiniteMDP(mdp.transitions, rewards)
    found = StateAggregation(metric, epsilon=epsilon, discount=discount).fit(mdp)
    assert found.radius_ <= epsilon
    lost = loss(mdp, found, discount)
    assert lost.min() > -1e-9
    assert lost.max() <= found.value_loss_bound_ + 1e-9


@given(SEEDS, st.integers(1, 8))
def test_clusters_are_within_twice_the_best_radius(seed, count):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 6)
    found = StateAggregation(n_clusters=count, discount=0.9).fit(mdp)
    assert len(found.representatives_) == min(count, 6)
    result = bisimulation_metric(mdp, discount=0.9)
    apart = result.distance[:, found.representatives_].min(axis=1)
    np.testing.assert_allclose(result.distance[np.arange(6), found.representatives_[found.labels_]], apart)
    if count == 2:
        best = min(result.distance[:, [i, j]].min(axis=1).max() for i in range(6) for j in range(i))
        assert found.radius_ <= 2 * best + 3 * result.error_bound


def test_the_ends_of_frozen_lake_are_merged():
    mdp = FiniteMDP.from_gymnasium(gymnasium.make("FrozenLake-v1", map_name="8x8"))
    found = StateAggregation(epsilon=0, discount=0.9).fit(mdp)
    assert (mdp.n_states, found.quotient_.n_states) == (64, 54)  # ten holes and the goal become one
    assert same_partition(found.labels_.tolist(), refined(mdp).tolist())
    assert np.abs(loss(mdp, found, 0.9)).max() < 1e-9


def test_transform_and_lift():
    mdp = random_mdp(np.random.default_rng(0), 5)
    model = StateAggregation("policy-similarity", epsilon=0, discount=0.9)
    labels = model.fit_transform(mdp)
    np.testing.assert_array_equal(model.transform([4, 0]), labels[[4, 0]])
    np.testing.assert_array_equal(model.lift_policy(), optimal_policy(mdp, 0.9))
    classes = len(model.representatives_)
    np.testing.assert_array_equal(model.lift_policy(np.arange(classes)), labels)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "either epsilon or n_clusters"),
        ({"epsilon": 0.1, "n_clusters": 2}, "either epsilon or n_clusters"),
        ({"epsilon": -1}, "epsilon must be"),
        ({"epsilon": "a"}, "epsilon must be"),
        ({"n_clusters": 1.5}, "n_clusters must be"),
        ({"metric": "bisim", "epsilon": 0}, "did you mean 'bisimulation'"),
        ({"epsilon": 0, "discount": 1.0}, "discount must be in"),
    ],
)
def test_bad_settings(options, words):
    mdp = random_mdp(np.random.default_rng(0), 3)
    with pytest.raises(UserError, match=words):
        StateAggregation(**({"discount": 0.9} | options)).fit(mdp)


def test_bad_use():
    model = StateAggregation(epsilon=0, discount=0.9)
    for call in (lambda: model.transform([0]), lambda: model.lift_policy(), lambda: model.fit([[1.0]])):
        with pytest.raises(UserError, match=r"not fitted|FiniteMDP"):
            call()
    model.fit(random_mdp(np.random.default_rng(0), 3))
    with pytest.raises(UserError, match="states must be from 0 to 2"):
        model.transform([3])
    with pytest.raises(UserError, match="a policy of 3 classes"):
        model.lift_policy([0, 1])
