import itertools
import os
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import pisces.envs  # noqa: F401 (registers the ids)
from pisces.envs.jumping import (
    JumpingEnv,
    JumpingState,
    JumpingTask,
    all_tasks,
    optimal_actions,
    optimal_frames,
    optimal_heights,
    optimal_rewards,
    play,
    render_frames,
    stack_frames,
    transition,
)
from pisces.envs.jumping.dynamics import is_success
from pisces.envs.jumping.tasks import DECISIONS, JUMP, RIGHT
from pisces.errors import MissingExtraError, UserError
from pisces.experiments.jumping.tasks import is_solved

CORNERS = [(14, 0), (20, 10), (33, 17), (47, 40)]


def play_env(env, actions):
    frames, rewards = [env.reset()[0]], []
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        frames.append(observation)
        rewards.append(reward)
        if terminated or truncated:
            break
    return np.stack(frames), rewards, info


@pytest.mark.parametrize("color", ["white", "red", "green"])
@pytest.mark.filterwarnings("ignore:.*render_fps.*")
def test_passes_gymnasiums_check(color, monkeypatch):
    monkeypatch.setitem(os.environ, "SDL_VIDEODRIVER", "dummy")
    env = gym.make("pisces/Jumping-v0", obstacle_position=25, floor_height=10, color=color)
    check_env(env.unwrapped)


@pytest.mark.parametrize(("position", "height"), CORNERS)
@pytest.mark.parametrize("color", ["white", "red", "green"])
def test_optimal_episode_is_the_environments(position, height, color):
    task = JumpingTask(position, height, color)
    env = JumpingEnv(position, height, color)
    frames, rewards, info = play_env(env, optimal_actions(task))
    assert len(rewards) == DECISIONS == 56
    assert info["success"]
    np.testing.assert_array_equal(rewards, optimal_rewards(task))
    np.testing.assert_array_equal(frames[:-1], optimal_frames(task) * np.float32(0.5))


@pytest.mark.parametrize("color", ["white", "red", "green"])
def test_optimal_heights_and_rewards_have_closed_forms(color):
    for position in range(14, 48):
        task = JumpingTask(position, 10, color)
        since_jump = np.maximum(np.arange(DECISIONS) - task.jump_step, 0)
        heights = np.maximum(np.minimum(since_jump, 32 - since_jump), 0)
        rewards = np.ones(DECISIONS)
        rewards[-1] = 101
        if color == "green":
            rewards[position - 5] = 99
        np.testing.assert_array_equal(optimal_heights(task), heights)
        np.testing.assert_array_equal(optimal_rewards(task), rewards)


def test_a_transition_is_a_function_of_its_arguments():
    task, state = JumpingTask(30, 10), JumpingState(16)
    first, again = transition(task, state, JUMP), transition(task, state, JUMP)
    assert first == again == (JumpingState(17, 1, 1), 1.0, False, False)
    assert state == JumpingState(16)
    assert transition(task, JumpingState(25), RIGHT) == (JumpingState(26, 0, 0, "floor"), -1.0, True, True)


def jump_plans(limit):
    """Steps of up to two jumps before `limit`; the second one after landing."""
    yield from ((), *((first,) for first in range(limit)))
    yield from ((first, second) for first in range(limit) for second in range(first + 32, limit))


@pytest.mark.parametrize("color", ["white", "green"])
def test_success_is_an_optimal_return_and_follows_from_solved(color):
    for position in range(14, 48):
        task = JumpingTask(position, 10, color)
        best = optimal_rewards(task).sum()
        unsolved_successes = []
        for jumps in jump_plans(task.steps_to_obstacle):
            actions = np.isin(np.arange(DECISIONS), jumps).astype(np.int64)
            episode = play(task, actions.tolist())
            success = is_success(task, episode.states[-1])
            assert success == (sum(episode.rewards) == best)
            if is_solved(task, actions):
                assert success
            elif success:
                unsolved_successes.append(jumps)
        assert bool(unsolved_successes) == (position >= (36 if color == "green" else 46))


def test_green_obstacle_struck_in_the_air_is_no_success():
    actions = [JUMP if t == 30 - 14 + 2 else RIGHT for t in range(DECISIONS)]
    _, rewards, info = play_env(JumpingEnv(30, 10, "green"), actions)
    assert len(rewards) == DECISIONS
    assert not info["success"]


@pytest.mark.parametrize(("position", "height"), CORNERS)
def test_only_the_optimal_jump_succeeds(position, height):
    env = JumpingEnv(position, height)
    successes = []
    for step in range(DECISIONS):
        _, rewards, info = play_env(env, [JUMP if t == step else RIGHT for t in range(DECISIONS)])
        if info["success"]:
            successes.append(step)
        else:
            assert rewards[-1] == -1
            assert info["collision"]
    assert successes == [position - 14]


def test_actions_in_the_air_are_ignored():
    task = JumpingTask(30, 12)
    actions = optimal_actions(task)
    airborne = optimal_heights(task) > 0
    jumping = np.where(airborne, JUMP, actions)
    frames, rewards, _ = play_env(JumpingEnv(30, 12), actions)
    other_frames, other_rewards, _ = play_env(JumpingEnv(30, 12), jumping)
    np.testing.assert_array_equal(frames, other_frames)
    assert rewards == other_rewards


