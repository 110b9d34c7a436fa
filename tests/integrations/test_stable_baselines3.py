import gc
import importlib
import pydoc
import re
import sys
from dataclasses import fields
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from sb3_models import Extractor, environments, make_model, parameters, vectorized
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecNormalize
from toy_family import ToyEnv, expert

from pisces.errors import UserError
from pisces.integrations.encoders import find_encoder
from pisces.integrations.observations import policy_input
from pisces.integrations.stable_baselines3 import (
    GreedyPairs,
    PolicySimilarityCallback,
    SimilaritySettings,
)
from pisces.pairs import TrajectoryPairs
from pisces.trajectories import collect_each, play_episodes


@pytest.mark.parametrize("layers", ["features", "hidden"])
@pytest.mark.parametrize(
    ("algorithm", "continuous"), [(PPO, False), (PPO, True), (A2C, False), (DQN, False), (SAC, True), (TD3, True)]
)
def test_trains_what_it_should_and_nothing_else(algorithm, continuous, layers):
    model = make_model(algorithm, continuous=continuous)
    environs = environments(continuous=continuous)
    pairs = TrajectoryPairs(collect_each(environs, [expert(env) for env in environs]))
    callback = PolicySimilarityCallback(pairs, SimilaritySettings(layers, updates=3, every=48))
    model.learn(150, callback=callback)
    assert callback.updates >= 6
    before = {name: value.clone() for name, value in model.policy.state_dict().items()}
    callback.train(2)
    changed = {name for name, value in model.policy.state_dict().items() if not torch.equal(value, before[name])}
    hidden = {"policy_net", "latent_pi", "q_net.q_net.0", "q_net.q_net.2", "actor.mu.0", "actor.mu.2"}
    assert any("features_extractor" in name for name in changed)
    assert all("features_extractor" in name or any(part in name for part in hidden) for name in changed)
    assert any("features_extractor" not in name for name in changed) == (layers == "hidden")


@pytest.mark.parametrize(("algorithm", "continuous"), [(PPO, False), (DQN, False), (SAC, True)])
def test_learns_from_images(algorithm, continuous):
    model = make_model(algorithm, kind="image", continuous=continuous, levels=(0, 1))
    pairs = GreedyPairs(environments((0, 1), kind="image", continuous=continuous))
    callback = PolicySimilarityCallback(pairs, SimilaritySettings(updates=1, every=16))
    model.learn(24, callback=callback)
    assert callback.updates >= 1
    assert pairs.episodes[0].observations.dtype == np.uint8
    assert callback.embed(pairs.episodes[0].observations).shape == (8, 64)


def test_is_logged_through_the_models_logger():
    model = make_model()
    model.learn(
        1, callback=PolicySimilarityCallback(GreedyPairs(environments()), SimilaritySettings(updates=2)), log_interval=9
    )
    values = model.logger.name_to_value
    assert values["similarity/updates"] == 2
    assert values["similarity/loss"] > 0
    assert 0 <= values["similarity/alignment"] <= 1


def test_waits_and_pauses_as_told():
    model = make_model()
    callback = PolicySimilarityCallback(GreedyPairs(environments()), SimilaritySettings(updates=1, start=96, every=150))
    model.learn(96 * 5, callback=callback)
    # Rollouts of 96 steps begin at 0, 96, 192, 288 and 384; the first counted is at 96, the next at least 150 later.
    assert callback.updates == 2


def test_goes_on_when_the_count_of_steps_starts_again():
    callback = PolicySimilarityCallback(GreedyPairs(environments()), SimilaritySettings(updates=1, pairs=1, every=40))
    model = make_model()
    model.learn(96, callback=callback)
    before = callback.updates
    model.learn(96, callback=callback)
    assert callback.updates == 2 * before


