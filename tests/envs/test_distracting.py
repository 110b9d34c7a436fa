import itertools
import os

import gymnasium as gym
import numpy as np
import pytest

import pisces.envs  # noqa: F401 (registers the ids)
from pisces.envs.distracting import gl
from pisces.envs.distracting.distractions import Background, CameraWalk
from pisces.envs.distracting.env import DistractingEnv
from pisces.envs.distracting.tasks import PAPER_TASKS, TASKS, environment_id
from pisces.errors import missing_text

pytest.importorskip("dm_control", reason=missing_text("dm_control", "control"))

SMALL = {"frame_size": 24, "action_repeat": 2}


def play(env, actions, **reset):
    observation, _ = env.reset(**reset)
    frames, states, rewards = [observation], [env.unwrapped.state()], []
    for action in actions:
        observation, reward, *_ = env.step(action)
        frames.append(observation)
        states.append(env.unwrapped.state())
        rewards.append(reward)
    return np.stack(frames), np.stack(states), np.array(rewards)


@pytest.fixture(scope="module")
def actions():
    return np.random.default_rng(0).uniform(-1, 1, (6, 1)).astype(np.float32)


@pytest.fixture(scope="module")
def cartpole():
    env = DistractingEnv("cartpole-swingup", **SMALL)
    yield env
    env.close()


def test_the_backend_is_passed_on_as_mujoco_spells_it(monkeypatch):
    backend = gl.choose_backend()
    monkeypatch.setenv(gl.VARIABLE, f" {backend.upper()}")
    monkeypatch.setenv(gl.SOFTWARE_THREADS, "0")
    assert gl.prepare() == backend
    assert os.environ[gl.VARIABLE] == backend


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_paper_tasks_build_and_step(task):
    env = gym.make(environment_id(task), frame_size=24)
    observation, info = env.reset(seed=0)
    assert observation.shape == (24, 24, 9)
    assert observation.dtype == np.uint8
    assert info["video"] in (0, 1)
    env.action_space.seed(0)
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
    assert env.observation_space.contains(observation)
    assert (terminated, truncated, info["steps"]) == (False, False, PAPER_TASKS[task])
    assert 0 <= reward <= PAPER_TASKS[task]
    env.close()


def test_supersampled_frames_are_averages_of_larger_ones():
    frames = {}
    for size, factor in ((48, 1), (24, 2), (24, 1)):
        env = DistractingEnv("cartpole-swingup", "plain", frame_size=size, supersampling=factor)
        env.reset(seed=0)
        frames[size, factor] = env.render().astype(int)
        env.close()
    means = frames[48, 1].reshape(24, 2, 24, 2, 3).mean(axis=(1, 3))
    assert np.abs(frames[24, 2] - means).max() <= 0.5
    assert not np.array_equal(frames[24, 1], frames[24, 2])


def test_a_string_with_fewer_slices_looks_the_same(monkeypatch):
    from pisces.envs.distracting import render

    frames = {}
    for slices, stacks in ((render.TENDON_SLICES, render.TENDON_STACKS), (28, 16)):
        monkeypatch.setattr(render, "TENDON_SLICES", slices)
        monkeypatch.setattr(render, "TENDON_STACKS", stacks)
        for shown in (True, False):
            env = DistractingEnv("ball_in_cup-catch", "plain", frame_size=48)
            env.physics.model.tendon_rgba[:, 3] = float(shown)
            frames[slices, shown] = env.reset(seed=0)[0][..., -3:].astype(int)
            env.close()
    coarse, without = (frames[min(slices for slices, _ in frames), shown] for shown in (True, False))
    assert np.abs(coarse - without).max() > 50
    assert (np.abs(coarse - frames[28, True]) > 8).any(axis=-1).mean() < 0.005


def test_ids_cover_the_suite():
    from dm_control import suite

    # lqr has actions without bounds and episodes without end.
    expected = {(domain, task) for domain, task in suite.ALL_TASKS if domain != "lqr"}
    assert {tuple(task.split("-", 1)) for task in TASKS} == expected
    assert environment_id("ball_in_cup-catch") == "pisces/DistractingBallInCupCatch-v0"
    assert all(environment_id(task) in gym.registry for task in TASKS)


