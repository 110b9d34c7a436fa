import copy
import errno
import os
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pisces.errors import UserError
from pisces.losses import ContrastiveMetricLoss
from pisces.metrics import behavior_cost, reward_difference, sequence_metric, total_variation, trajectory_metric
from pisces.pairs import TrajectoryPairs
from pisces.trajectories import Trajectory


def trajectory(actions, value=0.0, **fields):
    actions = np.asarray(actions)
    return Trajectory(np.full((len(actions), 3), value, np.float32), actions=actions, **fields)


def family(seed=0, lengths=(4, 6, 5)):
    rng = np.random.default_rng(seed)
    return [trajectory(rng.integers(0, 2, length), value=index) for index, length in enumerate(lengths)]


@given(st.integers(0, 50))
def test_pairs_are_of_different_environments_and_carry_their_metric(seed):
    trajectories = family(seed)
    pairs = TrajectoryPairs(trajectories, discount=0.9, seed=seed)
    for _ in range(5):
        pair = pairs.sample()
        x, y = int(pair.observations_x[0, 0]), int(pair.observations_y[0, 0])
        assert x != y
        cost = total_variation(trajectories[x].actions, trajectories[y].actions)
        np.testing.assert_array_equal(pair.metric.numpy(), sequence_metric(cost, 0.9))


def test_every_pair_of_environments_is_drawn_in_both_orders():
    pairs = TrajectoryPairs(family())
    drawn = {
        (float(p.observations_x[0, 0]), float(p.observations_y[0, 0])) for p in (pairs.sample() for _ in range(99))
    }
    assert len(drawn) == 6


def test_metric_is_computed_once_per_pair():
    calls = []

    def cost(x, y):
        if len(x) > 1:
            calls.append((len(x), len(y)))
        return total_variation(x.actions, y.actions)

    pairs = TrajectoryPairs([[family(0)[0], family(1)[0]], family()[1], family()[2]], cost=cost)
    for _ in range(100):
        pairs.sample()
    assert len(calls) == 5


def test_same_seed_same_draws():
    one, two = (TrajectoryPairs([family(0), family(1)], seed=4, states=3) for _ in range(2))
    for _ in range(10):
        first, second = one.sample(), two.sample()
        assert torch.equal(first.metric, second.metric)
        assert torch.equal(first.observations_x, second.observations_x)


def test_large_metrics_lie_in_a_file_and_are_the_same(tmp_path):
    small = TrajectoryPairs(family(), seed=1)
    large = TrajectoryPairs(family(), seed=1, memory_limit=100, folder=tmp_path)
    assert (small.in_file, large.in_file) == (False, True)
    for _ in range(10):
        assert torch.equal(small.sample().metric, large.sample().metric)
    del large
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("count", [1, 5, 12, 20, 99])
def test_candidates_include_the_nearest_states(count):
    rng = np.random.default_rng(0)
    x, y = (Trajectory(np.arange(20), actions=rng.integers(0, 2, 20)) for _ in range(2))
    sampler = TrajectoryPairs([x, y], discount=0.5, states=4, candidates=count, pairs=[(0, 1)])
    whole = sampler.metric((0, 0), (1, 0))
    for _ in range(10):
        pair = sampler.sample()
        rows, columns = pair.observations_x.numpy(), pair.observations_y.numpy()
        nearest = set(whole[rows].argmin(axis=1).tolist())
        assert nearest <= set(columns.tolist())
        assert len(set(columns.tolist())) == len(columns) == min(max(count, len(nearest)), 20)
        assert np.array_equal(pair.metric.numpy(), whole[np.ix_(rows, columns)])


def test_at_most_so_many_states_are_drawn_with_their_distances():
    x = Trajectory(np.arange(9.0)[:, None], actions=np.array([0, 1, 1, 0, 1, 0, 0, 0, 1]))
    y = Trajectory(100 + np.arange(2.0)[:, None], actions=np.array([1, 0]))
    pairs = TrajectoryPairs([x, y], discount=0.5, states=4)
    whole = pairs.metric((0, 0), (1, 0))
    pair = pairs.sample()
    while pair.observations_x[0, 0] >= 100:
        pair = pairs.sample()
    assert pair.metric.shape == (4, 2)
    rows = pair.observations_x[:, 0].long().numpy()
    np.testing.assert_array_equal(pair.metric.numpy(), whole[rows])


