import copy
import pickle

import gymnasium
import numpy as np
import pytest

from pisces.envs.jumping import JumpingEnv, JumpingTask, optimal_actions, optimal_rewards
from pisces.errors import UserError
from pisces.metrics import FiniteMDP
from pisces.trajectories import Trajectory, collect, collect_vector, play_episodes


def test_collect_plays_the_episode():
    task = JumpingTask(30, 10)
    actions = iter(optimal_actions(task))
    trajectory = collect(JumpingEnv(30, 10), lambda observation: next(actions), seed=0)
    assert len(trajectory) == 56
    np.testing.assert_array_equal(trajectory.actions, optimal_actions(task))
    np.testing.assert_array_equal(trajectory.rewards, optimal_rewards(task))
    assert trajectory.observations.shape == (56, 60, 60)


class OneBufferEnv(gymnasium.Env):
    """Changes the array that it returned last, as environments may."""

    observation_space, action_space = gymnasium.spaces.Box(0, 9, (2,)), gymnasium.spaces.Discrete(9)

    def reset(self, *, seed=None, options=None):
        self.seen = np.zeros(2)
        return self.seen, {}

    def step(self, action):
        self.seen += 1
        return self.seen, 0.0, bool(self.seen[0] == 4), False, {}


def test_recorded_states_are_copies():
    chosen = np.zeros(1, dtype=np.int64)

    def policy(observation):
        chosen[0] = observation.ravel()[0]
        return chosen

    one = collect(OneBufferEnv(), lambda observation: policy(observation)[0])
    many = play_episodes([OneBufferEnv()], policy)[0]
    kept = collect(OneBufferEnv(), policy)
    for trajectory in (one, many, kept):
        np.testing.assert_array_equal(trajectory.observations[:, 0], np.arange(4))
        np.testing.assert_array_equal(trajectory.actions.ravel(), np.arange(4))


class ClippingEnv(gymnasium.Env):
    """Clips the action that it is given, in place."""

    observation_space, action_space = gymnasium.spaces.Box(0, 9, (1,)), gymnasium.spaces.Box(-9, 9, (1,))

    def reset(self, *, seed=None, options=None):
        return np.array([4.0], np.float32), {}

    def step(self, action):
        np.clip(action, -1, 1, out=action)
        return np.array([4.0], np.float32), 0.0, True, False, {}


def test_recorded_is_what_was_seen_and_chosen():
    def policy(observation):
        observation /= 4
        return np.full(observation.shape, 5.0, np.float32)

    vector = gymnasium.vector.SyncVectorEnv([ClippingEnv, ClippingEnv])
    played = [
        collect(ClippingEnv(), policy),
        *play_episodes([ClippingEnv(), ClippingEnv()], policy),
        *collect_vector(vector, policy),
    ]
    for trajectory in played:
        np.testing.assert_array_equal(trajectory.observations, [[4.0]])
        np.testing.assert_array_equal(trajectory.actions, [[5.0]])


def test_collect_refuses_endless_episodes():
    with pytest.raises(ValueError, match="raise max_steps"):
        collect(JumpingEnv(), lambda observation: 0, max_steps=5)


def test_save_and_load_round_trip(tmp_path):
    trajectory = Trajectory(
        np.arange(6, dtype=np.uint8).reshape(3, 2), policies=np.full((3, 2), 0.5), rewards=np.ones(3)
    )
    trajectory.save(tmp_path / "x.npz")
    loaded = Trajectory.load(tmp_path / "x.npz")
    assert loaded.actions is None
    assert loaded.observations.dtype == np.uint8
    for name in ("observations", "policies", "rewards"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(trajectory, name))


