"""`pairs=`: distances of requested pairs against those of all pairs."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mdps import random_mdp, random_policy

from pisces.errors import UserError
from pisces.metrics import (
    FiniteMDP,
    bisimulation_metric,
    chain_metric,
    l1_distance,
    nearest_neighbors,
    pi_bisimulation_metric,
    policy_similarity_metric,
    total_variation,
    transfer_bound,
    transfer_policy,
)
from pisces.metrics.exact.requested import bounds
from pisces.metrics.exact.requested import solve as requested

SEEDS = st.integers(0, 2**32 - 1)
METRICS = [policy_similarity_metric, pi_bisimulation_metric, bisimulation_metric]


def problem(seed, support):
    rng = np.random.default_rng(seed)
    mdps = [random_mdp(rng, int(size), support=support, decimals=seed % 2 or None) for size in rng.integers(2, 10, 2)]
    policies = [random_policy(rng, mdp, deterministic=bool(seed % 3)) for mdp in mdps]
    return rng, mdps, policies


@given(SEEDS, st.sampled_from(METRICS), st.sampled_from([1, 2, 4]), st.booleans(), st.sampled_from([0.0, 0.5, 0.95]))
def test_requested_pairs_equal_those_of_the_matrix(seed, metric, support, within, discount):
    rng, (x, y), (policy_x, policy_y) = problem(seed, support)
    y, policy_y = (x, policy_x) if within else (y, policy_y)
    arguments = {} if metric is bisimulation_metric else {"policy_x": policy_x, "policy_y": policy_y}
    pairs = np.stack([rng.integers(x.n_states, size=5), rng.integers(y.n_states, size=5)], axis=1)
    whole = metric(x, y, discount=discount, tolerance=1e-9, **arguments)
    part = metric(x, y, discount=discount, tolerance=1e-9, pairs=pairs, **arguments)
    assert part.error_bound <= 1e-9
    gap = np.abs(part.distance - whole.distance[pairs[:, 0], pairs[:, 1]]).max()
    assert gap <= part.error_bound + whole.error_bound


@settings(max_examples=40)
@given(SEEDS, st.sampled_from(METRICS), st.sampled_from([1, 2, 4]), st.booleans(), st.sampled_from([0.0, 0.5, 0.9]))
def test_bounds_hold_where_too_many_pairs_are_reached(seed, metric, support, within, discount):
    rng, (x, y), (policy_x, policy_y) = problem(seed, support)
    y, policy_y = (x, policy_x) if within else (y, policy_y)
    arguments = {} if metric is bisimulation_metric else {"policy_x": policy_x, "policy_y": policy_y}
    pairs = np.stack([rng.integers(x.n_states, size=5), rng.integers(y.n_states, size=5)], axis=1)
    tolerance = 10.0 ** -rng.integers(1, 6)
    exact = metric(x, y, discount=discount, tolerance=1e-9, **arguments).distance[pairs[:, 0], pairs[:, 1]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(requested, "REACHED_LIMIT", 0)
        part = metric(x, y, discount=discount, tolerance=tolerance, pairs=pairs, **arguments)
    assert part.error_bound <= tolerance
    assert np.abs(part.distance - exact).max() <= part.error_bound + 1e-9


@pytest.mark.parametrize("cost", [None, lambda x, y: total_variation(x, y) - 0.25])
def test_pairs_far_away_are_not_listed(cost, monkeypatch):
    # A ring of 3,000 states that moves 1 or 2 ahead: all pairs are reached, and few matter at discount 0.5.
    states, rng = 3000, np.random.default_rng(0)
    here = np.arange(states)
    rows = scipy.sparse.csr_array(
        (np.repeat([0.3, 0.7], states), (np.tile(here, 2), np.concatenate([(here + 1) % states, (here + 2) % states]))),
        shape=(states, states),
    )
    mdp, policy = FiniteMDP([rows, rows], np.zeros((states, 2))), rng.dirichlet(np.ones(2), states)
    monkeypatch.setattr(requested, "REACHED_LIMIT", 1000)
    monkeypatch.setattr(bounds, "PAIRS_LIMIT", 100_000)
    options = {"discount": 0.5, "policy_x": policy, **({"cost": cost} if cost else {})}
    result = policy_similarity_metric(mdp, pairs=[[0, 1000], [5, 5], [20, 10]], tolerance=1e-3, **options)
    near = (here[:40, None] + [0, 1000, 2000]).ravel()  # what the pairs reach in 20 steps, and then stays
    inside = rows[near][:, near].toarray()
    inside[np.arange(len(near)), np.arange(len(near))] += 1 - inside.sum(axis=1)
    part = FiniteMDP(np.stack([inside, inside], axis=1), np.zeros((len(near), 2)))
    whole = policy_similarity_metric(part, **(options | {"policy_x": policy[near]}))
    places = [[0, 1], [15, 15], [60, 30]]
    expected = [whole.distance[i, j] for i, j in places]
    assert np.abs(result.distance - expected).max() <= result.error_bound + 1e-5
    monkeypatch.setattr(bounds, "PAIRS_LIMIT", 100)
    with pytest.raises(UserError, match=r"certify an error of .* raise the tolerance"):
        policy_similarity_metric(mdp, pairs=[[0, 1000]], tolerance=1e-3, **options)


def test_pairs_of_a_large_grid_take_little_memory():
    # 40,000 states; the distances of all pairs would take 12 GB. Moves go right, then down along the last column.
    side, discount = 200, 0.9
    row, column = np.divmod(np.arange(side * side), side)
    following = np.where(column < side - 1, row * side + column + 1, np.minimum(row + 1, side - 1) * side + column)
    chain = scipy.sparse.csr_array(
        (np.ones(side * side), (np.arange(side * side), following)), shape=(side * side, side * side)
    )
    rewards = (column == side - 1).astype(float)[:, None]
    mdp = FiniteMDP([chain], rewards)
    starts = np.random.default_rng(0).integers(side * side, size=(10, 2))
    tracemalloc.start()
    result = pi_bisimulation_metric(mdp, discount=discount, policy_x=np.ones((side * side, 1)), pairs=starts)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6
    # Rewards are 1 in the last column, so a pair differs while only one of its states has arrived there.
    ends = discount ** (side - 1 - column[starts]) / (1 - discount)
    np.testing.assert_allclose(result.distance, np.abs(ends[:, 0] - ends[:, 1]), atol=1e-9)


def test_no_pairs():
    assert chain_metric(np.eye(2), cost=np.ones((2, 2)), discount=0.5, pairs=np.empty((0, 2), int)).distance.shape == (
        0,
    )


def test_a_cost_must_depend_on_the_two_rows_alone():
    rng = np.random.default_rng(0)
    mdp = random_mdp(rng, 6)
    policy = random_policy(rng, mdp)

    def relative(x, y):
        table = l1_distance(x, y)
        return table / table.max()

    with pytest.raises(UserError, match="depends on other pairs"):
        policy_similarity_metric(mdp, discount=0.9, policy_x=policy, cost=relative, pairs=[[0, 1], [2, 3]])
    own = policy_similarity_metric(
        mdp, discount=0.9, policy_x=policy, cost=lambda x, y: total_variation(x, y), pairs=[[0, 1], [4, 3]]
    )
    known = policy_similarity_metric(mdp, discount=0.9, policy_x=policy, pairs=[[0, 1], [4, 3]])
    assert np.abs(own.distance - known.distance).max() <= own.error_bound + known.error_bound


@pytest.mark.parametrize("labels", [[0, 1, 0, 2, 1, 0], [0.5, 0.0, 2.0, 1.0, 1.0, 0.0]])
@pytest.mark.parametrize("limit", [0, 1 << 20])
def test_labels_cost_the_same_in_pairs(labels, limit, monkeypatch):
    rows = np.random.default_rng(0).dirichlet(np.ones(6), 6)
    pairs = np.array([[0, 1], [2, 2], [5, 3]])
    whole = chain_metric(rows, labels=labels, discount=0.8)
    monkeypatch.setattr(requested, "REACHED_LIMIT", limit)
    part = chain_metric(rows, labels=labels, discount=0.8, pairs=pairs, tolerance=1e-3)
    gap = np.abs(part.distance - whole.distance[pairs[:, 0], pairs[:, 1]]).max()
    assert gap <= part.error_bound + whole.error_bound


def test_a_relative_tolerance_is_relative_to_the_requested_distances():
    rng = np.random.default_rng(1)
    mdp = random_mdp(rng, 6)
    policy = np.repeat([[0.5, 0.5], [0.5 + 1e-4, 0.5 - 1e-4], [1.0, 0.0]], 2, axis=0)
    pairs, options = [[0, 2], [3, 1]], {"discount": 0.9, "policy_x": policy, "relative_tolerance": 1e-3}
    for cost in (total_variation, lambda x, y: 1e-6 * total_variation(x, y)):
        part = policy_similarity_metric(mdp, pairs=pairs, cost=cost, **options)
        assert 0 < part.error_bound <= 1e-3 * part.distance.max()
    same = policy_similarity_metric(mdp, pairs=[[1, 1], [4, 4]], **options)
    assert (same.distance.tolist(), same.error_bound) == ([0.0, 0.0], 0.0)


@pytest.mark.parametrize("metric", METRICS)
def test_pairs_of_estimated_models_carry_the_sampling_error(metric):
    rng = np.random.default_rng(2)
    mdp = random_mdp(rng, 4, support=2)
    states, actions = np.repeat(np.arange(4), 60), np.tile([0, 1], 120)
    following = [
        rng.choice(4, p=mdp.transitions[[2 * s + a]].toarray()[0]) for s, a in zip(states, actions, strict=True)
    ]
    estimated = FiniteMDP.from_samples(states, actions, mdp.rewards[states, actions], following, shape=(4, 2))
    arguments = {} if metric is bisimulation_metric else {"policy_x": np.full((4, 2), 0.5)}
    pairs = [[0, 1], [3, 3]]
    part = metric(estimated, discount=0.5, pairs=pairs, **arguments)
    true = metric(mdp, discount=0.5, pairs=pairs, **arguments).distance
    sampling = part.sampling
    bound = sampling.error_x[[0, 3]] + sampling.error_y[[1, 3]] + part.error_bound
    assert (np.abs(part.distance - true) <= bound).all()
    whole = metric(estimated, discount=0.5, **arguments).sampling
    assert (sampling.error_x >= whole.error_x - 1e-9).all()  # without all distances, their range is not known as well
    assert part.definition.n_states == (4, 4)


def test_matrices_are_needed_for_neighbors_and_transfer():
    mdp = random_mdp(np.random.default_rng(3), 4)
    part = policy_similarity_metric(mdp, discount=0.5, pairs=[[0, 1], [1, 2]])
    for function in (nearest_neighbors, transfer_bound, lambda found: transfer_policy(found, np.zeros(4, int))):
        with pytest.raises(UserError, match=r"expected distances \[n, m\].*pairs="):
            function(part)