def test_images_stay_bytes():
    images = [Trajectory(np.full((3, 8, 8, 3), env, np.uint8), actions=np.array([0, 1, 0])) for env in range(2)]
    assert TrajectoryPairs(images).sample().observations_x.dtype == torch.uint8


def test_continuous_actions_policies_and_other_costs():
    x = Trajectory(np.zeros((2, 1)), actions=np.array([[0.0, 1.0], [0.5, 0.5]]), rewards=np.array([0.0, 1.0]))
    y = Trajectory(np.zeros((1, 1)), actions=np.array([[0.0, 0.0]]), rewards=np.array([1.0]))
    metric = TrajectoryPairs([x, y], discount=0.0).metric((0, 0), (1, 0))
    np.testing.assert_allclose(metric, [[1.0], [1.0]])
    by_reward = TrajectoryPairs([x, y], discount=0.0, cost=lambda a, b: reward_difference(a.rewards, b.rewards))
    np.testing.assert_allclose(by_reward.metric((0, 0), (1, 0)), [[1.0], [0.0]])
    np.testing.assert_allclose(by_reward.metric((1, 0), (0, 0)), [[1.0, 0.0]])
    policies = [Trajectory(np.zeros((1, 1)), policies=np.array([row])) for row in ([0.5, 0.5], [1.0, 0.0])]
    np.testing.assert_allclose(TrajectoryPairs(policies, discount=0.0).metric((0, 0), (1, 0)), [[0.5]])


def test_a_pair_fits_the_loss():
    # States that differ: with equal ones all similarities are equal, and the gradient is a rounding error or zero.
    rng = np.random.default_rng(0)
    states = [Trajectory(rng.random((n, 3), np.float32), actions=rng.integers(0, 2, n)) for n in (4, 6, 5)]
    pair = TrajectoryPairs(states).sample()
    loss = ContrastiveMetricLoss(3, 8, generator=torch.Generator().manual_seed(0))
    loss(pair.observations_x, pair.observations_y, pair.metric).backward()
    assert loss.projection.weight.grad.abs().max() > 1e-3


@pytest.mark.parametrize(
    ("environments", "message"),
    [
        ([trajectory([0, 1])], "at least two environments, got 1"),
        ([trajectory([0, 1]), []], "got none of environment 1"),
        ([trajectory([0, 1]), trajectory([0.5, 1.5])], "one action space"),
        ([trajectory([[0.5]]), trajectory([[0.5, 1.0]])], "one action space"),
        (
            [trajectory([0.5]), Trajectory(np.zeros((1, 3), np.float32), policies=np.array([[0.5, 0.5]]))],
            "got a mixture",
        ),
        ([trajectory([0]), Trajectory(np.zeros((1, 4)), actions=np.array([0]))], r"one shape, got \(3,\) and \(4,\)"),
    ],
)
def test_unusable_trajectories_are_explained(environments, message):
    with pytest.raises(UserError, match=message):
        TrajectoryPairs(environments)


def test_bad_arguments_are_explained():
    for arguments in ({"discount": 1.0}, {"states": 0}, {"candidates": 0}):
        with pytest.raises(UserError):
            TrajectoryPairs(family(), **arguments)
    with pytest.raises(UserError, match="two of environment 1"):
        TrajectoryPairs(family()).metric((1, 0), (1, 0))


def test_a_full_disk_costs_time_but_not_the_run(monkeypatch):
    x = Trajectory(np.zeros((30, 2)), actions=np.arange(30) % 3)
    y = Trajectory(np.zeros((20, 2)), actions=np.arange(20) % 2)
    pairs = TrajectoryPairs([x, y], discount=0.9, memory_limit=0)
    assert pairs.in_file

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.warns(UserWarning, match="disk is full"):
            found = pairs.metric((1, 0), (0, 0))
    np.testing.assert_array_equal(found, trajectory_metric(x, y, 0.9).T)
    np.testing.assert_array_equal(pairs.metric((0, 0), (1, 0)), found.T)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda pairs: pickle.loads(pickle.dumps(pairs))])
