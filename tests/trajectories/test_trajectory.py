import copy
import pickle

import gymnasium
import numpy as np
import pytest

from pisces.envs.jumping import JumpingEnv, JumpingTask, optimal_actions, optimal_rewards
from pisces.errors import UserError
from pisces.metrics import FiniteMDP
from pisces.trajectories import Trajectory, collect, collect_each, collect_vector, play_episodes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"observations": [[1], [1, 2]], "actions": [0, 1]}, "observations must be an array"),
        ({"observations": np.zeros((2, 1)), "actions": [[0], [0, 1]]}, "actions must be an array"),
        (
            {"observations": np.zeros((2, 1)), "actions": [0, 1], "terminated": np.array([False, True])},
            "terminated must be one flag",
        ),
    ],
)
def test_lists_that_are_no_arrays_are_explained(arguments, message):
    with pytest.raises(UserError, match=message):
        Trajectory(**arguments)


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


class CountingEnv(gymnasium.Env):
    """Counts its steps; ends after `length` of them, by itself or by a time limit."""

    observation_space, action_space = gymnasium.spaces.Box(0, 9, (1,)), gymnasium.spaces.Discrete(2)

    def __init__(self, length=4, terminates=True):
        self.length, self.terminates = length, terminates

    def reset(self, *, seed=None, options=None):
        self.count = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.count += 1
        ended = self.count == self.length
        return np.full(1, self.count, np.float32), 1.0, ended and self.terminates, ended and not self.terminates, {}


def play_all_ways(make, max_steps, mode=gymnasium.vector.AutoresetMode.NEXT_STEP):
    vector = gymnasium.vector.SyncVectorEnv([make, lambda: CountingEnv(9)], autoreset_mode=mode)
    return [
        collect(make(), lambda observation: 0, max_steps=max_steps),
        collect_each([make()], lambda observation: 0, max_steps=max_steps)[0],
        play_episodes([make(), CountingEnv(9)], lambda seen: np.zeros(len(seen), int), max_steps)[0],
        collect_vector(vector, lambda seen: np.zeros(len(seen), int), max_steps=max_steps)[0],
    ]


@pytest.mark.parametrize("mode", list(gymnasium.vector.AutoresetMode))
@pytest.mark.parametrize(
    ("make", "max_steps", "length", "terminated"),
    [
        (lambda: CountingEnv(4), 20, 4, True),
        (lambda: CountingEnv(4, terminates=False), 20, 4, False),
        (lambda: CountingEnv(4), 3, 3, False),
        (lambda: CountingEnv(4), 4, 4, True),
    ],
)
def test_all_ways_agree_on_how_an_episode_ended(make, max_steps, length, terminated, mode):
    for trajectory in play_all_ways(make, max_steps, mode):
        assert (len(trajectory), trajectory.terminated) == (length, terminated)
        np.testing.assert_array_equal(trajectory.observations[:, 0], np.arange(length))
        np.testing.assert_array_equal(trajectory.final_observation, [length])


def test_at_least_one_step_is_played():
    with pytest.raises(UserError, match="max_steps must be at least 1, got 0"):
        collect(CountingEnv(), lambda observation: 0, max_steps=0)
    with pytest.raises(UserError, match="expected one policy, or one for each of 2, got 1"):
        collect_each([CountingEnv(), CountingEnv()], [lambda observation: 0])


def test_save_and_load_round_trip(tmp_path):
    trajectory = Trajectory(
        np.arange(6, dtype=np.uint8).reshape(3, 2), policies=np.full((3, 2), 0.5), rewards=np.ones(3)
    )
    trajectory.save(tmp_path / "x.npz")
    loaded = Trajectory.load(tmp_path / "x.npz")
    assert loaded.actions is None
    assert loaded.final_observation is None
    assert loaded.terminated
    assert loaded.observations.dtype == np.uint8
    for name in ("observations", "policies", "rewards"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(trajectory, name))


def test_how_an_episode_ended_is_saved(tmp_path):
    Trajectory(np.zeros((3, 2)), actions=[0, 1, 0], terminated=False, final_observation=np.ones(2)).save(
        tmp_path / "x.npz"
    )
    loaded = Trajectory.load(tmp_path / "x.npz")
    assert loaded.terminated is False
    np.testing.assert_array_equal(loaded.final_observation, [1, 1])
    with pytest.raises(ValueError, match="read-only"):
        loaded.final_observation[0] = 2


def test_files_without_an_end_are_of_terminated_episodes(tmp_path):
    np.savez(tmp_path / "old.npz", observations=np.zeros((2, 1)), actions=np.zeros(2, int))
    assert Trajectory.load(tmp_path / "old.npz").terminated is True
    np.savez(tmp_path / "x.npz", observations=np.zeros((2, 1)), actions=np.zeros(2, int), terminated=np.zeros(2))
    with pytest.raises(UserError, match="a single value named 'terminated'"):
        Trajectory.load(tmp_path / "x.npz")


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
        ({"observations": np.zeros((2, 3)), "actions": np.array([[0.0], [np.inf]])}, "actions must be finite"),
        (
            {"observations": np.zeros((2, 3)), "actions": np.array(["0", "1"])},
            "expected actions as an array of numbers",
        ),
        (
            {"observations": np.zeros((2, 3)), "actions": np.zeros((2, 1), complex)},
            "expected actions as an array of numbers",
        ),
        ({"observations": np.zeros((2, 3)), "policies": np.full((2, 3), 1 / 3, np.float16)}, "sum to 1"),
        (
            {"observations": np.zeros((2, 3)), "actions": np.zeros(2, int), "final_observation": np.zeros(2)},
            r"final_observation must be numbers of shape \(3,\)",
        ),
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


class SeededEnv(CountingEnv):
    """Shows the seed of its reset."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.array([-1 if seed is None else seed]), {}


@pytest.mark.parametrize(("seed", "expected"), [(4, [4, 5, 6]), ([7, 7, 2], [7, 7, 2]), (None, [-1, -1, -1])])
def test_each_environment_has_its_own_reset_seed(seed, expected):
    environments = [SeededEnv() for _ in range(3)]
    for episodes in (
        collect_each(environments, lambda observation: 0, seed, max_steps=2),
        play_episodes(environments, lambda seen: np.zeros(len(seen), int), 2, seed),
    ):
        assert [int(episode.observations[0, 0]) for episode in episodes] == expected


def test_a_wrong_number_of_reset_seeds_is_refused():
    with pytest.raises(UserError, match="one for each of 1 environments, got 2"):
        collect_each([SeededEnv()], lambda observation: 0, [1, 2])
