"""Dict observations and stacked frames: episodes are recorded as the model's own environments show them."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from sb3_models import environments, make_model, vectorized
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecNormalize, VecTransposeImage
from toy_family import STEPS, ToyEnv, expert

from pisces.errors import UserError
from pisces.integrations.observations import _unflatten, greedy_actions, policy_input
from pisces.integrations.stable_baselines3 import (
    GreedyPairs,
    PolicySimilarityCallback,
    SimilaritySettings,
    wrap_environment,
)
from pisces.metrics import diagnose
from pisces.pairs import TrajectoryPairs
from pisces.trajectories import collect, collect_each


class DictEnv(gym.Env):
    """A toy environment whose observations have a picture, a vector and a number."""

    def __init__(self, level, parts=("image", "vector", "phase"), continuous=False):
        self.toys = {kind: ToyEnv(level, kind, continuous) for kind in ("vector", "image")}
        every = {kind: toy.observation_space for kind, toy in self.toys.items()} | {"phase": spaces.Discrete(3)}
        self.observation_space = spaces.Dict({part: every[part] for part in parts})
        self.action_space = self.toys["vector"].action_space
        self.parts = parts

    def observe(self):
        every = {kind: toy.observe() for kind, toy in self.toys.items()} | {"phase": self.toys["vector"].time % 3}
        return {part: every[part] for part in self.parts}

    def reset(self, *, seed=None, options=None):
        for toy in self.toys.values():
            toy.reset(seed=seed)
        return self.observe(), {}

    def step(self, action):
        outcomes = [toy.step(action) for toy in self.toys.values()]
        return (self.observe(), *outcomes[0][1:])


WRAPPERS = {
    "none": lambda env: env,
    "stacked": lambda env: VecFrameStack(env, 3),
    "transposed, then stacked": lambda env: VecFrameStack(VecTransposeImage(env), 3),
    "stacked, then normalized": lambda env: VecNormalize(VecFrameStack(env, 2), norm_obs_keys=["vector"]),
}


def dict_model(parts, wrap, levels=(0, 1), algorithm=PPO, continuous=False):
    env = DummyVecEnv([lambda level=level: DictEnv(level, parts, continuous) for level in levels])
    return make_model(algorithm, env=wrap(env), policy="MultiInputPolicy")


@pytest.mark.parametrize("wrappers", WRAPPERS)
@pytest.mark.parametrize("parts", [("image", "vector"), ("vector", "phase")])
def test_dict_observations_are_those_that_the_model_sees(wrappers, parts):
    if "phase" in parts and wrappers != "none":
        return  # Stable-Baselines3 stacks no Discrete spaces
    model = dict_model(parts, WRAPPERS[wrappers], levels=(2,))
    env, own = model.get_env(), wrap_environment(DictEnv(2, parts), model)
    seen, (recorded, _) = env.reset(), own.reset()
    for step in range(2 * STEPS):
        assert recorded.shape == own.observation_space.shape
        # The statistics of a normalization move with every step, so that only what follows it can be compared.
        expected = model.policy.obs_to_tensor(seen)[0] if env is not model.get_vec_normalize_env() else None
        given = policy_input(model, recorded[None])
        if expected is None:
            raw = model.get_vec_normalize_env().get_original_obs()
            expected = model.policy.obs_to_tensor(model.get_vec_normalize_env().normalize_obs(raw))[0]
        assert {key: value.dtype for key, value in given.items()} == {key: v.dtype for key, v in expected.items()}
        for key, value in expected.items():
            torch.testing.assert_close(given[key], value)
        seen, *_ = env.step(np.array([step % 2]))
        recorded, _, terminated, *_ = own.step(step % 2)
        if terminated:
            recorded, _ = own.reset()


@pytest.mark.parametrize("kind", ["image", "vector"])
@pytest.mark.parametrize("order", [None, "first", "last"])
def test_stacked_frames_are_those_that_the_model_sees(kind, order):
    wrapped = VecFrameStack(vectorized((1,), kind=kind), 4, channels_order=order if kind == "vector" else "last")
    model = make_model(env=wrapped, kind=kind)
    env, own = model.get_env(), wrap_environment(ToyEnv(1, kind), model)
    seen, (recorded, _) = env.reset(), own.reset()
    for step in range(2 * STEPS):
        np.testing.assert_array_equal(recorded, seen[0])
        assert recorded.dtype == seen.dtype
        seen, *_ = env.step(np.array([step % 2]))
        recorded, _, terminated, *_ = own.step(step % 2)
        if terminated:
            recorded, _ = own.reset()


@pytest.mark.parametrize(("algorithm", "continuous"), [(PPO, False), (DQN, False), (SAC, True)])
def test_the_callback_trains_with_dict_observations(algorithm, continuous, tmp_path):
    model = dict_model(("image", "vector", "phase"), lambda env: env, algorithm=algorithm, continuous=continuous)
    pairs = GreedyPairs([DictEnv(level, continuous=continuous) for level in (0, 1)])
    # Weights would be zero for an untrained agent that takes the same action everywhere.
    callback = PolicySimilarityCallback(pairs, SimilaritySettings(updates=2, pairs=1, weighted=False))
    before = {name: value.clone() for name, value in model.policy.state_dict().items()}
    callback.init_callback(model)
    callback.train()
    changed = [name for name, value in model.policy.state_dict().items() if not torch.equal(value, before[name])]
    assert changed
    assert all("features_extractor" in name for name in changed)
    # Flat, or as the environment gives them: the embeddings are the same.
    episode = pairs.episodes[0].observations
    named = _unflatten(model.observation_space, episode)
    np.testing.assert_allclose(callback.embed(named), callback.embed(episode), rtol=1e-5, atol=1e-6)
    callback.save(tmp_path / "agent")
    fresh = GreedyPairs([DictEnv(level, continuous=continuous) for level in (0, 1)])
    loaded = PolicySimilarityCallback.load(tmp_path / "agent", fresh, model=model)
    np.testing.assert_array_equal(loaded.embed(episode), callback.embed(episode))


def test_the_callback_trains_with_stacked_frames():
    model = make_model(env=VecFrameStack(vectorized(kind="image"), 4), kind="image")
    pairs = GreedyPairs(environments(kind="image"))
    callback = PolicySimilarityCallback(pairs, SimilaritySettings(updates=1, pairs=1))
    model.learn(32, callback=callback)
    assert pairs.episodes[0].observations.shape[1:] == (12, 36, 36)
    # A second callback does not stack the stacked frames again.
    second = PolicySimilarityCallback(pairs, SimilaritySettings(updates=1, pairs=1))
    make_model(env=VecFrameStack(vectorized(kind="image"), 2), kind="image").learn(32, callback=second)
    assert pairs.episodes[0].observations.shape[1:] == (6, 36, 36)


def test_wrapped_environments_serve_experts_and_diagnosis():
    model = dict_model(("vector", "phase"), lambda env: env)

    def episodes(levels):
        envs = [DictEnv(level, ("vector", "phase")) for level in levels]
        return collect_each(
            [wrap_environment(env, model) for env in envs], [expert(env.toys["vector"]) for env in envs]
        )

    settings_ = SimilaritySettings("hidden", updates=1, pairs=1)
    callback = PolicySimilarityCallback(TrajectoryPairs(episodes((0, 1))), settings_)
    callback.init_callback(model)
    callback.train()
    found = diagnose(episodes((0, 1)), episodes((2, 3)), callback.embed)
    assert [one.states for one in found.environments] == [STEPS, STEPS]


def test_other_environments_stay_as_they_are():
    env = ToyEnv(0)
    assert wrap_environment(env, make_model()) is env


def test_a_normalization_of_single_frames_is_refused():
    model = make_model(env=VecFrameStack(VecNormalize(vectorized()), 2))
    with pytest.raises(UserError, match="apply VecNormalize last"):
        wrap_environment(ToyEnv(0), model)


def test_a_normalization_of_other_keys_is_accepted():
    model = dict_model(("image", "vector"), lambda env: VecTransposeImage(VecNormalize(env, norm_obs_keys=["vector"])))
    assert wrap_environment(DictEnv(0, ("image", "vector")), model).reset()[0].shape == (36 * 36 * 3 + 5,)


def test_observations_that_do_not_fit_are_explained():
    model = dict_model(("vector", "phase"), lambda env: env)
    with pytest.raises(UserError, match=r"flat observations \[n, 8\] of the model's Dict space, got \[2, 5\]"):
        policy_input(model, np.zeros((2, 5)))
    with pytest.raises(UserError, match="expected an environment with Dict observations, got Box"):
        wrap_environment(ToyEnv(0), model)
    with pytest.raises(UserError, match=r"keys of the model's space, got others: \['image', 'phase'\]"):
        collect(wrap_environment(DictEnv(0, ("vector", "image")), model), lambda observation: 0)
    stacked = make_model(env=VecFrameStack(vectorized(), 2))
    with pytest.raises(UserError, match=r"space \(10,\), got \(5,\); record them in wrap_environment"):
        greedy_actions(stacked, np.zeros((2, 5), np.float32))


parts = st.one_of(
    st.tuples(st.integers(1, 3), st.integers(1, 3)).map(lambda shape: spaces.Box(-5, 5, shape, np.float32)),
    st.integers(1, 4).map(lambda side: spaces.Box(0, 255, (side, 2, 3), np.uint8)),
    st.tuples(st.integers(1, 5), st.integers(-2, 2)).map(lambda n: spaces.Discrete(n[0], start=n[1])),
    st.integers(1, 4).map(spaces.MultiBinary),
    st.lists(st.integers(1, 4), min_size=1, max_size=3).map(spaces.MultiDiscrete),
)


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.sampled_from("abcd"), parts, min_size=1), st.integers(0, 2**31 - 1))
def test_flat_observations_become_what_they_were(named, seed):
    space = spaces.Dict(named)
    space.seed(seed)
    samples = [space.sample() for _ in range(3)]
    found = _unflatten(space, np.stack([spaces.flatten(space, sample) for sample in samples]))
    for key in named:
        expected = np.stack([sample[key] for sample in samples])
        np.testing.assert_array_equal(found[key], expected)
        assert found[key].dtype == expected.dtype