def test_copies_have_metrics_of_their_own(duplicate):
    trajectories = family()
    original = TrajectoryPairs(trajectories, discount=0.9, memory_limit=0)
    original.metric((0, 0), (1, 0))
    other = duplicate(original)
    del original
    for x, y in ((0, 1), (0, 2), (1, 2)):
        expected = trajectory_metric(trajectories[x], trajectories[y], 0.9)
        np.testing.assert_array_equal(other.metric((x, 0), (y, 0)), expected)


def test_kept_metrics_cannot_be_changed_by_those_who_look():
    pairs = TrajectoryPairs(family(), discount=0.5)
    for x, y in (((0, 0), (1, 0)), ((1, 0), (0, 0))):
        with pytest.raises(ValueError, match="read-only"):
            pairs.metric(x, y)[:] *= 0


def test_trajectories_that_cannot_be_compared_are_named_at_once():
    policies = np.array([[0.5, 0.5], [1.0, 0.0]])
    observations, actions = np.zeros((2, 3)), np.array([0.5, 1.5])
    both = Trajectory(observations, actions=actions, policies=policies)
    kinds = [both, Trajectory(observations, actions=actions), Trajectory(observations, policies=policies)]
    with pytest.raises(UserError, match="mixture"):
        TrajectoryPairs(kinds)


def test_bad_arguments_are_named_at_once(tmp_path):
    with pytest.raises(UserError, match="unknown last 'foo'"):
        TrajectoryPairs(family(), last="foo")
    with pytest.raises(UserError, match="which is not a folder"):
        TrajectoryPairs(family(), memory_limit=0, folder=tmp_path / "missing")


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda pairs: pickle.loads(pickle.dumps(pairs))])
def test_a_copy_and_its_original_do_not_share_what_they_know(duplicate):
    original = TrajectoryPairs(family(), discount=0.9)
    other = duplicate(original)
    for first, second in ((original, other), (other, original)):
        place = ((0, 0), (1, 0)) if first is original else ((1, 0), (2, 0))
        np.testing.assert_array_equal(first.metric(*place), second.metric(*place))


@pytest.mark.parametrize("place", [((0, 0), (5, 0)), ((-1, 0), (0, 0)), ((0, 1), (1, 0))])
def test_trajectories_that_are_not_there_are_named(place):
    with pytest.raises(UserError, match="of a trajectory, got"):
        TrajectoryPairs(family()).metric(*place)


def test_places_may_be_lists():
    pairs = TrajectoryPairs(family())
    np.testing.assert_array_equal(pairs.metric([0, 0], [1, 0]), pairs.metric((0, 0), (1, 0)))


@pytest.mark.parametrize(
    ("environments", "arguments", "message"),
    [
        ([np.zeros((3, 2)), np.zeros((3, 2))], {}, "expected trajectories, got ndarray"),
        ([Trajectory(np.zeros((2, 1), ">f4"), actions=[0, 1])] * 2, {}, "that torch has, got >f4"),
        ([Trajectory(np.zeros((2, 1), np.longdouble), actions=[0, 1])] * 2, {}, "that torch has"),
        (family(), {"seed": -1}, "seed must be an integer in"),
    ],
)
def test_what_could_not_be_drawn_from_is_refused_at_once(environments, arguments, message):
    with pytest.raises(UserError, match=message):
        TrajectoryPairs(environments, **arguments)


def test_only_the_given_pairs_of_environments_are_sampled():
    pairs = TrajectoryPairs(family(lengths=(4, 6, 5, 3)), pairs=[(0, 1), (3, 2)])
    for seed in range(20):
        rng = np.random.default_rng(seed)
        pair = pairs.sample(rng)
        x, y = [(0, 1), (3, 2)][int(np.random.default_rng(seed).integers(2))]
        assert (pair.observations_x[0, 0], pair.observations_y[0, 0]) == (x, y)
        assert np.array_equal(pair.metric, pairs.metric((x, 0), (y, 0)))
    with pytest.raises(UserError, match="0 and 2 are not one of the given pairs"):
        pairs.metric((0, 0), (2, 0))


@pytest.mark.parametrize("wrong", [[], [(0, 0)], [(0, 5)], [(0, 1), (-1, 2)]])
def test_pairs_of_environments_that_are_not_there_are_refused(wrong):
    with pytest.raises(UserError, match=r"two different environments in 0\.\.2"):
        TrajectoryPairs(family(), pairs=wrong)