@pytest.mark.parametrize("layer", [torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(16)])
def test_embeds_in_evaluation_mode(layer):
    class Moody(Extractor):
        def forward(self, observations):
            return self.mood(super().forward(observations))

        def __init__(self, space):
            super().__init__(space)
            self.mood = layer

    callback = PolicySimilarityCallback(GreedyPairs(environments()), SimilaritySettings(updates=1, pairs=1))
    model = make_model(extractor=Moody)
    model.learn(96, callback=callback)
    model.policy.set_training_mode(True)
    state = {name: value.clone() for name, value in model.policy.state_dict().items()}
    seen = np.stack([env.reset()[0] for env in environments()])
    np.testing.assert_array_equal(callback.embed(seen), callback.embed(seen))
    assert model.policy.training
    assert all(torch.equal(value, state[name]) for name, value in model.policy.state_dict().items())


def test_loss_falls_and_alignment_rises_with_an_experts_pairs():
    environs = environments((0, 1, 2, 3))
    pairs = TrajectoryPairs(collect_each(environs, [expert(env) for env in environs]), discount=0.9)
    model = make_model()
    callback = PolicySimilarityCallback(pairs, SimilaritySettings(updates=1, pairs=1, learning_rate=3e-3))
    model.learn(1, callback=callback)
    start = np.mean([callback.train(1) for _ in range(12)], axis=0)
    callback.train(300)
    end = np.mean([callback.train(1) for _ in range(12)], axis=0)
    assert end[0] < 0.8 * start[0]
    assert end[1] > start[1] + 0.1


def test_same_seed_same_result():
    models = []
    for _ in range(2):
        model = make_model(seed=3)
        pairs = GreedyPairs(environments(), refresh=2, seed=5)
        model.learn(300, callback=PolicySimilarityCallback(pairs, SimilaritySettings(updates=3)))
        models.append(model)
    torch.testing.assert_close(parameters(models[0]), parameters(models[1]), rtol=0, atol=0)


@pytest.mark.parametrize("source", ["greedy", "expert"])
def test_saving_loading_and_going_on_equals_not_stopping(tmp_path, source):
    def make_pairs():
        environs = environments()
        if source == "greedy":
            return GreedyPairs(environs, refresh=5, seed=5)
        # Of all of NumPy's generators this one has an array in its state.
        draws = np.random.Generator(np.random.MT19937(5))
        return TrajectoryPairs(collect_each(environs, [expert(env) for env in environs]), seed=draws)

    model, callback = make_model(), PolicySimilarityCallback(make_pairs(), SimilaritySettings(updates=3))
    model.learn(200, callback=callback)
    model.save(tmp_path / "agent.zip")
    assert callback.save(tmp_path / "agent.zip") == tmp_path / "agent.similarity.safetensors"
    loaded = PPO.load(tmp_path / "agent.zip", device="cpu")
    again = PolicySimilarityCallback.load(tmp_path / "agent.zip", make_pairs())
    for each, its_callback in ((model, callback), (loaded, again)):
        # Stable-Baselines3 saves neither torch's generator nor where the environments are.
        set_random_seed(7)
        each.set_env(vectorized(), force_reset=True)
        each.learn(200, callback=its_callback, reset_num_timesteps=False)
    assert again.updates == callback.updates
    torch.testing.assert_close(parameters(model), parameters(loaded), rtol=0, atol=0)
    unseen = environments()[0].reset()[0][None]
    np.testing.assert_array_equal(callback.embed(unseen), again.embed(unseen))


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_memory_stays_flat_over_a_thousand_calls():
    model = make_model()
    # A budget that is never reached, so that a slow machine does not warn about the time.
    settings = SimilaritySettings(updates=1, pairs=1, every=0, max_overhead=1e9)
    callback = PolicySimilarityCallback(GreedyPairs(environments(), refresh=20), settings)
    model.learn(1, callback=callback)
    for _ in range(100):
        callback.on_rollout_start()
    gc.collect()
    objects, resident = len(gc.get_objects()), resident_bytes()
    for _ in range(1000):
        callback.on_rollout_start()
    gc.collect()
    assert callback.updates > 1000
    # A pair or an episode that is kept per call would be at least one object each; a graph, many tensors.
    assert len(gc.get_objects()) - objects < 500
    assert resident_bytes() - resident < 8_000_000


def test_normalized_observations_reach_the_encoder_as_they_reach_the_policy():
    env = VecNormalize(vectorized(), norm_obs=True)
    model = make_model(env=env)
    model.learn(64, callback=PolicySimilarityCallback(GreedyPairs(environments()), SimilaritySettings(updates=1)))
    raw = np.stack([environ.reset()[0] for environ in environments()])
    np.testing.assert_allclose(policy_input(model, raw).numpy(), env.normalize_obs(raw), rtol=1e-6)


