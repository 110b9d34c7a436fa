from functools import partial

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import kendalltau, rankdata

from pisces.errors import UserError
from pisces.metrics import (
    FiniteMDP,
    distance_agreement,
    embedding_agreement,
    judge_embedding,
    neighbor_regrets,
    pi_bisimulation_metric,
    policy_similarity_metric,
)


@given(st.integers(0, 1000))
@settings(max_examples=20)
def test_measures_equal_their_definitions(seed):
    learned, exact = np.random.default_rng(seed).random((2, 4, 6)).round(1)
    found = distance_agreement(learned, exact)
    assert found.rank_correlation == pytest.approx(np.corrcoef(rankdata(learned), rankdata(exact))[0, 1])
    regrets = neighbor_regrets(learned, exact)[:4]
    assert found.regret == pytest.approx(regrets.mean())
    assert found.neighbor_agreement == pytest.approx((regrets <= 1e-6).mean())
    best = minimize_scalar(lambda scale: np.linalg.norm(scale * learned - exact) / np.linalg.norm(exact)).fun
    assert found.distortion == pytest.approx(best, abs=1e-6)
    assert 0 <= found.distortion <= 1


@given(st.integers(0, 1000), st.floats(0.1, 10))
@settings(max_examples=20)
def test_a_scaled_metric_agrees_perfectly(seed, scale):
    exact = np.random.default_rng(seed).random((4, 5))
    found = distance_agreement(scale * exact, exact)
    assert found.as_dict() == pytest.approx(
        {"states": 4, "rank_correlation": 1, "neighbor_agreement": 1, "regret": 0, "distortion": 0}, abs=1e-7
    )


def test_order_alone_leaves_a_distortion():
    exact = np.random.default_rng(0).random((4, 5))
    found = distance_agreement(exact**3, exact)
    assert kendalltau(exact**3, exact).statistic == 1
    assert found.rank_correlation == pytest.approx(1)
    assert found.neighbor_agreement == 1
    assert found.distortion > 0.1


def test_states_among_each_other_leave_the_diagonal_out():
    x = np.array([[0.0], [1.0], [3.0]])
    metric = np.abs(x - x.T)
    found = embedding_agreement(x, metric, distance="euclidean")
    assert (found.neighbor_agreement, found.distortion) == (1, 0)
    assert found.rank_correlation == pytest.approx(1)
    swapped = embedding_agreement(x[[2, 1, 0]] ** 2, metric, distance="l1")
    # The first state is at 9, next to 1; by the metric it is next to the second too.
    assert swapped.neighbor_agreement == pytest.approx(2 / 3)


def test_constant_distances_and_zero_metrics_have_numbers():
    assert distance_agreement(np.ones((2, 3)), np.eye(2, 3)).rank_correlation == 0
    zero = distance_agreement(np.eye(2, 3), np.zeros((2, 3)))
    assert (zero.rank_correlation, zero.neighbor_agreement, zero.distortion) == (0, 1, 0)
    assert distance_agreement(np.zeros((2, 3)), np.ones((2, 3))).distortion == 1


def test_own_distances_are_used():
    x, y = np.random.default_rng(0).random((2, 3, 2))
    metric = ((x[:, None] - y[None]) ** 2).sum(axis=2)
    assert embedding_agreement(x, metric, y, distance=lambda a, b: ((a[:, None] - b[None]) ** 2).sum(2)).distortion == (
        pytest.approx(0, abs=1e-7)
    )
    assert embedding_agreement(x, metric, y, distance="cosine").distortion > 0.1


class Corridor(gymnasium.Env):
    """Walk right to the end; the observation is the place, and the number of the corridor."""

    def __init__(self, length, number):
        self.length, self.number = length, number
        self.action_space = gymnasium.spaces.Discrete(2)
        self.observation_space = gymnasium.spaces.Box(-1, 10, (2,))

    def observe(self):
        return np.array([self.length - self.place, self.number], dtype=np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return self.observe(), {}

    def step(self, action):
        self.place = max(self.place + (1 if action else -1), 0)
        done = self.place == self.length
        return self.observe(), float(done), done, False, {}


def test_the_judge_tells_a_good_encoder_from_a_bad_one():
    mdps = [FiniteMDP.enumerate(Corridor(length, number)) for number, length in enumerate((3, 4, 5, 4))]
    bisimulation = partial(pi_bisimulation_metric, discount=0.9)
    good = judge_embedding(lambda seen: seen[:, :1], mdps[:3], mdps[3:], metric=bisimulation, distance="euclidean")
    bad = judge_embedding(
        lambda seen: 9 * seen[:, 1:] + np.sin(5 * seen[:, :1]), mdps[:3], mdps[3:], metric=bisimulation
    )
    assert [one.states for one in (*good.training, *good.unseen)] == [3, 4, 5, 4]
    assert good.unseen[0].neighbor_agreement == 1
    summary, worse = good.summary(), bad.summary()
    assert summary["unseen_rank_correlation"] > worse["unseen_rank_correlation"]
    assert summary["training_neighbor_agreement"] > worse["training_neighbor_agreement"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: distance_agreement(np.zeros((2, 3)), np.zeros((3, 2))), "one shape"),
        (lambda: distance_agreement(np.full((2, 2), np.nan), np.zeros((2, 2))), "distance must be finite"),
        (lambda: distance_agreement(np.zeros((1, 1)), np.zeros((1, 1)), among=True), "at least 2 states"),
        (lambda: embedding_agreement(np.zeros((2, 3)), np.zeros((2, 2)), np.zeros((2, 4))), r"known \[m, k\]"),
        (lambda: embedding_agreement(np.zeros((2, 3)), np.zeros((2, 2)), distance="cosin"), "did you mean 'cosine'"),
        (lambda: judge_embedding(lambda seen: seen, [], metric=policy_similarity_metric), "at least 2 training MDPs"),
        (
            lambda: judge_embedding(
                lambda seen: seen[:1], [FiniteMDP.enumerate(Corridor(3, 0))] * 2, metric=policy_similarity_metric
            ),
            r"expected embeddings \[3, k\]",
        ),
    ],
)
def test_bad_input_is_explained(call, message):
    with pytest.raises(UserError, match=message):
        call()
