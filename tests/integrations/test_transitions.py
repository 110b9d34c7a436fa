"""The callback with losses on transitions, which come from the replay buffer or from the newest rollout."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from sb3_models import environments, make_model, vectorized
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.torch_layers import CombinedExtractor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer
from toy_family import STEPS, ToyEnv

from pisces.errors import UserError
from pisces.integrations.stable_baselines3 import GreedyPairs, PolicySimilarityCallback, SimilaritySettings
from pisces.losses import LOSSES

FEW = SimilaritySettings(updates=2, every=0, batch_size=16)
TURNS = {tuple(env.pattern.tolist()): env.turn for env in environments((0, 1, 2))}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("algorithm", "continuous"), [(PPO, False), (DQN, False), (SAC, True)])
def test_every_loss_trains_the_extractor_and_nothing_else(loss, algorithm, continuous):
    model = make_model(algorithm, continuous=continuous)
    callback = PolicySimilarityCallback(settings=FEW, loss=loss)
    model.learn(72, callback=callback)
    before = {name: value.clone() for name, value in model.policy.state_dict().items()}
    found, _ = callback.train(3)
    assert np.isfinite(found)
    changed = {name for name, value in model.policy.state_dict().items() if not torch.equal(value, before[name])}
    assert changed
    assert all("features_extractor" in name for name in changed)
    assert callback.embed(np.zeros((2, 5), np.float32)).shape == (2, 16)


@pytest.mark.parametrize("algorithm", [PPO, A2C])
def test_a_model_that_was_trained_before_gets_a_target_encoder(algorithm):
    model = make_model(algorithm)
    model.learn(24)
    distribution = model.policy.action_dist
    callback = PolicySimilarityCallback(settings=FEW, loss="mico")
    model.learn(24, callback=callback)
    assert model.policy.action_dist is distribution
    assert np.isfinite(callback.train(1)[0])


def check_transitions(observations, actions, rewards, following, terminated, last=STEPS):
    """Checks transitions of the toy environments against their rules."""
    for before, action, reward, after, end in zip(observations, actions, rewards, following, terminated, strict=True):
        turn = TURNS[tuple(before[1:].tolist())]
        time = round(turn - 4 * float(before[0]))
        np.testing.assert_allclose(after[0], (turn - time - 1) / 4, atol=1e-6)  # never the first state of an episode
        np.testing.assert_array_equal(after[1:], before[1:])
        assert float(reward) == float(bool(action) == (time >= turn))
        assert bool(end) == (time + 1 == last)


@pytest.mark.parametrize("limit", [None, 5])
def test_transitions_of_a_rollout_are_those_of_the_environments(limit):
    make = (
        (lambda level: ToyEnv(level)) if limit is None else (lambda level: gym.wrappers.TimeLimit(ToyEnv(level), limit))
    )
    env = DummyVecEnv([lambda level=level: make(level) for level in range(3)])
    callback = PolicySimilarityCallback(settings=SimilaritySettings(updates=1, batch_size=1000), loss="mico")
    make_model(env=env).learn(96, callback=callback)
    batch = callback._source.sample()
    assert len(batch) == 96
    # An episode that a time limit ends is not terminated.
    check_transitions(
        batch.observations.numpy(),
        batch.actions.numpy(),
        batch.rewards.numpy(),
        batch.next_observations.numpy(),
        batch.terminated.numpy(),
        last=STEPS if limit is None else -1,
    )
    assert batch.terminated.any() == (limit is None)


def test_transitions_of_a_replay_buffer_are_those_of_the_environments():
    callback = PolicySimilarityCallback(settings=SimilaritySettings(updates=1, batch_size=200), loss="mico")
    make_model(DQN).learn(300, callback=callback)
    batch = callback._source.sample()
    check_transitions(
        batch.observations.numpy(),
        batch.actions.squeeze(1).numpy(),
        batch.rewards.numpy(),
        batch.next_observations.numpy(),
        batch.terminated.numpy(),
    )


def test_only_the_newest_rollout_is_kept():
    callback = PolicySimilarityCallback(settings=SimilaritySettings(updates=1, batch_size=1000), loss="deepmdp")
    make_model().learn(96 * 3, callback=callback)
    assert len(callback._source.sample()) == 96
    assert callback._source._steps == []


def test_normalized_observations_are_not_normalized_twice():
    env = VecNormalize(vectorized(), norm_obs=True)
    model = make_model(env=env)
    callback = PolicySimilarityCallback(settings=SimilaritySettings(updates=1, batch_size=1000), loss="mico")
    model.learn(96, callback=callback)
    recorded = callback._source._rollout["observations"][-3:]
    # The buffer's last step holds what the policy has seen.
    np.testing.assert_array_equal(recorded, model.rollout_buffer.observations.reshape(3, 32, 5)[:, -1])


def test_a_replay_buffer_that_is_loaded_later_is_used(tmp_path):
    callback = PolicySimilarityCallback(settings=FEW, loss="mico")
    model = make_model(DQN)
    model.learn(72, callback=callback)
    model.save(tmp_path / "agent")
    model.save_replay_buffer(tmp_path / "replay")
    callback.save(tmp_path / "agent")
    loaded = DQN.load(tmp_path / "agent", env=vectorized())
    again = PolicySimilarityCallback.load(tmp_path / "agent", model=loaded)
    assert again._source.sample() is None
    loaded.load_replay_buffer(tmp_path / "replay")
    assert len(again._source.sample()) == FEW.batch_size
    loaded.learn(24, callback=again, reset_num_timesteps=False)
    assert again.updates > callback.updates


@pytest.mark.parametrize(("loss", "steps"), [("mico", 3), ("dbc-normalized", 3), ("mico", 1), ("spr", 3)])
def test_the_discount_is_that_of_the_steps_of_a_transition(loss, steps):
    options = {} if loss == "spr" else {"discount": 0.9}
    callback = PolicySimilarityCallback(settings=FEW, loss=loss, loss_options=options)
    model = make_model(SAC, continuous=True, n_steps=steps)
    model.learn(72, callback=callback)
    found = callback._trainer.loss
    assert getattr(found, "discount", 0.9**steps) == pytest.approx(0.9**steps)
    if loss == "dbc-normalized":  # the largest distance does not depend on the steps
        assert found.longest == pytest.approx(1.0 / (1 - 0.9) / 2)
    assert callback.updates > 0


class GoalEnv(ToyEnv):
    """The toy environment with a goal, for hindsight replay."""

    def __init__(self, level=0):
        super().__init__(level, continuous=True)
        box = gym.spaces.Box(-10, 10, (5,), np.float32)
        names = ("observation", "achieved_goal", "desired_goal")
        self.observation_space = gym.spaces.Dict(dict.fromkeys(names, box))

    def observe(self):
        seen = super().observe()
        return {"observation": seen, "achieved_goal": seen, "desired_goal": np.zeros_like(seen)}

    def compute_reward(self, achieved, desired, infos):
        return -np.linalg.norm(achieved - desired, axis=-1)


def test_hindsight_replay_waits_for_an_episode():
    model = SAC(
        "MultiInputPolicy",
        GoalEnv(),
        replay_buffer_class=HerReplayBuffer,
        learning_starts=20,
        device="cpu",
        seed=0,
        policy_kwargs={"features_extractor_class": CombinedLayer},
    )
    callback = PolicySimilarityCallback(
        settings=SimilaritySettings(updates=1, every=0, batch_size=4), loss="mico", loss_options={"discount": 0.5}
    )
    model.learn(30, callback=callback)
    assert 0 < callback.updates < 30


class CombinedLayer(CombinedExtractor):
    """A layer that learns, where Stable-Baselines3 has none."""

    def __init__(self, space):
        super().__init__(space)
        self.layer = torch.nn.Linear(self.features_dim, self.features_dim)

    def forward(self, observations):
        return self.layer(super().forward(observations))


class MatrixActions(ToyEnv):
    """The toy environment with a matrix as action."""

    def __init__(self, level=0):
        super().__init__(level, continuous=True)
        self.action_space = gym.spaces.Box(-1, 1, (2, 2), np.float32)


def test_actions_of_several_dimensions_become_rows():
    callback = PolicySimilarityCallback(settings=FEW, loss="dbc")
    make_model(env=DummyVecEnv([MatrixActions, MatrixActions])).learn(96 * 2, callback=callback)
    assert callback._source.sample().actions.shape == (16, 4)
    assert callback.updates > 0


def test_a_rollout_of_one_step_has_nothing_to_compare():
    callback = PolicySimilarityCallback(settings=FEW, loss="mico")
    make_model(A2C, levels=(0,), n_steps=1).learn(8, callback=callback)
    assert callback.updates == 0
    with pytest.raises(UserError, match="too few recorded transitions"):
        callback.train()


def test_numbers_of_numpy_are_saved(tmp_path):
    settings = SimilaritySettings(updates=1, batch_size=16, scale=np.float32(0.5))
    callback = PolicySimilarityCallback(settings=settings, loss="mico", loss_options={"discount": np.float32(0.5)})
    model = make_model()
    model.learn(96, callback=callback)
    callback.save(tmp_path / "agent")
    again = PolicySimilarityCallback.load(tmp_path / "agent", model=model)
    assert (again.settings.scale, again.loss_options) == (0.5, {"discount": 0.5})


def test_updates_wait_for_transitions():
    callback = PolicySimilarityCallback(settings=FEW, loss="simsr")
    model = make_model()
    callback.init_callback(model)
    with pytest.raises(UserError, match="too few recorded transitions"):
        callback.train()
    model.learn(96, callback=callback)
    # The first rollout starts without any, and `learn` ends after it.
    assert callback.updates == 0
    callback.train()
    assert callback.updates == 2


@pytest.mark.parametrize("loss", ["mico", "dbc"])
def test_saving_loading_and_going_on_equals_not_stopping(tmp_path, loss):
    def states(callback, model):
        return {**callback._state()[0], **model.policy.state_dict()}

    model = make_model()
    callback = PolicySimilarityCallback(settings=FEW, loss=loss, loss_options={"discount": 0.5})
    model.learn(96 * 2, callback=callback)
    model.save(tmp_path / "agent")
    callback.save(tmp_path / "agent")
    loaded = PPO.load(tmp_path / "agent", device="cpu")
    again = PolicySimilarityCallback.load(tmp_path / "agent", model=loaded)
    assert (again.loss, again.loss_options) == (loss, {"discount": 0.5})
    again._source._rollout = callback._source._rollout  # transitions are not saved
    for one in (callback, again):
        one.train(3)
    one, two = states(callback, model), states(again, loaded)
    assert one.keys() == two.keys()
    for name, value in one.items():
        torch.testing.assert_close(value, two[name], rtol=0, atol=0)


def test_a_target_encoder_follows_the_encoder():
    callback = PolicySimilarityCallback(settings=SimilaritySettings(updates=1, tau=1.0, batch_size=16), loss="mico")
    model = make_model()
    model.learn(96, callback=callback)
    callback.train(1)
    for name, value in callback._trainer._target.network.state_dict().items():
        torch.testing.assert_close(value, model.policy.state_dict()[name], rtol=0, atol=0)


def test_wrong_losses_are_explained():
    with pytest.raises(UserError, match=r"unknown loss 'mica'; did you mean 'mico'\?"):
        PolicySimilarityCallback(loss="mica")
    with pytest.raises(UserError, match="expected GreedyPairs or TrajectoryPairs, got NoneType"):
        PolicySimilarityCallback()
    with pytest.raises(UserError, match="loss 'mico' takes the agent's own transitions; leave out pairs"):
        PolicySimilarityCallback(GreedyPairs(environments()), loss="mico")
    with pytest.raises(UserError, match="loss 'pse' has no loss_options"):
        PolicySimilarityCallback(GreedyPairs(environments()), loss_options={"discount": 0.9})
    with pytest.raises(UserError, match="has no option 'scale'"):
        make_model().learn(1, callback=PolicySimilarityCallback(loss="mico", loss_options={"scale": 1.0}))