def test_episodes_are_played_in_all_environments_and_cut_off():
    played = play_episodes(environments((0, 1)), lambda observations: np.ones(len(observations), int))
    assert [len(episode) for episode in played] == [8, 8]
    assert [episode.rewards.sum() for episode in played] == [6, 5]
    cut = play_episodes(environments((0, 1)), lambda observations: np.ones(len(observations), int), max_steps=3)
    assert [len(episode) for episode in cut] == [3, 3]


def test_best_episodes_are_kept():
    pairs = GreedyPairs(environments((0, 1)), refresh=1, keep="best")
    actions = iter([1] * 8 + [0] * 8)
    for _ in range(2):
        pairs.sample(lambda observations: np.full(len(observations), next(actions)))
    assert [episode.rewards.sum() for episode in pairs.episodes] == [6, 5]


class Unlike(ToyEnv):
    def __init__(self):
        super().__init__(0)
        self.observation_space = gym.spaces.Box(-10, 10, (7,), np.float32)

    def observe(self):
        return np.zeros(7, np.float32)


class DictEnv(ToyEnv):
    def __init__(self):
        super().__init__(0)
        self.observation_space = gym.spaces.Dict({"inner": self.observation_space})

    def observe(self):
        return {"inner": super().observe()}


def learn_with(pairs, model=None, **settings):
    (make_model() if model is None else model).learn(
        1, callback=PolicySimilarityCallback(pairs, SimilaritySettings(**settings))
    )


def test_wrong_observation_spaces_are_explained():
    with pytest.raises(UserError, match=r"expected observations of the model's space \(5,\), got \(7,\)"):
        learn_with(GreedyPairs([Unlike(), Unlike()]))
    with pytest.raises(UserError, match=r"expected an environment with Dict observations, got Box"):
        learn_with(GreedyPairs(environments()), PPO("MultiInputPolicy", DictEnv(), device="cpu"), layers="hidden")


def test_a_model_without_a_features_extractor_is_explained():
    model = make_model(extractor=None)
    with pytest.raises(UserError, match=r"got FlattenExtractor, which has no parameters; choose layers='hidden'"):
        learn_with(GreedyPairs(environments()), model)
    model.policy.features_extractor = None
    with pytest.raises(UserError, match="expected a policy with a features extractor"):
        find_encoder(model)


def test_one_environment_only_is_explained():
    with pytest.raises(UserError, match="at least two environments to compare, got 1"):
        GreedyPairs(environments((0,)))


def test_different_action_spaces_are_explained():
    mixed = [ToyEnv(0), ToyEnv(1, continuous=True)]
    with pytest.raises(UserError, match="one action space, got actions int64"):
        TrajectoryPairs(collect_each(mixed, [expert(env) for env in mixed]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layers": "all"}, "unknown layers 'all'"),
        ({"updates": 0}, "updates must be >= 1, got 0"),
        ({"start": -1}, "start must be >= 0"),
        ({"batch_size": 1}, "batch_size must be at least 2"),
        ({"learning_rate": 0.0}, "learning_rate must be > 0"),
    ],
)
def test_bad_settings_are_explained(arguments, message):
    with pytest.raises(UserError, match=message):
        SimilaritySettings(**arguments)


def test_help_explains_every_setting():
    text = pydoc.render_doc(SimilaritySettings)
    for name in fields(SimilaritySettings):
        assert re.search(rf"\b{name.name}: [A-Z].*[a-z]", text), name.name


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "pisces.integrations.stable_baselines3")
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    with pytest.raises(ImportError, match=r"run: pip install 'pisces-rl\[sb3\]'"):
        importlib.import_module("pisces.integrations.stable_baselines3")


