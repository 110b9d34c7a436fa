"""The time that the callback takes: its default interval, its budget and its warning."""

import numpy as np
import pytest
from sb3_models import environments, make_model
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3

from pisces.errors import UserError
from pisces.integrations.overhead import WARN_AFTER, OverheadClock
from pisces.integrations.stable_baselines3 import GreedyPairs, PolicySimilarityCallback, SimilaritySettings
from pisces.trajectories import play_episodes


class FakeTime:
    """A clock that only moves when it is told to."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


def timed_callback(update_seconds, **settings):
    """A callback whose updates take a given time, on a fake clock."""
    now = FakeTime()
    callback = PolicySimilarityCallback(GreedyPairs(environments()), SimilaritySettings(pairs=1, **settings))
    callback.clock = OverheadClock(now)
    sample = callback.sample

    def slow_sample():
        now.seconds += update_seconds
        return sample()

    callback.sample = slow_sample
    return callback, now


def train_for(callback, now, model, pauses, seconds):
    """Trains in pauses between which the agent takes some seconds."""
    model.learn(1, callback=callback)
    callback.on_training_start({}, {})
    for _ in range(pauses):
        now.seconds += seconds
        callback.on_rollout_start()
    callback.on_training_end()


@pytest.mark.parametrize(("share", "update_seconds"), [(0.1, 0.1), (0.25, 0.1), (0.25, 0.4), (1.0, 0.4), (1.0, 5.0)])
def test_the_budget_is_kept_and_used(share, update_seconds):
    callback, now = timed_callback(update_seconds, updates=1000, every=0, max_overhead=share)
    train_for(callback, now, make_model(), pauses=10, seconds=1.0)
    assert callback.clock.agent == pytest.approx(10)
    assert callback.clock.spent == pytest.approx(callback.updates * update_seconds)
    # The first update has no known length; from then on, the budget holds, and less than one more update is left.
    assert callback.clock.spent <= max(share * 10, update_seconds)
    assert callback.clock.spent + 1.01 * update_seconds >= share * 10


def test_an_update_longer_than_the_budget_is_paid_back_before_the_next():
    callback, now = timed_callback(30.0, updates=10, every=0, max_overhead=0.25)
    train_for(callback, now, make_model(), pauses=39, seconds=10.0)
    # The first update has no known length. The second waits until both fit: 60 s of 240 s.
    assert callback.updates == 3
    assert callback.clock.agent == pytest.approx(390)


def test_a_budget_leaves_no_time_before_the_agent_had_any():
    clock = OverheadClock(now := FakeTime())
    assert clock.affords(None)
    assert not clock.affords(0.25)
    clock.start()
    assert not clock.affords(0.25)
    now.seconds = 1.0
    assert clock.affords(0.25)


def test_time_outside_of_training_does_not_count():
    clock = OverheadClock(now := FakeTime())
    for _ in range(2):
        clock.start()
        now.seconds += 4
        with clock.measure():
            now.seconds += 1
        now.seconds += 6
        clock.stop()
        now.seconds += 100
        with clock.measure():
            now.seconds += 100
    assert (clock.agent, clock.spent, clock.updates) == (20, 2, 2)
    assert clock.overhead == 0.1
    assert clock.seconds_per_update == 1


def test_a_slow_callback_warns_once_and_names_the_remedy():
    callback, now = timed_callback(WARN_AFTER / 4, updates=2, every=0)
    with pytest.warns(
        UserWarning, match=r"5000 ms per update\), 250% of the agent's own .* set max_overhead"
    ) as caught:
        train_for(callback, now, make_model(), pauses=5, seconds=8.0)
    assert len(caught) == 1


def test_a_fast_or_limited_callback_does_not_warn():
    for settings in ({"updates": 1}, {"updates": 50, "max_overhead": 0.9}):
        callback, now = timed_callback(WARN_AFTER / 4, every=0, **settings)
        train_for(callback, now, make_model(), pauses=6, seconds=20.0)
        assert callback.clock.spent > WARN_AFTER


def test_time_is_logged():
    callback, now = timed_callback(0.5, updates=4, every=0)
    model = make_model()
    train_for(callback, now, model, pauses=3, seconds=20.0)
    values = model.logger.name_to_value
    assert values["similarity/seconds_per_update"] == pytest.approx(0.5)
    assert values["similarity/overhead"] == pytest.approx(callback.clock.overhead)


@pytest.mark.parametrize(("algorithm", "continuous"), [(A2C, False), (DQN, False), (SAC, True), (TD3, True)])
def test_algorithms_that_pause_every_few_steps_do_not_train_in_every_pause(algorithm, continuous):
    callback = PolicySimilarityCallback(GreedyPairs(environments(continuous=continuous)), SimilaritySettings(updates=1))
    model = make_model(algorithm, continuous=continuous)
    pauses = []
    callback.on_rollout_start = count_calls(callback.on_rollout_start, pauses)
    model.learn(300, callback=callback)
    assert len(pauses) > 10
    assert callback.updates == 1


def count_calls(function, calls):
    def counting():
        calls.append(1)
        function()

    return counting


def test_ppo_trains_after_every_long_rollout():
    callback = PolicySimilarityCallback(GreedyPairs(environments()), SimilaritySettings(updates=1, pairs=1))
    model = make_model(PPO, n_steps=352)
    model.learn(3 * 1056, callback=callback)
    assert callback.updates == 3


@pytest.mark.parametrize("share", [0, -1, "much", float("nan"), True])
def test_a_wrong_budget_is_refused(share):
    with pytest.raises(UserError, match="max_overhead must be > 0 and finite"):
        SimilaritySettings(max_overhead=share)


def test_episodes_count_as_time_of_the_update_that_plays_them():
    now = FakeTime()
    callback = PolicySimilarityCallback(GreedyPairs(environments()), SimilaritySettings(updates=1, pairs=1))
    callback.clock = OverheadClock(now)
    pairs = callback.pairs

    def slow_episodes(policy):
        now.seconds += 7
        return play_episodes(pairs.environments, lambda observations: np.zeros(len(observations), int))

    pairs._chosen = slow_episodes
    make_model().learn(1, callback=callback)
    assert callback.clock.spent == 7