def test_is_frozen_and_keeps_its_own_copy():
    observations = np.zeros((2, 3))
    trajectory = Trajectory(observations, actions=np.array([0, 1]))
    observations[:] = 7
    assert trajectory.observations.sum() == 0
    with pytest.raises(ValueError, match="read-only"):
        trajectory.observations[0] = 1
    with pytest.raises(AttributeError):
        trajectory.actions = None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"observations": np.zeros((2, 3))}, "expected actions or policies"),
        ({"observations": np.zeros((0, 3)), "actions": np.zeros(0, int)}, "at least one state"),
        ({"observations": np.zeros((2, 3)), "actions": np.zeros(3, int)}, "expected actions for 2 observations, got 3"),
        ({"observations": np.zeros((2, 3)), "policies": np.full((2, 2), 0.4)}, "sum to 1"),
        ({"observations": np.zeros((2, 3)), "policies": np.array([[2.0, -1.0]] * 2)}, "sum to 1"),
        ({"observations": np.zeros((2, 3)), "actions": np.zeros(2, int), "rewards": np.array([0, np.nan])}, "finite"),
        ({"observations": np.zeros((2, 3)), "actions": np.zeros(2, int), "rewards": np.zeros((2, 1))}, "shape"),
        ({"observations": np.zeros((2, 3)), "actions": np.array([[0.0], [np.inf]])}, "finite actions"),
        (
            {"observations": np.zeros((2, 3)), "actions": np.array(["0", "1"])},
            "expected actions as an array of numbers",
        ),
        (
            {"observations": np.zeros((2, 3)), "actions": np.zeros((2, 1), complex)},
            "expected actions as an array of numbers",
        ),
        ({"observations": np.zeros((2, 3)), "policies": np.full((2, 3), 1 / 3, np.float16)}, "sum to 1"),
    ],
)
def test_bad_trajectories_are_explained(arguments, message):
    with pytest.raises(ValueError, match=message):
        Trajectory(**arguments)


def test_bad_files_are_explained(tmp_path):
    with pytest.raises(ValueError, match="not a file"):
        Trajectory.load(tmp_path / "missing.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(ValueError, match="without pickled objects"):
        Trajectory.load(tmp_path / "text.npz")
    np.savez(tmp_path / "pickled.npz", observations=np.array([{}], dtype=object), actions=np.zeros(1))
    with pytest.raises(ValueError, match="without pickled objects"):
        Trajectory.load(tmp_path / "pickled.npz")
    np.savez(tmp_path / "other.npz", actions=np.zeros(1))
    with pytest.raises(ValueError, match="'observations'"):
        Trajectory.load(tmp_path / "other.npz")


@pytest.mark.parametrize("kind", ["array", "empty", "cut", "damaged"])
def test_other_and_damaged_files_are_explained(tmp_path, kind):
    good, path = tmp_path / "good.npz", tmp_path / "x.npz"
    Trajectory(np.random.default_rng(0).normal(size=(500, 4)), actions=np.zeros(500, int)).save(good)
    content = bytearray(good.read_bytes())
    if kind == "damaged":
        content[200:400] = bytes(200)
    if kind == "array":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    else:
        path.write_bytes({"empty": b"", "cut": content[:300], "damaged": content}[kind])
    for load in (Trajectory.load, FiniteMDP.load):
        with pytest.raises(UserError, match="npz without pickled objects"):
            load(path)


def test_other_arrays_in_a_file_are_not_read(tmp_path):
    np.savez(tmp_path / "x.npz", observations=np.zeros((2, 1)), actions=np.zeros(2, int), infos=np.array([{}, {}]))
    assert len(Trajectory.load(tmp_path / "x.npz")) == 2


def test_any_damage_is_explained(tmp_path):
    path = tmp_path / "x.npz"
    Trajectory(np.zeros((9, 4)), actions=np.zeros(9, int)).save(path)
    content, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(content)
        for place in rng.integers(len(content), size=3):
            damaged[place] = rng.integers(256)
        path.write_bytes(damaged)
        try:
            Trajectory.load(path)
        except UserError:
            continue


@pytest.mark.parametrize(
    ("observations", "actions"),
    [(None, [0]), (5, [0]), ([{"a": 1}], [0]), ([[1.0]], 0), (np.array(["x"]), [0])],
)
def test_what_is_no_array_of_numbers_is_refused(observations, actions):
    with pytest.raises(UserError, match="as an array of numbers"):
        Trajectory(observations, actions=actions)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_are_read_only_too(duplicate):
    one = duplicate(Trajectory(np.zeros((2, 1)), actions=[0, 1], rewards=[0.0, 1.0]))
    for values in (one.observations, one.actions, one.rewards):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1