def test_misuse_is_explained(tmp_path):
    fresh = PolicySimilarityCallback(GreedyPairs(environments()))
    for call in (lambda: fresh.save(tmp_path / "x"), fresh.train, lambda: fresh.embed(np.zeros((1, 5)))):
        with pytest.raises(UserError, match="not attached to a model yet"):
            call()
    with pytest.raises(UserError, match="no saved callback"):
        PolicySimilarityCallback.load(tmp_path / "missing", GreedyPairs(environments()))
    with pytest.raises(UserError, match="expected GreedyPairs or TrajectoryPairs, got list"):
        PolicySimilarityCallback(environments())
    for arguments in ({"keep": "all"}, {"refresh": 0}, {"discount": 1.0}):
        with pytest.raises(UserError):
            GreedyPairs(environments(), **arguments)


@pytest.mark.parametrize("algorithm", [PPO, A2C])
@pytest.mark.parametrize("layers", ["features", "hidden"])
def test_the_actors_own_extractor_is_trained_where_it_is_not_shared(algorithm, layers):
    policy = {"features_extractor_class": Extractor, "share_features_extractor": False}
    model = algorithm("MlpPolicy", vectorized(), n_steps=64, seed=0, device="cpu", policy_kwargs=policy)
    callback = PolicySimilarityCallback(GreedyPairs(environments()), SimilaritySettings(layers, updates=2))
    model.learn(32, callback=callback)
    before = [
        extractor.layer[1].weight.clone()
        for extractor in (model.policy.pi_features_extractor, model.policy.vf_features_extractor)
    ]
    callback.train(2)
    assert not torch.equal(model.policy.pi_features_extractor.layer[1].weight, before[0])
    assert torch.equal(model.policy.vf_features_extractor.layer[1].weight, before[1])


def saved(tmp_path, **arguments):
    model = make_model()
    callback = PolicySimilarityCallback(GreedyPairs(environments(), **arguments), SimilaritySettings(updates=1))
    model.learn(32, callback=callback)
    callback.save(tmp_path / "agent")
    return model


class Wide(Extractor):
    def __init__(self, space):
        super().__init__(space)
        self._features_dim = 24
        self.layer = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(int(np.prod(space.shape)), 24))


@pytest.mark.parametrize(
    ("extractor", "pairs", "message"),
    [
        (Wide, lambda: GreedyPairs(environments()), "layers of other widths"),
        (Extractor, lambda: GreedyPairs(environments((0, 1))), "for each of 2 environments, got 3"),
        (Extractor, lambda: GreedyPairs(environments(), seed=np.random.Generator(np.random.MT19937(0))), "saved kind"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_every_time(tmp_path, extractor, pairs, message):
    saved(tmp_path)
    callback = PolicySimilarityCallback.load(tmp_path / "agent", pairs())
    model = make_model(extractor=extractor)
    for _ in range(2):
        with pytest.raises(UserError, match=message):
            model.learn(32, callback=callback)


def test_episodes_that_were_given_are_used_first():
    episodes = play_episodes(environments(), lambda observations: np.zeros(len(observations), int))
    pairs = GreedyPairs(environments(), refresh=2)
    pairs.set_episodes(episodes)

    def policy(observations):
        raise AssertionError("played anew")

    pairs.sample(policy)
    pairs.sample(policy)
    with pytest.raises(AssertionError, match="played anew"):
        pairs.sample(policy)


@pytest.mark.parametrize("arguments", [{"states": 0}, {"refresh": 2.5}, {"max_steps": 0}, {"seed": -1}])
def test_wrong_numbers_of_greedy_pairs_are_refused(arguments):
    with pytest.raises(UserError):
        GreedyPairs(environments(), **arguments)


def test_the_same_environment_twice_is_refused():
    with pytest.raises(UserError, match="the same one twice"):
        GreedyPairs([ToyEnv(0)] * 2)


def test_updates_need_a_model_and_a_number():
    fresh = PolicySimilarityCallback(GreedyPairs(environments()))
    with pytest.raises(UserError, match="not attached to a model yet"):
        fresh.sample()
    make_model().learn(32, callback=fresh)
    for wrong in (0, -1):
        with pytest.raises(UserError, match="updates must be at least 1"):
            fresh.train(wrong)
    assert fresh.embed([np.zeros(fresh.model.observation_space.shape).tolist()]).shape == (1, 64)
    with pytest.raises(UserError, match="match_within"):
        SimilaritySettings(match_within="x")
