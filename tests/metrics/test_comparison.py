import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pisces.errors import UserError
from pisces.metrics import behavior_cost, compare_behavior, trajectory_metric
from pisces.trajectories import Trajectory

KINDS = ("integers", "continuous", "stochastic", "gaussian")


def episode(rng, kind="integers", shift=0.0):
    steps = int(rng.integers(2, 7))
    observations = rng.integers(3, size=(steps, 1))
    if kind == "integers":
        return Trajectory(observations, actions=(rng.random(steps) < 0.5 + shift).astype(int))
    if kind == "stochastic":
        return Trajectory(observations, policies=rng.dirichlet([1.0, 1.0 + 10 * shift], steps))
    stds = rng.random((steps, 2)) if kind == "gaussian" else None
    return Trajectory(observations, actions=rng.normal(shift, size=(steps, 2)), action_stds=stds)


def test_a_half_precision_episode_does_not_make_large_observations_equal():
    actions = np.array([0, 1])
    a, b = (Trajectory(np.array(seen), actions=actions) for seen in ([[7e4], [8e4]], [[9e4], [99999.0]]))
    half = Trajectory(np.zeros((2, 1), np.float16), actions=actions)
    assert not compare_behavior([a, half], [b], resamples=2).states_a.visited[:2].any()
    assert compare_behavior([a, half], [b, a], resamples=2).states_a.visited[:2].all()


def test_costs_of_another_shape_are_refused():
    x = Trajectory(np.zeros((4, 1)), actions=np.zeros(4, int))
    with pytest.raises(UserError, match=r"states has shape \(2, 2\)"):
        trajectory_metric(x, x, 0.9, cost=lambda one, two: np.ones((2, 2)))


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from(KINDS), st.sampled_from([0.0, 0.5, 0.9]))
def test_against_loops_over_states(seed, kind, discount):
    rng = np.random.default_rng(seed)
    a, b = ([episode(rng, kind) for _ in range(count)] for count in (3, 2))
    found = compare_behavior(a, b, discount=discount, threshold=0.7, resamples=2)
    metric = {(i, j): trajectory_metric(x, y, discount, last="stop") for i, x in enumerate(a) for j, y in enumerate(b)}
    states = found.states_a
    assert len(states) == sum(map(len, a))
    for n in range(len(states)):
        i, t = int(states.episode[n]), int(states.step[n])
        distances = {(j, u): metric[i, j][t, u] for j in range(2) for u in range(len(b[j]))}
        assert states.distance[n] == min(distances.values())
        assert distances[int(states.nearest_episode[n]), int(states.nearest_step[n])] == states.distance[n]
        assert states.matched[n] == (states.distance[n] <= 0.7)
        seen = any((a[i].observations[t] == one).all() for other in b for one in other.observations)
        assert states.visited[n] == seen

    def apart(x, y):
        table = trajectory_metric(x, y, discount, last="stop")
        nearest = [*(min(row) for row in table), *(min(column) for column in table.T)]
        return sum(nearest) / len(nearest)

    across = np.mean([apart(x, y) for x in a for y in b])
    spread_a = np.mean([apart(a[i], a[j]) for i in range(3) for j in range(3) if i != j])
    assert found.difference == pytest.approx(across - (spread_a + apart(*b)) / 2, abs=1e-12)
    assert found.interval is None