def test_observations_can_be_read_from_elsewhere():
    frames = torch.arange(100.0).reshape(10, 10)
    episodes = [Trajectory(np.arange(3), actions=[0, 1, 0]), Trajectory(5 + np.arange(4), actions=[1, 0, 0, 1])]
    pair = TrajectoryPairs(episodes, observe=lambda numbers: frames[numbers], states=2).sample()
    numbers = {float(value) // 10 for value in (*pair.observations_x[:, 0], *pair.observations_y[:, 0])}
    assert len(numbers) == 4
    assert pair.observations_x.shape == (2, 10)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (lambda x, y: -np.ones((len(x), len(y))), "distances must be non-negative"),
        (lambda x, y: np.full((len(x), len(y)), np.nan), "finite"),
        (lambda x, y: np.ones((len(y), len(x) + 1)), "has shape"),
    ],
)
def test_metrics_are_checked_when_they_are_made(cost, message):
    with pytest.raises(UserError, match=message):
        TrajectoryPairs(family(), cost=cost).sample()


def by_definition(cost, discount, x_terminated, y_terminated):
    """The sum of discounted costs from each pair, where truncated trajectories end the sum."""
    n, m = cost.shape
    distance = np.zeros((n, m))
    for start in np.ndindex(n, m):
        i, j = start
        for step in range(2000):
            distance[start] += discount**step * cost[i, j]
            if (i == n - 1 and not x_terminated) or (j == m - 1 and not y_terminated):
                break
            i, j = min(i + 1, n - 1), min(j + 1, m - 1)
    return distance


@pytest.mark.parametrize("x_terminated", [True, False])
@pytest.mark.parametrize("y_terminated", [True, False])
@pytest.mark.parametrize("lengths", [(4, 6), (6, 4), (5, 5), (1, 3), (3, 1), (1, 1)])
def test_a_truncated_end_is_not_absorbing(x_terminated, y_terminated, lengths):
    rng = np.random.default_rng(0)
    x, y = (
        trajectory(rng.random((length, 1)), terminated=terminated)
        for length, terminated in zip(lengths, (x_terminated, y_terminated), strict=True)
    )
    expected = by_definition(behavior_cost(x, y), 0.9, x_terminated, y_terminated)
    np.testing.assert_allclose(trajectory_metric(x, y, discount=0.9), expected, rtol=1e-9)
    np.testing.assert_allclose(TrajectoryPairs([x, y], discount=0.9).metric((0, 0), (1, 0)), expected, rtol=1e-9)


@pytest.mark.parametrize("last", ["self-loop", "stop"])
def test_an_end_that_is_asked_for_holds_for_truncated_trajectories_too(last):
    x, y = (trajectory(actions, terminated=False) for actions in ([0, 1, 1], [1, 0]))
    expected = sequence_metric(behavior_cost(x, y), discount=0.9, last=last)
    np.testing.assert_array_equal(trajectory_metric(x, y, discount=0.9, last=last), expected)
    np.testing.assert_array_equal(TrajectoryPairs([x, y], discount=0.9, last=last).metric((0, 0), (1, 0)), expected)


def test_actions_of_several_parts_are_equal_or_not():
    x = Trajectory(np.zeros((2, 1)), actions=np.array([[0, 0], [0, 1]]))
    y = Trajectory(np.zeros((3, 1)), actions=np.array([[0, 0], [2, 3], [0, 1]]))
    np.testing.assert_array_equal(behavior_cost(x, y), [[0, 1, 1], [1, 1, 0]])
    column = [Trajectory(np.zeros((2, 1)), actions=np.array([[0], [5]], dtype)) for dtype in (np.int8, np.float32)]
    np.testing.assert_array_equal(behavior_cost(column[0], column[0]), [[0, 1], [1, 0]])
    np.testing.assert_array_equal(behavior_cost(column[1], column[1]), [[0, 5], [5, 0]])
    flags = Trajectory(np.zeros((2, 1)), actions=np.array([[True, True], [False, False]]))
    np.testing.assert_array_equal(behavior_cost(flags, flags), [[0, 1], [1, 0]])