def test_jump_rises_to_sixteen_and_lands():
    heights = optimal_heights(JumpingTask(20, 10))
    assert heights.max() == 16
    assert heights[6 + 16] == 16
    assert heights[6 + 32] == 0
    np.testing.assert_array_equal(np.abs(np.diff(heights[6 : 6 + 33])), 1)


def test_green_obstacle_pays_once_on_the_floor_and_never_in_the_air():
    _, rewards, info = play_env(JumpingEnv(30, 10, "green"), [RIGHT] * DECISIONS)
    assert sorted(rewards, reverse=True)[:2] == [101, 99]
    assert rewards.index(99) == 30 - 5
    assert info["success"]
    # A jump two steps late strikes the obstacle in the air.
    actions = [JUMP if t == 30 - 14 + 2 else RIGHT for t in range(DECISIONS)]
    _, rewards, _ = play_env(JumpingEnv(30, 10, "green"), actions)
    assert rewards.count(-1) == 1
    assert 99 not in rewards


def test_pixels_of_the_first_frame():
    frame = JumpingEnv(30, 10).reset()[0]
    floor = 59 - 10
    assert frame.shape == (60, 60)
    assert frame.dtype == np.float32
    assert (frame[[0, 59]] == 1).all()
    assert (frame[:, [0, 59]] == 1).all()
    assert (frame[floor] == 1).all()
    assert (frame[floor - 9 : floor, 30:39] == 0.5).all()
    assert (frame[floor - 9 : floor, 0:5] == 1).all()
    assert frame[floor - 10, 1:59].sum() == 0
    assert np.unique(frame).tolist() == [0, 0.5, 1]


def test_colored_frames_put_the_obstacle_in_one_channel():
    for color, channel in (("red", 0), ("green", 1)):
        frame = JumpingEnv(30, 10, color).reset()[0]
        assert frame.shape == (60, 60, 3)
        inside = frame[45, 33]
        assert inside.tolist() == [0.5 * (channel == k) for k in range(3)]
        white = JumpingEnv(30, 10).reset()[0]
        np.testing.assert_array_equal(frame.max(axis=-1), white)


def test_frames_differ_between_all_states_of_all_tasks_that_matter():
    frames = np.concatenate([render_frames(task, np.arange(7), np.zeros(7, int)) for task in all_tasks()])
    assert len(np.unique(frames.reshape(len(frames), -1), axis=0)) == len(frames)


def test_stacked_frames_start_with_zeros():
    frames = optimal_frames(JumpingTask(30, 10))
    stacked = stack_frames(frames)
    assert stacked.shape == (56, 60, 60, 2)
    assert stacked[0, ..., 0].sum() == 0
    np.testing.assert_array_equal(stacked[1:, ..., 0], frames[:-1])
    np.testing.assert_array_equal(stacked[..., 1], frames)
    colored = stack_frames(optimal_frames(JumpingTask(30, 10, "red")))
    assert colored.shape == (56, 60, 60, 6)


def test_reset_options_change_the_task():
    env = JumpingEnv(30, 10)
    observation, _ = env.reset(options={"obstacle_position": 40, "floor_height": 12})
    np.testing.assert_array_equal(observation, JumpingEnv(40, 12).reset()[0])
    with pytest.raises(ValueError, match="did you mean 'floor_height'"):
        env.reset(options={"floor_hight": 12})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"obstacle_position": 13}, "14..47, got 13"),
        ({"obstacle_position": 48}, "14..47, got 48"),
        ({"obstacle_position": 20.5}, "whole number"),
        ({"floor_height": -1}, "0..40, got -1"),
        ({"floor_height": 41}, "0..40, got 41"),
        ({"color": "blue"}, "unknown color 'blue'; choose from: green, red, white"),
        ({"render_mode": "rgb"}, "did you mean 'rgb_array'"),
    ],
)
def test_illegal_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        JumpingEnv(**arguments)


@pytest.mark.parametrize("action", [2, -1, 0.5, None])
def test_illegal_actions_are_named(action):
    env = JumpingEnv()
    env.reset()
    with pytest.raises(ValueError, match="expected action 0"):
        env.step(action)


def test_render_is_rgb():
    for color in ("white", "red"):
        env = JumpingEnv(30, 10, color, render_mode="rgb_array")
        env.reset()
        image = env.render()
        assert image.shape == (60, 60, 3)
        assert image.dtype == np.uint8
        assert image.max() == 255


def test_all_286_tasks_are_distinct():
    assert len(set(all_tasks())) == 286
    assert {(t.obstacle_position, t.floor_height) for t in all_tasks()} == set(
        itertools.product(range(20, 46), range(10, 21))
    )


@pytest.mark.parametrize("action", [np.array([1]), np.array([0, 1]), 2, 0.5])
def test_an_action_is_one_of_two_numbers(action):
    env = JumpingEnv()
    env.reset()
    with pytest.raises(UserError, match=r"0 \(right\) or 1 \(jump\)"):
        env.step(action)


def test_a_window_needs_pygame(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    env = JumpingEnv(render_mode="human")
    env.reset()
    with pytest.raises(MissingExtraError, match=r"pip install 'pisces-rl\[render\]'"):
        env.step(RIGHT)
