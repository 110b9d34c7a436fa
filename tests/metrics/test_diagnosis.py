import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pisces.errors import UserError
from pisces.metrics import (
    alignment_score,
    behavior_cost,
    cosine_distance,
    diagnose,
    distance_agreement,
    neighbor_regrets,
    trajectory_metric,
    transfer_bound,
)
from pisces.trajectories import Trajectory


def walk(turn, offset=0.0, length=8):
    """Action 0 until the turn; observations tell the steps left until it as a direction in the plane."""
    time = np.arange(length)
    angle = (turn - time) / 5 + offset
    return Trajectory(np.stack([np.cos(angle), np.sin(angle)], axis=1), actions=(time >= turn).astype(int))


@given(st.integers(0, 1000))
def test_a_perfect_embedding_scores_one_and_regrets_nothing(seed):
    metric = np.random.default_rng(seed).random((4, 6))
    assert alignment_score(metric, metric) == 1.0
    assert neighbor_regrets(metric, metric).max() == 0


@given(st.integers(0, 1000))
def test_regrets_are_non_negative_and_at_most_the_range(seed):
    rng = np.random.default_rng(seed)
    distance, metric = rng.random((2, 5, 3))
    regrets = neighbor_regrets(distance, metric)
    assert regrets.shape == (8,)
    assert (regrets >= 0).all()
    assert regrets.max() <= metric.max() - metric.min()
    assert alignment_score(distance, metric) == pytest.approx((regrets <= 1e-6).mean())


def test_the_score_of_a_wrong_embedding_is_zero_and_ties_count():
    assert alignment_score([[0, 1], [1, 0]], [[1, 0], [0, 1]]) == 0.0
    assert alignment_score([[0, 1], [1, 0]], [[1, 1], [1, 1]]) == 1.0


