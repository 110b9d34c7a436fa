"""Greedy pairs: which environments they take, and which episodes they leave out."""

import gymnasium as gym
import numpy as np
import pytest
from sb3_models import environments, make_model, vectorized
from toy_family import ToyEnv

from pisces.errors import UserError
from pisces.integrations.stable_baselines3 import PolicySimilarityCallback, SimilaritySettings
from pisces.pairs import GreedyPairs
from pisces.trajectories import Trajectory


@pytest.mark.parametrize("make", [vectorized, lambda: gym.vector.SyncVectorEnv([lambda: ToyEnv(0), lambda: ToyEnv(1)])])
def test_vector_environments_are_refused(make):
    with pytest.raises(UserError, match=r"list of single environments, got a vector environment \(\w+VectorEnv|Dummy"):
        GreedyPairs(make())
    with pytest.raises(UserError, match="environment 1 is a vector environment"):
        GreedyPairs([ToyEnv(0), make()])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([lambda: ToyEnv(0), lambda: ToyEnv(1)], r"environment 0 is a function, not an environment; call it"),
        ([ToyEnv(0), ToyEnv], "environment 1 is a type, not an environment; call it"),
        ([ToyEnv(0), "CartPole-v1"], r"environment 1 is a str, not an environment; pass a gymnasium.Env"),
        (lambda: ToyEnv(0), "expected a list of environments, got function"),
        (ToyEnv(0), "expected a list of environments, got ToyEnv"),
        ((ToyEnv(level) for level in range(2)), "expected a list of environments, got generator"),
        ([], "at least two environments to compare, got 0"),
    ],
)
def test_what_is_no_list_of_environments_is_refused(given, message):
    with pytest.raises(UserError, match=message):
        GreedyPairs(given)


def test_episodes_below_a_return_are_left_out():
    # With action 1 from the start, the turns at steps 2, 3 and 4 give returns 6, 5 and 4 of 8.
    pairs = GreedyPairs(environments((0, 1, 2)), min_return=5.0)
    ones = lambda observations: np.ones(len(observations), int)  # noqa: E731
    for _ in range(20):
        pair = pairs.sample(ones)
        shown = {tuple(pair.observations_x[0, 1:].tolist()), tuple(pair.observations_y[0, 1:].tolist())}
        assert shown == {tuple(env.pattern.tolist()) for env in environments((0, 1))}
    assert [float(episode.rewards.sum()) for episode in pairs.episodes] == [6, 5, 4]


def test_given_episodes_stay_for_a_whole_interval():
    pairs = GreedyPairs(environments((0, 1)), refresh=2)
    ones = lambda observations: np.ones(len(observations), int)  # noqa: E731
    given = [Trajectory(np.full((3, 5), value, np.float32), np.zeros(3, int)) for value in (7, 8)]
    for _ in range(2):
        pairs.sample(ones)
    pairs.set_episodes(given)
    shown = [pairs.sample(ones).observations_x.max() for _ in range(3)]
    assert [value >= 7 for value in shown] == [True, True, False]


def test_too_few_good_episodes_give_no_pair_until_the_agent_is_better():
    pairs = GreedyPairs(environments((0, 1, 2)), min_return=5.5, refresh=100)
    played = []

    def policy(observations):
        played.append(len(observations))
        return (
            np.ones(len(observations), int) if len(played) <= 16 else np.full(len(observations), int(len(played) > 19))
        )

    assert pairs.sample(policy) is None
    assert pairs.sample(policy) is None
    assert len(played) == 16  # played again, because there was nothing to sample from
    assert pairs.sample(policy) is not None
    assert pairs.drawn == 1


def test_the_callback_waits_for_good_episodes():
    model = make_model()
    callback = PolicySimilarityCallback(
        GreedyPairs(environments(), min_return=100.0), SimilaritySettings(updates=3, every=0)
    )
    model.learn(96 * 3, callback=callback)
    assert callback.updates == 0
    assert "similarity/loss" not in model.logger.name_to_value
    with pytest.raises(UserError, match="too few greedy episodes that reach min_return"):
        callback.train()
    callback.pairs.min_return = 0.0
    callback.train(2)
    assert callback.updates == 2


def test_episodes_that_are_not_good_enough_are_played_once_per_update(monkeypatch):
    played, reset = [], ToyEnv.reset
    envs = environments((0, 1))
    callback = PolicySimilarityCallback(GreedyPairs(envs, min_return=100.0), SimilaritySettings(updates=3, pairs=4))
    callback.init_callback(make_model())
    monkeypatch.setattr(ToyEnv, "reset", lambda env, **options: (played.append(env), reset(env, **options))[1])
    with pytest.raises(UserError, match="too few greedy episodes"):
        callback.train()
    assert [played.count(env) for env in envs] == [1, 1]


def test_a_wrong_return_is_refused():
    with pytest.raises(UserError, match="min_return must be a number or None, got 'high'"):
        GreedyPairs(environments(), min_return="high")


def test_environments_with_matches_are_paired():
    pairs = GreedyPairs(environments((0, 1, 2)), match_within=0.01)
    actions = ([0, 0, 0, 2], [0, 0, 0, 2], [1, 1, 1, 3])
    pairs.set_episodes([Trajectory(np.full((4, 1), k), np.array(own)) for k, own in enumerate(actions)])
    for _ in range(20):
        pair = pairs.sample(lambda observations: np.zeros(len(observations), int))
        assert {int(pair.observations_x[0, 0]), int(pair.observations_y[0, 0])} == {0, 1}
