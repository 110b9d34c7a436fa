"""Which model a callback belongs to: one only, also after loading."""

import numpy as np
import pytest
import torch
from sb3_models import environments, make_model, parameters
from stable_baselines3 import PPO

from pisces.errors import UserError
from pisces.integrations.stable_baselines3 import GreedyPairs, PolicySimilarityCallback, SimilaritySettings
from pisces.metrics import diagnose
from pisces.trajectories import collect_each, play_episodes

FEW = SimilaritySettings(updates=2, pairs=1)


def test_a_second_model_is_refused_and_the_first_goes_on():
    callback = PolicySimilarityCallback(GreedyPairs(environments()), FEW)
    first, second = make_model(), make_model(seed=1)
    first.learn(32, callback=callback)
    before = parameters(second)
    for _ in range(2):
        with pytest.raises(UserError, match="belongs to another model; make a new callback for each model"):
            second.learn(32, callback=callback)
    assert callback.model is first
    assert torch.equal(parameters(second), before)
    first.learn(32, callback=callback)
    assert callback.updates == 4


def test_a_new_callback_drops_the_episodes_of_the_agent_before():
    pairs = GreedyPairs(environments(), keep="best", refresh=1000)
    make_model().learn(32, callback=PolicySimilarityCallback(pairs, FEW))
    old = pairs.episodes
    make_model(seed=1).learn(32, callback=PolicySimilarityCallback(pairs, FEW))
    assert not {id(episode) for episode in old} & {id(episode) for episode in pairs.episodes}
    assert pairs.drawn == 2


def test_episodes_given_by_the_user_outlive_a_new_callback():
    pairs = GreedyPairs(environments(), refresh=1000)
    pairs.set_episodes(play_episodes(environments(), lambda observations: np.ones(len(observations), int)))
    given = pairs.episodes
    make_model().learn(32, callback=PolicySimilarityCallback(pairs, FEW))
    assert pairs.episodes is given


@pytest.mark.parametrize("has_env", [True, False])
def test_a_loaded_callback_embeds_and_diagnoses_without_training(tmp_path, has_env):
    model, callback = make_model(), PolicySimilarityCallback(GreedyPairs(environments()), FEW)
    model.learn(64, callback=callback)
    model.save(tmp_path / "agent")
    callback.save(tmp_path / "agent")
    loaded = PPO.load(tmp_path / "agent", env=model.get_env() if has_env else None, device="cpu")
    again = PolicySimilarityCallback.load(tmp_path / "agent", GreedyPairs(environments()), model=loaded)
    before = parameters(loaded)
    seen, unseen = (collect_each(environments(levels), lambda observation: 1) for levels in ((0, 1), (2, 3)))
    np.testing.assert_array_equal(again.embed(seen[0].observations), callback.embed(seen[0].observations))
    found = [diagnose(seen, unseen, one.embed).alignment for one in (callback, again)]
    assert found[0] == found[1]
    assert again.updates == callback.updates
    assert torch.equal(parameters(loaded), before)
    again.train(1)
    assert not torch.equal(parameters(loaded), before)


def test_a_state_that_does_not_fit_is_refused_while_loading(tmp_path):
    model, callback = make_model(), PolicySimilarityCallback(GreedyPairs(environments()), FEW)
    model.learn(32, callback=callback)
    callback.save(tmp_path / "agent")
    with pytest.raises(UserError, match="for each of 2 environments, got 3"):
        PolicySimilarityCallback.load(tmp_path / "agent", GreedyPairs(environments((0, 1))), model=model)