def test_exchanging_the_agents_exchanges_the_states():
    rng = np.random.default_rng(0)
    a, b = [episode(rng) for _ in range(4)], [episode(rng, shift=0.3) for _ in range(5)]
    one, other = compare_behavior(a, b), compare_behavior(b, a)
    assert one.difference == pytest.approx(other.difference)
    np.testing.assert_array_equal(one.states_a.distance, other.states_b.distance)
    np.testing.assert_allclose(one.between, other.between.T, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_tell_agents_apart_and_cover_zero_for_the_same_one(kind):
    rng = np.random.default_rng(1)
    covered = told = 0
    for _ in range(20):
        first, second, other = (
            [episode(rng, kind, shift) for _ in range(12)] for shift in (0.0, 0.0, 0.45 if kind == "integers" else 2.0)
        )
        same = compare_behavior(first, second, discount=0.5, resamples=100)
        covered += same.interval[0] <= 0 <= same.interval[1]
        apart = compare_behavior(first, other, discount=0.5, resamples=100)
        told += apart.interval[0] > 0
    assert covered >= 17
    assert told >= 15


def test_gaussian_policies_cost_their_wasserstein_distance():
    mean, std = np.array([[0.0, 1.0], [2.0, 0.0]]), np.array([[1.0, 1.0], [0.5, 2.0]])
    x = Trajectory(np.zeros((2, 1)), actions=mean, action_stds=std)
    y = Trajectory(np.zeros((1, 1)), actions=np.array([[3.0, 0.0]]), action_stds=np.array([[5.0, 1.0]]))
    np.testing.assert_allclose(behavior_cost(x, y), [[5.0 + 1.0], [np.hypot(1.0, 4.5) + 1.0]])
    sure = Trajectory(np.zeros((1, 1)), actions=np.array([[3.0, 0.0]]))
    np.testing.assert_allclose(behavior_cost(x, sure)[0], np.hypot(3, 1) + np.hypot(1, 1))
    np.testing.assert_array_equal(behavior_cost(sure, x), behavior_cost(x, sure).T)
    # By sampling: the 2-Wasserstein distance in one dimension couples quantiles.
    normal = np.sort(np.random.default_rng(0).normal(size=200_000))
    sampled = np.sqrt(np.mean((normal - (3 + 5 * normal)) ** 2))
    assert behavior_cost(x, y)[0, 0] - 1.0 == pytest.approx(sampled, rel=0.01)


@pytest.mark.parametrize("types", [(np.float32, np.float64), (np.int32, np.int64), (np.uint8, np.float32)])
def test_states_are_the_same_in_every_type_of_numbers(types):
    values = np.array([[0.1, 1], [2, 1.7]])
    if any(np.issubdtype(kind, np.integer) for kind in types):
        values = values.astype(int)
    agents = [[Trajectory(values.astype(kind), actions=np.array([0, 1]))] for kind in types]
    found = compare_behavior(*agents, discount=0.9)
    assert found.states_a.visited.all()
    zero = [[Trajectory(np.array([[value], [1.0]]), actions=np.array([0, 1]))] for value in (0.0, -0.0)]
    assert compare_behavior(*zero, discount=0.9).states_a.visited.all()
    large = [[Trajectory(np.array([[2**53 + k], [0]]), actions=np.array([0, 1]))] for k in (0, 1)]
    assert compare_behavior(*large, discount=0.9).states_a.visited.tolist() == [False, True]


def test_the_key_tells_states_apart():
    a = Trajectory(np.array([[0.1], [1.2]]), actions=np.array([0, 1]))
    b = Trajectory(np.array([[0.4], [2.2]]), actions=np.array([0, 1]))
    assert not compare_behavior([a], [b]).states_a.visited.any()
    found = compare_behavior([a], [b], key=lambda observation: int(observation[0]))
    assert found.states_a.visited.tolist() == found.states_b.visited.tolist() == [True, False]
    assert "100% have a match in B within 0.5, 50% are visited by A only" in found.text()
    assert "an interval needs at least 3 episodes" in found.text()


def test_text_says_whether_the_interval_contains_zero():
    rng = np.random.default_rng(2)
    a, b = ([episode(rng, shift=shift) for _ in range(10)] for shift in (-0.4, 0.4))
    assert "do not tell the agents apart" in compare_behavior(a, a).text()
    assert "the agents behave differently" in compare_behavior(a, b).text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"episodes_a": []}, "expected episodes of both agents, got 0 and 1"),
        ({"episodes_b": 3}, "episodes_b must be a list of trajectories, got int"),
        ({"threshold": -1}, "threshold must be"),
        ({"key": 3}, "key must be a function"),
        ({"key": lambda observation: observation}, "hashable"),
        ({"confidence": 1.0}, "confidence must be"),
        ({"resamples": 0}, "resamples must be"),
        ({"discount": 1.0}, "discount"),
        ({"episodes_b": [Trajectory(np.zeros((1, 1)), actions=np.ones((1, 2)))]}, "one action space"),
    ],
)
def test_bad_input(arguments, message):
    good = Trajectory(np.zeros((2, 1)), actions=np.array([0, 1]))
    with pytest.raises(UserError, match=message):
        compare_behavior(**({"episodes_a": [good], "episodes_b": [good]} | arguments))