def test_background_changes_the_frames_and_nothing_else(cartpole, actions):
    frames, states, rewards = play(cartpole, actions, seed=5, options={"background_seed": 3})
    others, other_states, other_rewards = play(cartpole, actions, seed=5, options={"background_seed": 4})
    assert np.array_equal(states, other_states)
    assert np.array_equal(rewards, other_rewards)
    assert all(not np.array_equal(one, other) for one, other in zip(frames, others, strict=True))
    # The next episode does not know which background this one had.
    following = play(cartpole, actions)
    play(cartpole, actions, seed=5)
    for one, other in zip(following, play(cartpole, actions), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("variant", ["plain", "paper", "dcs-hard"])
def test_same_seed_same_frames(variant, actions):
    outcomes = []
    for _ in range(2):
        env = DistractingEnv("cartpole-swingup", variant, **SMALL)
        play(env, actions[:1])
        outcomes.append(play(env, actions, seed=7))
        env.close()
    for one, other in zip(*outcomes, strict=True):
        assert np.array_equal(one, other)


def test_stack_holds_the_last_frames(cartpole, actions):
    frames, _, _ = play(cartpole, actions, seed=1)
    assert np.array_equal(frames[0][..., :3], frames[0][..., 6:])
    for before, after in itertools.pairwise(frames):
        assert np.array_equal(before[..., 3:], after[..., :6])


def test_video_fills_the_sky_with_its_own_pixels(tmp_path):
    from PIL import Image

    for name, color in (("a", (250, 0, 0)), ("b", (0, 0, 250))):
        (tmp_path / name).mkdir()
        Image.new("RGB", (8, 8), color).save(tmp_path / name / "0.png")
    env = DistractingEnv("cartpole-swingup", videos=tmp_path, **SMALL)
    for video, color in enumerate(([250, 0, 0], [0, 0, 250])):
        observation, _ = env.reset(seed=0, options={"video": video})
        assert observation[0, 0, -3:].tolist() == color
    env.close()


def test_static_backgrounds_stand_still(actions):
    env = DistractingEnv("cartpole-swingup", dynamic=False, **SMALL)
    frames, _, _ = play(env, actions, seed=0)
    assert np.array_equal(frames[0][:4, :4], frames[-1][:4, :4])
    env.close()


def test_videos_play_back_and_forth():
    clip = np.arange(4, dtype=np.uint8)[:, None, None, None]
    background = Background(clip, np.random.default_rng(0))
    seen = []
    for _ in range(12):
        seen.append(int(background.frame[0, 0, 0]))
        background.advance()
    assert set(np.abs(np.diff(seen))) == {1}
    assert seen[:6] == seen[6:]
    assert {0, 3} <= set(seen)


def test_the_camera_walks_within_its_ranges_and_speeds():
    strength, places, changes = 0.3, [], []
    # The suite's speeds: standard deviation 0.1 and limit 0.4 per step, for a camera at a distance of 4.
    std, limit = 0.1 * strength / 4, 0.4 * strength / 4
    for seed in range(60):
        walk = CameraWalk(strength, np.random.default_rng(seed))
        views = [walk.view]
        for _ in range(300):
            walk.advance()
            views.append(walk.view)
        place = np.array([(view.distance, view.horizontal, view.vertical, view.roll) for view in views])
        distance, horizontal, vertical, roll = place.T
        across = np.cos(vertical)
        directions = [across * np.cos(horizontal), across * np.sin(horizontal), np.sin(vertical)]
        speeds = np.diff(distance[:, None] * np.stack(directions, axis=1), axis=0)
        lengths = np.linalg.norm(speeds, axis=1)
        assert lengths.max() < 1.01 * limit  # sliding along a range may add a little
        assert np.abs(np.diff(roll)).max() < np.pi * strength / 50 + 1e-9
        # Far from the limit and from the ends of the ranges, nothing is cut off.
        inside = (np.abs(place[1:-1, 1:3]) < 0.4).all(axis=1) & (np.abs(place[1:-1, 0] - 1.15) < 0.2)
        changes.append(np.diff(speeds, axis=0)[inside & (lengths[:-1] < 0.5 * limit)])
        places.append(place)
    angle, every = np.pi * strength / 2, np.concatenate(places)
    assert every.min(axis=0) == pytest.approx([1 - 0.5 * strength, -angle, -angle, -angle], rel=1e-2)
    assert every.max(axis=0) == pytest.approx([1 + 1.5 * strength, angle, angle, angle], rel=1e-2)
    free = np.concatenate(changes)
    assert len(free) > 50
    assert np.sqrt((free**2).mean()) == pytest.approx(std, rel=0.2)


def test_a_camera_that_is_not_dynamic_stands_still():
    walk = CameraWalk(0.3, np.random.default_rng(0), dynamic=False)
    before = walk.view
    walk.advance()
    assert walk.view == before
    assert walk.view != CameraWalk(0.3, np.random.default_rng(1)).view


def test_episode_ends_after_a_thousand_steps():
    env = DistractingEnv("cartpole-swingup", frame_size=16, action_repeat=300)
    env.reset(seed=0)
    outcomes = [env.step(np.zeros(1, np.float32)) for _ in range(4)]
    assert [outcome[3] for outcome in outcomes] == [False, False, False, True]
    assert outcomes[-1][4]["steps"] == 100
    env.close()


def test_bad_arguments_are_explained(cartpole, tmp_path):
    for arguments, message in (
        ({"task": "cartpole-swngup"}, "did you mean 'cartpole-swingup'"),
        ({"variant": "papr"}, "did you mean 'paper'"),
        ({"frame_size": 4}, "frame size in 16..480"),
        ({"videos": tmp_path / "none"}, "train, test, validation or a folder"),
        ({"camera": 99}, "camera in 0.."),
    ):
        with pytest.raises(ValueError, match=message):
            DistractingEnv(**{**SMALL, **arguments})
    with pytest.raises(ValueError, match="did you mean 'background_seed'"):
        cartpole.reset(options={"background_sed": 1})
    with pytest.raises(ValueError, match=r"video in 0\.\.1"):
        cartpole.reset(options={"video": 2})
    cartpole.reset(seed=0)
    with pytest.raises(ValueError, match="finite action of shape"):
        cartpole.step(np.array([np.nan], np.float32))


def test_without_gl_one_line_says_what_to_install(monkeypatch):
    monkeypatch.delenv(gl.VARIABLE, raising=False)
    monkeypatch.setattr(gl, "EGL_LIBRARIES", ("libNone.so",))
    monkeypatch.setattr(gl, "OSMESA_LIBRARIES", ("libNone.so",))
    with pytest.raises(ValueError, match="apt-get install -y libegl1") as error:
        gl.choose_backend()
    assert "\n" not in str(error.value)
    monkeypatch.setenv(gl.VARIABLE, "egll")
    with pytest.raises(ValueError, match="did you mean 'egl'"):
        gl.choose_backend()


@pytest.mark.parametrize("task", ["fish-swim", "quadruped-escape"])
def test_skies_and_terrains_of_their_own_are_drawn_alike_in_every_environment(task):
    frames = []
    for _ in range(2):
        env = DistractingEnv(task, frame_size=24)
        frames += [env.reset(seed=0)[0], env.reset(seed=0)[0]]
        env.close()
    for frame in frames[1:]:
        np.testing.assert_array_equal(frame, frames[0])


def test_rendered_frames_are_copies():
    env = DistractingEnv("cartpole-swingup", frame_size=24)
    env.reset(seed=0)
    env.render()[:] = 0
    assert env.step(env.action_space.sample())[0][..., :6].max() > 0
    env.close()


@pytest.mark.parametrize(
    "options", [{"video": 99}, {"video": "a"}, {"background_seed": None}, {"background_seed": -3}, {"video": 0.5}]
)
def test_a_refused_reset_changes_nothing(cartpole, actions, options):
    expected = play(cartpole, actions, seed=3)
    after = cartpole.reset()[0]
    cartpole.reset(seed=3)
    with pytest.raises(ValueError, match="expected a "):
        cartpole.reset(options=options)
    frames = [cartpole.step(action)[0] for action in actions]
    np.testing.assert_array_equal(frames, expected[0][1:])
    np.testing.assert_array_equal(cartpole.reset()[0], after)


@pytest.mark.parametrize(
    "arguments",
    [{"render_mode": "foo"}, {"dynamic": "no"}, {"camera": 1.5}, {"action_repeat": 1.5}, {"frame_size": 24.5}],
)
def test_arguments_of_another_kind_are_explained(arguments):
    with pytest.raises(ValueError, match="expected "):
        DistractingEnv("cartpole-swingup", **{**SMALL, **arguments})


def test_a_step_needs_a_reset(actions):
    env = DistractingEnv("cartpole-swingup", **SMALL)
    with pytest.raises(ValueError, match="reset before step"):
        env.step(actions[0])
    env.close()
