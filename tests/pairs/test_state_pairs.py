from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pisces.errors import UserError
from pisces.metrics import FiniteMDP, policy_similarity_metric
from pisces.pairs import StatePairs, TrajectoryPairs
from pisces.trajectories import Trajectory


def corridor(length):
    """Walk right (action 1) to the end; action 0 stays."""
    states = np.arange(length + 1)
    following = np.stack([states, np.minimum(states + 1, length)], axis=1)
    rewards = np.zeros((length + 1, 2))
    rewards[length - 1, 1] = 1
    return FiniteMDP(np.eye(length + 1)[following], rewards)


def psm(x, y):
    return policy_similarity_metric(x, y, discount=0.9, threads=1)


def numbered(*lengths):
    """Observations that say the environment and the state."""
    return [np.stack([np.full(n, env), np.arange(n)], axis=1) for env, n in enumerate(lengths)]


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000), states=st.integers(1, 6))
def test_pairs_hold_the_exact_metric_of_their_states(seed, states):
    mdps = [corridor(3), corridor(5)]
    pairs = StatePairs(mdps, numbered(3, 5), metric=psm, states=states, seed=seed)
    pair = pairs.sample()
    (x, rows), (y, columns) = (part.numpy().T for part in (pair.observations_x, pair.observations_y))
    assert {int(x[0]), int(y[0])} == {0, 1}
    assert len(rows) == min(states, (3, 5)[x[0]])
    assert len(np.unique(rows)) == len(rows)
    exact = psm(mdps[x[0]], mdps[y[0]]).distance
    assert np.allclose(pair.metric.numpy(), exact[np.ix_(rows, columns)], atol=1e-5)


def test_environments_that_share_an_mdp_share_its_metric():
    calls = []

    def counted(x, y):
        calls.append((x, y))
        return psm(x, y)

    mdp, other = corridor(4), corridor(2)
    pairs = StatePairs([mdp, mdp, other], numbered(4, 4, 2), metric=counted)
    assert np.abs(np.diag(pairs.metric(0, 1))).max() < 1e-5
    assert np.array_equal(pairs.metric(0, 2), pairs.metric(1, 2))
    assert np.array_equal(pairs.metric(2, 1), pairs.metric(1, 2).T)
    assert len(calls) == 2


def test_only_visited_states_are_drawn():
    pairs = StatePairs([corridor(4)] * 2, numbered(4, 4), metric=psm, visited=[[0, 1], [2]])
    for _ in range(5):
        pair = pairs.sample()
        seen = {tuple(row) for part in (pair.observations_x, pair.observations_y) for row in part.tolist()}
        assert seen <= {(0, 0), (0, 1), (1, 2)}
    pairs.visit(1, [3])
    assert any(row[1] == 3 for row in pairs.sample().observations_x.tolist() + pairs.sample().observations_y.tolist())


def test_pairs_with_matches_are_preferred():
    """Two of three episodes act alike; the third never does."""
    alike = [Trajectory(np.full(3, env), actions=np.array([0, 1, 0])) for env in range(2)]
    other = Trajectory(np.full(3, 2), actions=np.array([2, 2, 2]))
    pairs = TrajectoryPairs([*alike, other], discount=0.5, match_within=0.01, seed=3)
    drawn = {(int(p.observations_x[0]), int(p.observations_y[0])) for p in (pairs.sample() for _ in range(20))}
    assert drawn == {(0, 1), (1, 0)}
    assert pairs.choice.shares.tolist() == [1, 0, 0]
    anything = TrajectoryPairs([*alike, other], discount=0.5, seed=3)
    assert len({int(anything.sample().observations_x[0]) for _ in range(20)}) == 3


def test_a_warning_says_when_nothing_matches():
    episodes = [Trajectory(np.zeros(2) + env, actions=np.full(2, env)) for env in range(2)]
    pairs = TrajectoryPairs(episodes, discount=0.5, match_within=0.1)
    with pytest.warns(UserWarning, match=r"no state of any pair has a match within 0.1, .*lower the metric's discount"):
        pairs.sample()


@pytest.mark.parametrize(
    ("mdps", "observations", "options", "message"),
    [
        ([corridor(2)], numbered(2), {}, "at least two MDPs"),
        ([corridor(2)] * 2, numbered(2), {}, "got 2 MDPs and observations of 1"),
        ([corridor(2)] * 2, numbered(2, 4), {}, "environment 1 must have observations of 1 to 3 states, got 4"),
        ([np.eye(2)] * 2, numbered(2, 2), {}, "expected FiniteMDPs, got ndarray"),
        ([corridor(2)] * 2, numbered(2, 2), {"states": 0}, "states must be a positive integer, or None for all, got 0"),
        (
            [corridor(2)] * 2,
            numbered(2, 2),
            {"visited": [[0], [2]]},
            r"states of environment 1 must be numbers in 0..1",
        ),
        ([corridor(2)] * 2, numbered(2, 2), {"visited": [[0]]}, "visited states of 2 environments, got those of 1"),
        ([corridor(2)] * 2, numbered(2, 2), {"match_within": -1.0}, "match_within must be at least 0"),
        ([corridor(2)] * 2, numbered(2, 2), {"match_within": "a"}, "match_within must be at least 0"),
        ([corridor(2)] * 2, numbered(2, 2), {"states": 2.5}, "states must be a positive integer"),
        ([corridor(2)] * 2, numbered(2, 2), {"pairs": [(0, 1, 2)]}, "pairs must be a list of pairs of environments"),
        ([corridor(2)] * 2, numbered(2, 2), {"pairs": [0, 1]}, "pairs must be a list of pairs of environments"),
        ([corridor(2)] * 2, numbered(2, 2), {"pairs": [(0.5, 1)]}, "pairs must be integers"),
        ([corridor(2)] * 2, numbered(2, 2), {"pairs": [(0, 0)]}, "two different environments"),
    ],
)
def test_bad_input_is_explained(mdps, observations, options, message):
    with pytest.raises(UserError, match=message):
        StatePairs(mdps, observations, metric=psm, **options)


NOT_FINITE = [(np.where(np.eye(3), wrong, 1.0), f"and finite, got {wrong}") for wrong in (np.nan, np.inf)]


def test_metrics_of_the_wrong_shape_or_sign_are_refused():
    for wrong, message in (
        (np.zeros((2, 2)), "has shape"),
        (np.full((3, 3), -1.0), "must be non-negative"),
        *NOT_FINITE,
    ):
        pairs = StatePairs([corridor(2)] * 2, numbered(2, 2), metric=partial(lambda x, y, found: found, found=wrong))
        with pytest.raises(UserError, match=message):
            pairs.sample()


def test_identical_environments_are_reported():
    one = Trajectory(np.arange(3), actions=np.array([0, 1, 0]))
    other = Trajectory(np.arange(3) + 1, actions=np.array([0, 1, 0]))
    with pytest.warns(UserWarning, match="environments 0 and 2 have an identical trajectory; are they the same level"):
        TrajectoryPairs([one, other, [Trajectory(np.arange(2), actions=np.zeros(2, int)), one]])
    TrajectoryPairs([[one, one], other])
