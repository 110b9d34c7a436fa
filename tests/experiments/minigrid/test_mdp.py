import gymnasium as gym
import numpy as np
import pytest

from pisces.envs.minigrid import FAMILIES, TRAINING_LEVELS
from pisces.envs.minigrid.levels import all_levels
from pisces.experiments.minigrid.mdp import solve_level
from pisces.metrics import policy_similarity_metric


def distances_to_goal(level):
    """Steps to the goal by breadth-first search backward from it; an oracle without values."""
    following, rewards = level.next_states, level.mdp.rewards
    steps = np.full(level.mdp.n_states, np.inf)
    frontier = np.flatnonzero(rewards.max(axis=1) > 0)
    steps[frontier], count = 1, 1
    while len(frontier):
        count += 1
        reaches = np.isin(following[:-1], frontier).any(axis=1)
        frontier = np.flatnonzero(reaches & np.isinf(steps[:-1]))
        steps[frontier] = count
    return steps


@pytest.mark.parametrize("family", ["crossing", "lava", "doorkey"])
def test_all_optimal_actions_are_the_first_steps_of_shortest_ways(family):
    for number in (0, 7, 200):
        level = solve_level(family, number)
        steps = distances_to_goal(level)
        after = np.where(level.mdp.rewards > 0, 0, steps[level.next_states])
        after[(level.next_states == level.mdp.n_states - 1) & (level.mdp.rewards == 0)] = np.inf
        reachable = np.isfinite(steps)
        expected = after == after.min(axis=1, keepdims=True)
        assert np.array_equal(level.plan.optimal_actions[reachable], expected[reachable])
        assert np.allclose(level.plan.values[reachable], 0.9 ** (steps[reachable] - 1))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_expert_solves_levels_of_the_package(family):
    """The expert's actions, given to the package's own environment, end at the goal."""
    numbers = (TRAINING_LEVELS[0],) if family in ("rooms", "multiroom") else TRAINING_LEVELS[:6]
    source = gym.make(FAMILIES[family].source, disable_env_checker=True).unwrapped
    for number in numbers:
        level = solve_level(family, number)
        source.reset(seed=all_levels(family)[number].seed)
        states, actions = level.expert_episode()
        assert len(states) == len(actions)
        for action in actions[:-1]:
            assert not source.step(FAMILIES[family].actions[action])[2]
        _, reward, terminated, _, _ = source.step(FAMILIES[family].actions[actions[-1]])
        assert terminated
        assert reward > 0


def test_states_of_one_level_match_themselves_and_the_metric_follows_the_actions():
    level, other = solve_level("crossing", 150), solve_level("crossing", 151)
    within = policy_similarity_metric(level.mdp, level.mdp, discount=0.9, threads=1).distance
    assert np.abs(np.diag(within)).max() < 1e-5
    between = policy_similarity_metric(level.mdp, other.mdp, discount=0.5, threads=1).distance
    for place in ((0, 0), (5, 9), (20, 3)):
        (x, y), total = place, 0.0
        for step in range(40):
            action_x, action_y = (one.plan.policy[state].argmax() for one, state in ((level, x), (other, y)))
            total += 0.5**step * (action_x != action_y)
            x, y = level.next_states[x, action_x], other.next_states[y, action_y]
        assert between[place] == pytest.approx(total, abs=1e-5)