def test_cosine_distance_ignores_length():
    np.testing.assert_allclose(cosine_distance([[2.0, 0.0]], [[5.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]), [[0, 1, 2]])
    assert cosine_distance([[0.0, 0.0]], [[1.0, 0.0]])[0, 0] == 1


def test_a_good_embedding_is_told_from_a_bad_one():
    training, unseen = [walk(2), walk(5)], [walk(3), walk(4)]
    good = diagnose(training, unseen, lambda observations: observations, discount=0.9, names=["three", "four"])
    shift = np.array([[0.0, -1.0], [1.0, 0.0]])
    bad = diagnose(
        training,
        unseen,
        lambda observations: observations @ (shift if observations is unseen[0].observations else np.eye(2)),
        discount=0.9,
    )
    assert good.alignment > bad.alignment
    assert bad.worst(1)[0].name == "0"
    assert bad.worst(1)[0].regret > bad.environments[1].regret
    assert "three" in good.text()


def test_entries_agree_with_their_definitions():
    x, y = walk(3), walk(6, length=10)
    found = diagnose([x], [y], lambda observations: observations, discount=0.9, threshold=0.2).environments[0]
    metric = trajectory_metric(x, y, 0.9)
    assert found.unmatched_share == pytest.approx((metric.min(axis=0) > 0.2).mean())
    assert found.transfer_bound == pytest.approx(transfer_bound(metric, 0.9)[0])
    assert found.states == 10
    distance = cosine_distance(y.observations, x.observations)
    assert found.agreement == distance_agreement(distance, metric.T)
    assert found.invariance is None


def test_unmatched_states_bring_a_warning():
    lonely = Trajectory(np.ones((3, 2)), actions=np.array([7, 7, 7]))
    found = diagnose([walk(3)], [lonely], lambda observations: observations)
    assert found.unmatched_share == 1.0
    assert "Warning: 100% of unseen states have no behavioral match" in found.text()
    assert "Warning" not in diagnose([walk(3)], [walk(3)], lambda observations: observations).text()


def test_invariance_of_augmentations():
    arguments = ([walk(3)], [walk(4)], lambda observations: observations)
    assert diagnose(*arguments, augment=lambda observations: 3 * observations).environments[0].invariance == 1.0
    assert diagnose(*arguments, augment=lambda observations: -observations).environments[0].invariance < 0.5


def test_continuous_actions_have_no_bound():
    x = Trajectory(np.eye(2), actions=np.array([[0.5], [0.1]]))
    assert diagnose([x], [x], lambda observations: observations).environments[0].transfer_bound is None


def test_truncated_trajectories_have_no_bound():
    whole = walk(4)
    cut = Trajectory(whole.observations, actions=whole.actions, terminated=False)
    for training, unseen in ((whole, cut), (cut, whole)):
        (one,) = diagnose([training], [unseen], lambda observations: observations).environments
        assert one.transfer_bound is None
    (one,) = diagnose([whole], [whole], lambda observations: observations).environments
    assert one.transfer_bound == pytest.approx(0)


def test_trajectories_and_costs_are_checked():
    x = walk(3)
    with pytest.raises(UserError, match="got 0 and 1"):
        diagnose([], [x], lambda observations: observations)
    with pytest.raises(UserError, match="expected 1 names, got 2"):
        diagnose([x], [x], lambda observations: observations, names=["a", "b"])
    with pytest.raises(UserError, match="one shape"):
        alignment_score(np.zeros((2, 2)), np.zeros((2, 3)))
    with pytest.raises(UserError, match=r"\[n, k\] and \[m, k\]"):
        cosine_distance(np.zeros((2, 2)), np.zeros((2, 3)))
    with pytest.raises(UserError, match="one action space"):
        behavior_cost(x, Trajectory(np.zeros((1, 2)), actions=np.zeros((1, 2))))


@pytest.mark.parametrize(
    ("embed", "message"),
    [
        (lambda seen: np.full((len(seen), 4), np.nan), "embeddings must be finite"),
        (lambda seen: seen.mean(axis=0, keepdims=True), "of as many observations"),
        (lambda seen: seen[:, 0], "of as many observations"),
    ],
)
def test_bad_embeddings_are_explained(embed, message):
    trajectory = Trajectory(np.eye(5), actions=np.arange(5) % 2)
    with pytest.raises(UserError, match=message):
        diagnose([trajectory], [trajectory], embed)


def test_an_augmentation_must_keep_the_number_of_states():
    arguments = ([walk(3)], [walk(4)], lambda observations: observations)
    with pytest.raises(UserError, match=r"expected embeddings \[8, k\]"):
        diagnose(*arguments, augment=lambda observations: observations[:1])


def test_policies_of_one_trajectory_are_compared_with_actions_of_the_other():
    policies = np.array([[0.75, 0.25], [0.0, 1.0]])
    x = Trajectory(np.zeros((2, 1)), actions=np.array([0, 1]), policies=policies)
    y = Trajectory(np.zeros((3, 1)), actions=np.array([0, 1, 1]))
    np.testing.assert_allclose(behavior_cost(x, y), [[0.25, 0.75, 0.75], [1, 0, 0]])
    np.testing.assert_array_equal(behavior_cost(y, x), behavior_cost(x, y).T)
    with pytest.raises(UserError, match="expected actions 0 to 1 beside policies"):
        behavior_cost(x, Trajectory(np.zeros((1, 1)), actions=np.array([2])))


def test_failing_states_name_the_neighbor_that_the_agent_follows():
    training, unseen = [walk(2), walk(5)], [walk(4)]

    def act(observations):
        return np.zeros(len(observations), dtype=int)

    found = diagnose(training, unseen, lambda observations: observations, discount=0.9, act=act, names=["four"])
    (one,) = found.environments
    assert one.accuracy == found.accuracy == pytest.approx(4 / 8)
    assert [state.step for state in one.failures] == [4, 5, 6, 7]
    metric = np.concatenate([trajectory_metric(x, unseen[0], 0.9) for x in training])
    embeddings = np.concatenate([x.observations for x in training])
    neighbors = cosine_distance(embeddings, unseen[0].observations).argmin(axis=0)
    for state in one.failures:
        trajectory, step = state.neighbor
        assert neighbors[state.step] == 8 * trajectory + step
        assert state.neighbor_action == training[trajectory].actions[step]
        assert state.neighbor_distance == pytest.approx(metric[neighbors[state.step], state.step])
        assert state.nearest_distance == pytest.approx(metric[:, state.step].min())
        assert (state.expert_action, state.agent_action) == (1, 0)
        assert state.follows_neighbor == (state.neighbor_action == 0)
    text = found.text(failures=3)
    assert "differs from the expert's in 4 states" in text
    assert "four, step 4: expert 1, agent 0" in text
    assert text.endswith("and 1 more")


def test_the_text_claims_no_more_than_the_numbers():
    lonely = Trajectory(np.ones((3, 2)), actions=np.array([7, 7, 7]))
    right = diagnose([walk(3)], [lonely], lambda seen: seen, act=lambda seen: np.full(len(seen), 7))
    assert right.failures == ()
    assert "The agent acts as the expert in 100% of them." in right.text()
    assert "no embedding" not in right.text()
    assert "acts as the expert" not in diagnose([walk(3)], [lonely], lambda seen: seen).text()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda seen: np.zeros(3, dtype=int), r"one action per state, \[8\], got \(3,\)"),
        (lambda seen: np.zeros(len(seen)), "must be integers"),
        ("greedy", "act must be a function"),
    ],
)
def test_bad_actions_of_the_agent_are_explained(act, message):
    with pytest.raises(UserError, match=message):
        diagnose([walk(3)], [walk(4)], lambda seen: seen, act=act)


def test_actions_in_columns_are_compared_with_the_agents():
    x = Trajectory(np.arange(2.0)[:, None], actions=np.array([[0], [1]]))
    found = diagnose([x], [x], lambda seen: seen, act=lambda seen: np.array([0, 1]), names=[3])
    assert found.environments[0].accuracy == 1.0
    assert "3" in found.text()
    two = Trajectory(np.arange(2.0)[:, None], actions=np.array([[0, 1], [1, 1]]))
    with pytest.raises(UserError, match="one action per state"):
        diagnose([two], [two], lambda seen: seen, act=lambda seen: np.array([0, 1]))


def test_failing_states_need_discrete_actions():
    x = Trajectory(np.eye(2), actions=np.array([[0.5], [0.1]]))
    with pytest.raises(UserError, match="discrete actions"):
        diagnose([x], [x], lambda seen: seen, act=lambda seen: np.zeros(len(seen), dtype=int))
