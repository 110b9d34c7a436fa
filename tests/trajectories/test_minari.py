import sys

import gymnasium as gym
import numpy as np
import pytest

from pisces.envs.minigrid import LevelEnv
from pisces.envs.minigrid.dynamics import GOAL
from pisces.errors import UserError
from pisces.trajectories import Trajectory, collect, collect_vector, play_episodes
from pisces.trajectories.minari import from_minari, to_minari


@pytest.fixture(autouse=True)
def local_datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))


def episodes(levels=(0, 1)):
    environments = [LevelEnv(level=level) for level in levels]
    return [collect(env, lambda observation, env=env: env.optimal_action()) for env in environments]


def solved(env):
    return env.dynamics.objects[env.state[0]][env.state[1]] == GOAL


def expert(env):
    """The optimal action; any after the end, when a vector environment waits for the others."""
    return 0 if solved(env) else env.optimal_action()


def assert_same(one, other):
    assert one.observations.dtype == other.observations.dtype
    assert one.terminated == other.terminated
    for name in ("observations", "actions", "rewards", "final_observation"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_images_survive_the_way_through_minari_bit_by_bit():
    written, env = episodes(), LevelEnv()
    dataset = to_minari(written, "toy/crossing-v0", env.observation_space, env.action_space, algorithm_name="optimal")
    for read in (from_minari("toy/crossing-v0"), from_minari(dataset)):
        assert len(read) == 2
        assert read[0].observations.dtype == np.uint8
        for one, other in zip(written, read, strict=True):
            assert_same(one, other)


def test_continuous_actions_and_no_rewards():
    trajectory = Trajectory(
        np.ones((3, 2), np.float32), np.full((3, 1), 0.5, np.float32), final_observation=np.ones(2, np.float32)
    )
    box = gym.spaces.Box(-1, 1, (2,), np.float32), gym.spaces.Box(-1, 1, (1,), np.float32)
    to_minari([trajectory], "toy/line-v0", *box)
    (read,) = from_minari("toy/line-v0")
    np.testing.assert_array_equal(read.actions, trajectory.actions)
    np.testing.assert_array_equal(read.rewards, np.zeros(3))


def test_misuse_is_explained():
    env = LevelEnv()
    spaces = env.observation_space, env.action_space
    with pytest.raises(UserError, match="unknown Minari dataset 'toy/none-v0'; local datasets: none"):
        from_minari("toy/none-v0")
    with pytest.raises(UserError, match="at least one trajectory"):
        to_minari([], "toy/crossing-v0", *spaces)
    with pytest.raises(UserError, match="observations must be in Box"):
        to_minari([Trajectory(np.zeros((1, 2)), actions=np.zeros(1, int))], "toy/crossing-v0", *spaces)
    with pytest.raises(UserError, match="actions must be in Discrete"):
        to_minari([Trajectory(episodes()[0].observations[:1], actions=np.array([9]))], "toy/crossing-v0", *spaces)
    with pytest.raises(UserError, match="Minari stores the observation after the last decision"):
        to_minari([Trajectory(episodes()[0].observations, episodes()[0].actions)], "toy/crossing-v0", *spaces)
    policies = Trajectory(episodes()[0].observations[:1], policies=np.array([[1.0, 0.0, 0.0]]))
    with pytest.raises(UserError, match="a trajectory has only policies"):
        to_minari([policies], "toy/crossing-v0", *spaces)
    flat = np.zeros((2, 1), np.float32)
    gaussian = Trajectory(flat, actions=flat, action_stds=flat + 1, final_observation=flat[0])
    box = gym.spaces.Box(-1, 1, (1,))
    with pytest.raises(UserError, match="cannot store action_stds"):
        to_minari([gaussian], "toy/line-v0", box, box)
    to_minari(episodes(), "toy/crossing-v0", *spaces)
    with pytest.raises(UserError, match="already exists"):
        to_minari(episodes(), "toy/crossing-v0", *spaces)


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(ImportError, match=r"minari is not installed; run: pip install 'pisces-rl\[minari\]'"):
        from_minari("toy/walk-v0")


@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
def test_vector_environments_give_the_episodes_of_their_parts(mode):
    levels = (0, 1, 2)
    autoreset = gym.vector.AutoresetMode[mode]
    vector = gym.vector.SyncVectorEnv(
        [lambda level=level: LevelEnv(level=level) for level in levels], autoreset_mode=autoreset
    )
    found = collect_vector(vector, lambda observations: np.array([expert(env) for env in vector.envs]))
    assert found[0].observations.dtype == np.uint8
    for one, other in zip(found, episodes(levels), strict=True):
        assert_same(one, other)
    short = collect_vector(vector, lambda observations: np.zeros(3, int), max_steps=2)
    assert [(len(one), one.terminated) for one in short] == [(2, False)] * 3


def test_episodes_played_together_are_those_played_alone():
    environments = [LevelEnv(level=level) for level in (0, 1, 2)]

    def act(observations):
        return np.array([env.optimal_action() for env in environments if not solved(env)])

    for one, other in zip(play_episodes(environments, act), episodes((0, 1, 2)), strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("dataset_id", ["toy/walk", "a b-v0", "", "toy/walk-v", "a/walk-v0", "../walk-v0"])
def test_ids_that_minari_chokes_on_are_refused_before_anything_is_written(dataset_id):
    space = LevelEnv()
    to_minari(episodes(), "toy/road-v0", space.observation_space, space.action_space)
    with pytest.raises(UserError, match="with its version"):
        to_minari(episodes(), dataset_id, space.observation_space, space.action_space)
    assert len(from_minari("toy/road-v0")) == 2


BOX, THREE = gym.spaces.Box(-1, 1, (2,), np.float32), gym.spaces.Discrete(3)


def short(actions=(0, 1, 2), value=0.5, **fields):
    final = np.full(2, value, np.float32)
    return Trajectory(np.full((3, 2), value, np.float32), np.asarray(actions), final_observation=final, **fields)


@pytest.mark.parametrize("terminated", [True, False])
def test_the_end_of_an_episode_survives(terminated):
    written = short(rewards=np.ones(3), terminated=terminated)
    to_minari([written], "toy/walk-v0", BOX, THREE)
    assert_same(from_minari("toy/walk-v0")[0], written)


@pytest.mark.parametrize(
    "metadata", [{"env": "NoSuchEnv-v0"}, {"algorithm_name": object()}, {"data_format": "no such format"}]
)
def test_a_data_set_that_could_not_be_written_leaves_nothing_behind(metadata):
    with pytest.raises(UserError, match="Minari cannot write the dataset"):
        to_minari([short()], "toy/walk-v0", BOX, THREE, **metadata)
    to_minari([short()], "toy/walk-v0", BOX, THREE)
    assert_same(from_minari("toy/walk-v0")[0], short(rewards=np.zeros(3)))


@pytest.mark.parametrize(
    ("trajectory", "message"),
    [
        (short((0, 1, 7)), "actions must be in .*, but step 2 is not"),
        (short((0.0, 1.5, 2.0)), "actions must be in .*step 0"),
        (short([[0], [1], [2]]), "actions must be in .*step 0"),
        (
            Trajectory(np.array([[0, 0], [5, 0]], np.float32), [0, 1], final_observation=np.zeros(2, np.float32)),
            "observations must be in .*step 1",
        ),
        (Trajectory(np.zeros((2, 2), np.float32), [0, 1], final_observation=np.full(2, 5, np.float32)), "step 2"),
    ],
)
def test_every_step_must_lie_in_the_spaces(trajectory, message):
    with pytest.raises(UserError, match=message):
        to_minari([trajectory], "toy/walk-v0", BOX, THREE)


def test_spaces_of_several_arrays_are_refused():
    with pytest.raises(UserError, match="must be single arrays, got a space"):
        to_minari([short()], "toy/walk-v0", gym.spaces.Dict({"a": BOX}), THREE)


def test_an_environment_given_twice_is_refused():
    env = LevelEnv()
    with pytest.raises(UserError, match="the same one twice"):
        play_episodes([env, env], lambda observations: np.zeros(len(observations), int))
    for environments, steps in (([], 5), ([env], 0)):
        with pytest.raises(UserError, match="at least"):
            play_episodes(environments, lambda observations: np.zeros(len(observations), int), steps)


@pytest.mark.parametrize("mode", list(gym.vector.AutoresetMode))
def test_parts_of_a_vector_environment_may_end_at_different_times(mode):
    levels = (0, 1, 2, 3)
    vector = gym.vector.SyncVectorEnv(
        [lambda level=level: LevelEnv(level=level) for level in levels], autoreset_mode=mode
    )
    played = collect_vector(vector, lambda observations: np.array([expert(env) for env in vector.envs]))
    alone = episodes(levels)
    assert len({len(one) for one in alone}) > 1
    for one, other in zip(played, alone, strict=True):
        assert_same(one, other)
