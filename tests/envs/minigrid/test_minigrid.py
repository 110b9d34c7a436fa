import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import pisces.envs  # noqa: F401 (registers the ids)
from pisces.envs.minigrid import (
    FAMILIES,
    TEST_LEVELS,
    TRAINING_LEVELS,
    VALIDATION_LEVELS,
    LevelEnv,
    make_level,
    make_theme,
)
from pisces.envs.minigrid.levels import all_levels
from pisces.errors import UserError


def reference(level):
    """The package's own environment, reset to the level."""
    env = gym.make(level.family.source, disable_env_checker=True).unwrapped
    env.reset(seed=level.seed)
    return env


@pytest.mark.parametrize("family", FAMILIES)
def test_levels_differ_and_splits_are_disjoint(family):
    levels = all_levels(family)
    assert len({level.encoded for level in levels}) == len(levels) == 350
    parts = [set(part) for part in (VALIDATION_LEVELS, TEST_LEVELS, TRAINING_LEVELS)]
    assert set.union(*parts) == set(range(350))
    assert sum(map(len, parts)) == 350


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=8, deadline=None)
@given(number=st.integers(0, 349), seed=st.integers(0, 2**32 - 1))
def test_the_rules_are_those_of_the_package(family, number, seed):
    """Random walks that go forward often see the same views, rewards and ends as the package's environment."""
    env = LevelEnv(family, number, observation="egocentric")
    other = reference(env.level)
    seen, _ = env.reset()
    assert np.array_equal(seen, other.gen_obs()["image"])
    rng = np.random.default_rng(seed)
    weights = np.where(np.array(env.level.family.actions) == 2, 2.0, 1.0)
    for _ in range(40):
        action = int(rng.choice(len(weights), p=weights / weights.sum()))
        seen, reward, terminated, _, info = env.step(action)
        expected, expected_reward, expected_end, _, _ = other.step(env.level.family.actions[action])
        assert np.array_equal(seen, expected["image"])
        assert np.array_equal(env.dynamics.grid(env.state), other.grid.encode())
        assert (env.state[:2], env.state[2]) == (tuple(map(int, other.agent_pos)), other.agent_dir)
        assert terminated == expected_end
        assert (reward > 0) == (expected_reward > 0) == info["solved"]
        if terminated:
            break


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("observation", ["rgb", "egocentric", "state"])
@pytest.mark.filterwarnings("ignore:.*Box.*")
def test_gymnasium_accepts_the_environments(family, observation):
    name = f"pisces/MiniGrid{family.capitalize()}-v0"
    env = gym.make(name, level=3, theme=5, observation=observation, disable_env_checker=True)
    check_env(env.unwrapped, skip_render_check=True)


def test_frames_differ_between_states_and_themes():
    env = LevelEnv("doorkey", 7, theme=4, render_mode="rgb_array")
    mine = env.reset()[0]
    assert mine.dtype == np.uint8
    assert mine.shape == (24, 24, 3)
    assert np.array_equal(mine, env.render())
    turned = env.step(0)[0]
    assert not np.array_equal(mine, turned)
    assert not np.array_equal(mine, LevelEnv("doorkey", 7, theme=5).reset()[0])
    mine[:] = 0
    assert env.reset()[0].any(), "a returned frame belongs to the caller"


def test_objects_stand_out_from_every_floor():
    for number in range(1, 40):
        theme = make_theme(number)
        assert theme.floor.max() <= 150
        assert min(max(color) for color in theme.colors.values()) >= 200


def test_episodes_are_truncated_at_the_limit():
    env = LevelEnv("crossing", 0, max_steps=3)
    env.reset()
    assert [env.step(0)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"family": "crosing"}, "unknown family 'crosing'.*crossing"),
        ({"level": 350}, r"level must be an integer in 0..349, got 350"),
        ({"level": -1}, "got -1"),
        ({"theme": -1}, "theme must be an integer >= 0, got -1"),
        ({"observation": "pixels"}, "unknown observation 'pixels'"),
        ({"render_mode": "human"}, "render_mode must be None or 'rgb_array', got 'human'"),
        ({"max_steps": 0}, "max_steps must be at least 1, got 0"),
    ],
)
def test_bad_arguments_are_explained(arguments, message):
    with pytest.raises(UserError, match=message):
        LevelEnv(**arguments)


@pytest.mark.parametrize("action", [3, -1, 0.5, np.array([0])])
def test_bad_actions_are_explained(action):
    env = LevelEnv("crossing", 0)
    env.reset()
    with pytest.raises(UserError, match=r"action must be an integer in 0..2"):
        env.step(action)


def test_levels_are_those_that_results_were_made_with():
    """A new version of the package must not change numbered levels silently."""
    import hashlib

    digests = {
        name: hashlib.sha256(b"".join(level.encoded for level in all_levels(name))).hexdigest()[:12]
        for name in FAMILIES
    }
    assert digests == DIGESTS
    assert make_level("crossing", 349).seed > 349


DIGESTS = {
    "crossing": "268ce0b2bed9",
    "lava": "089763a1b540",
    "rooms": "a8b071543c5f",
    "doorkey": "ad330cafc65f",
    "multiroom": "1426dc722855",
}


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=4, deadline=None)
@given(number=st.integers(0, 349))
def test_the_expert_takes_a_shortest_way(family, number):
    """Checked against value iteration over the states that a search through the environment finds."""
    env = LevelEnv(family, number)
    env.reset()
    states, outcomes = [env.dynamics.start], {}
    for state in states:
        outcomes[state] = [env.dynamics.step(state, action) for action in range(env.action_space.n)]
        states += [o.state for o in outcomes[state] if not o.terminated and o.state not in {*states}]
    values = dict.fromkeys(states, 0.0)
    for _ in range(len(states)):
        new = {s: max(o.reward if o.terminated else 0.9 * values[o.state] for o in outcomes[s]) for s in states}
        if new == values:
            break
        values = new
    steps, done = 0, False
    while not done:
        _, reward, done, truncated, _ = env.step(env.optimal_action())
        steps += 1
        assert not truncated
    assert reward == 1
    assert 0.9 ** (steps - 1) == pytest.approx(values[env.dynamics.start])
    with pytest.raises(UserError, match="the goal is out of reach"):
        env.optimal_action()
