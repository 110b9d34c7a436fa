import gymnasium as gym
import numpy as np
import pytest

import pisces.envs  # noqa: F401 (registers the ids)
from pisces.envs.crossing import COLUMNS, DOWN, RIGHT, ROWS, STEPS, UP, WALL, CrossingEnv
from pisces.errors import UserError


@pytest.mark.parametrize("level", range(12))
def test_the_optimal_way_is_as_long_as_the_distance_says(level):
    env = CrossingEnv(level)
    observation, _ = env.reset(seed=0)
    length, solved, total = env.distance, False, 0.0
    for _ in range(length):
        assert not solved
        observation, reward, solved, truncated, _ = env.step(env.optimal_action())
        total += reward
        assert env.observation_space.contains(observation)
        assert not truncated
    assert solved
    assert total == pytest.approx(1 + length * (0.1 - 0.02))


def test_walls_and_borders_stop_the_walker():
    env = CrossingEnv(1)
    env.reset()
    for _ in range(STEPS):
        _, _, solved, truncated, _ = env.step(RIGHT)
    assert (env.row, env.column, solved, truncated) == (env.start, WALL - 1, False, True)
    for action, end in ((UP, 0), (DOWN, ROWS - 1)):
        env.reset()
        for _ in range(ROWS):
            env.step(action)
        assert (env.row, env.column) == (end, 0)


@pytest.mark.parametrize("level", range(8))
def test_only_the_best_action_earns_something(level):
    env = CrossingEnv(level)
    solved = False
    while not solved:
        row, column = env.row, env.column
        for action in {RIGHT, UP, DOWN} - {env.optimal_action()}:
            assert env.step(action)[1] < 0
            env.row, env.column = row, column
        _, reward, solved, _, _ = env.step(env.optimal_action())
        assert reward > 0


def test_images_show_what_matters_and_a_background_of_the_level():
    env = CrossingEnv(3)
    image, _ = env.reset()
    assert tuple(image[:, env.start, 0]) == (255, 0, 0)
    assert (image[:, :, WALL] == 255).sum() == 3 * (ROWS - 1)
    assert tuple(image[:, env.gate, WALL]) == (0, 0, 0)
    same, other = CrossingEnv(3).reset()[0], CrossingEnv(4).reset()[0]
    np.testing.assert_array_equal(image, same)
    assert (image != other).mean() > 0.5
    plain = CrossingEnv(3, contrast=0).reset()[0]
    assert plain.sum() == 255 * (3 * (ROWS - 1) + 1)


def test_is_a_gymnasium_environment():
    from gymnasium.utils.env_checker import check_env

    check_env(gym.make("pisces/Crossing-v0", level=2).unwrapped, skip_render_check=True)
    assert gym.make("pisces/Crossing-v0").observation_space.shape == (3, ROWS, COLUMNS)


def test_bad_levels_are_explained():
    for arguments in ({"level": -1}, {"contrast": 256}):
        with pytest.raises(UserError, match="expected level >= 0 and contrast"):
            CrossingEnv(**arguments)


def test_what_the_grid_does_not_know_is_refused():
    env = CrossingEnv()
    for call in (
        lambda: env.step(5),
        lambda: env.step(-1),
        lambda: env.step(np.array([0])),
        lambda: env.reset(options={"a": 1}),
    ):
        with pytest.raises(UserError):
            call()
    with pytest.raises(UserError, match="render_mode None"):
        CrossingEnv(render_mode="rgb_array")
