import gymnasium as gym
import numpy as np
import pytest

from pisces.envs.crossing import CrossingEnv
from pisces.errors import UserError
from pisces.trajectories import Trajectory, collect, collect_vector, play_episodes
from pisces.trajectories.minari import from_minari, to_minari


@pytest.fixture(autouse=True)
def local_datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))


def episodes(levels=(0, 1)):
    environments = [CrossingEnv(level) for level in levels]
    return [collect(env, lambda observation, env=env: env.optimal_action()) for env in environments]


def assert_same(one, other):
    assert one.observations.dtype == other.observations.dtype
    for name in ("observations", "actions", "rewards"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_images_survive_the_way_through_minari_bit_by_bit():
    written, env = episodes(), CrossingEnv()
    dataset = to_minari(written, "toy/crossing-v0", env.observation_space, env.action_space, algorithm_name="optimal")
    for read in (from_minari("toy/crossing-v0"), from_minari(dataset)):
        assert len(read) == 2
        assert read[0].observations.dtype == np.uint8
        for one, other in zip(written, read, strict=True):
            assert_same(one, other)


def test_continuous_actions_and_no_rewards():
    trajectory = Trajectory(np.ones((3, 2), np.float32), actions=np.full((3, 1), 0.5, np.float32))
    box = gym.spaces.Box(-1, 1, (2,), np.float32), gym.spaces.Box(-1, 1, (1,), np.float32)
    to_minari([trajectory], "toy/line-v0", *box)
    (read,) = from_minari("toy/line-v0")
    np.testing.assert_array_equal(read.actions, trajectory.actions)
    np.testing.assert_array_equal(read.rewards, np.zeros(3))


def test_misuse_is_explained():
    env = CrossingEnv()
    spaces = env.observation_space, env.action_space
    with pytest.raises(UserError, match="expected a local Minari dataset, got 'toy/none-v0'; there are none"):
        from_minari("toy/none-v0")
    with pytest.raises(UserError, match="at least one trajectory"):
        to_minari([], "toy/crossing-v0", *spaces)
    with pytest.raises(UserError, match="expected observations of Box"):
        to_minari([Trajectory(np.zeros((1, 2)), actions=np.zeros(1, int))], "toy/crossing-v0", *spaces)
    with pytest.raises(UserError, match="expected actions of Discrete"):
        to_minari([Trajectory(episodes()[0].observations[:1], actions=np.array([9]))], "toy/crossing-v0", *spaces)
    policies = Trajectory(episodes()[0].observations[:1], policies=np.array([[1.0, 0.0, 0.0]]))
    with pytest.raises(UserError, match="with actions"):
        to_minari([policies], "toy/crossing-v0", *spaces)
    to_minari(episodes(), "toy/crossing-v0", *spaces)
    with pytest.raises(UserError, match="which exists"):
        to_minari(episodes(), "toy/crossing-v0", *spaces)


@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
def test_vector_environments_give_the_episodes_of_their_parts(mode):
    levels = (0, 1, 2)
    autoreset = gym.vector.AutoresetMode[mode]
    vector = gym.vector.SyncVectorEnv(
        [lambda level=level: CrossingEnv(level) for level in levels], autoreset_mode=autoreset
    )
    found = collect_vector(vector, lambda observations: np.array([env.optimal_action() for env in vector.envs]))
    assert found[0].observations.dtype == np.uint8
    for one, other in zip(found, episodes(levels), strict=True):
        assert_same(one, other)
    with pytest.raises(UserError, match="raise max_steps"):
        collect_vector(vector, lambda observations: np.zeros(3, int), max_steps=2)


def test_episodes_played_together_are_those_played_alone():
    environments = [CrossingEnv(level) for level in (0, 1, 2)]

    def act(observations):
        return np.array([env.optimal_action() for env in environments if env.distance])

    for one, other in zip(play_episodes(environments, act), episodes((0, 1, 2)), strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("dataset_id", ["toy/walk", "a b-v0", "", "toy/walk-v", "a/walk-v0", "../walk-v0"])
def test_ids_that_minari_chokes_on_are_refused_before_anything_is_written(dataset_id):
    space = CrossingEnv(0)
    to_minari(episodes(), "toy/road-v0", space.observation_space, space.action_space)
    with pytest.raises(UserError, match="with its version"):
        to_minari(episodes(), dataset_id, space.observation_space, space.action_space)
    assert len(from_minari("toy/road-v0")) == 2
