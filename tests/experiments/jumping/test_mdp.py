from functools import cache

import numpy as np
import pytest

from pisces.envs.jumping import JumpingEnv, JumpingTask, optimal_actions, optimal_rewards
from pisces.errors import UserError
from pisces.experiments.jumping.data import task_metrics
from pisces.experiments.jumping.mdp import episode_bisimulation, episode_similarity, jumping_mdp, suboptimal_policy
from pisces.metrics import optimal_policy, policy_iteration


@pytest.mark.parametrize("position", [20, 33, 45])
@pytest.mark.parametrize("seed", range(5))
def test_the_mdp_steps_as_the_environment(position, seed):
    rng = np.random.default_rng(seed)
    task = jumping_mdp(position)
    environment = JumpingEnv(position, 10)
    environment.reset()
    actions = rng.random(56) < 0.1 if seed else optimal_actions(JumpingTask(position, 10))
    state, terminal, done = 0, task.mdp.n_states - 1, False
    for action in actions.astype(int):
        if done:
            break
        _, reward, done, _, _ = environment.step(action)
        row = 2 * state + action
        assert task.mdp.rewards[state, action] == reward
        state = int(task.mdp.transitions[[row]].indices[0])
        assert (state == terminal) == done
        if done:
            break
    assert done
    assert seed or reward == 101


def test_values_and_policy_are_the_optimal_episode():
    task = JumpingTask(30, 10)
    found = jumping_mdp(30)
    discounted = (optimal_rewards(task) * 0.99 ** np.arange(56)).sum()
    assert policy_iteration(found.mdp, 0.99).values[0] == pytest.approx(discounted)
    walking = optimal_policy(found.mdp, 0.99).argmax(axis=1)[found.floor]
    np.testing.assert_array_equal(walking[: task.jump_step + 1], optimal_actions(task)[: task.jump_step + 1])


@pytest.mark.parametrize("position", [14, 30, 47])
def test_the_optimal_episode_is_in_the_mdp(position):
    task, found = JumpingTask(position, 10), jumping_mdp(position)
    actions = optimal_actions(task)
    np.testing.assert_array_equal(found.mdp.rewards[found.episode, actions], optimal_rewards(task))
    rows = 2 * found.episode + actions
    reached = [int(found.mdp.transitions[[row]].indices[0]) for row in rows]
    assert reached == [*found.episode[1:], found.mdp.n_states - 1]


def test_bisimulation_of_two_episodes_is_the_recursion():
    x, y, discount = JumpingTask(25, 10), JumpingTask(31, 15), 0.99
    a, b = jumping_mdp(25), jumping_mdp(31)
    next_x, next_y = (m.mdp.transitions.indices.reshape(-1, 2) for m in (a, b))

    @cache
    def distance(i, j):
        if i == a.mdp.n_states - 1 and j == b.mdp.n_states - 1:
            return 0.0
        return max(
            abs(a.mdp.rewards[i, k] - b.mdp.rewards[j, k]) + discount * distance(int(next_x[i, k]), int(next_y[j, k]))
            for k in (0, 1)
        )

    found = episode_bisimulation(x, y, discount)
    assert found.shape == (56, 56)
    for i, j in ((0, 0), (11, 17), (20, 3), (40, 50), (55, 55)):
        assert found[i, j] == pytest.approx(distance(int(a.episode[i]), int(b.episode[j])), abs=1e-5)
    np.testing.assert_allclose(np.diag(episode_bisimulation(x, JumpingTask(25, 20, "red"), discount)), 0, atol=1e-5)


@pytest.mark.parametrize("epsilon", [0.1, 0.4])
def test_similarity_of_suboptimal_policies_is_the_recursion(epsilon):
    """Each policy has two outcomes, so the couplings have one parameter, and an end of its range is optimal."""
    x, y, discount = JumpingTask(25, 10), JumpingTask(31, 15), 0.99
    a, b = jumping_mdp(25), jumping_mdp(31)
    policy_x, policy_y = (suboptimal_policy(m.mdp, discount, epsilon) for m in (a, b))
    next_x, next_y = (m.mdp.transitions.indices.reshape(-1, 2) for m in (a, b))

    @cache
    def distance(i, j):
        if i == a.mdp.n_states - 1 and j == b.mdp.n_states - 1:
            return 0.0
        p, q = policy_x[i, 0], policy_y[j, 0]
        costs = np.array([[distance(int(k), int(m)) for m in next_y[j]] for k in next_x[i]])
        both = (max(0.0, p + q - 1), min(p, q))
        plans = [np.array([[t, p - t], [q - t, 1 - p - q + t]]) for t in both]
        return abs(p - q) + discount * min((plan * costs).sum() for plan in plans)

    found = episode_similarity(x, y, discount, epsilon)
    for i, j in ((0, 0), (11, 17), (10, 17), (20, 3), (40, 50), (55, 55)):
        assert found[i, j] == pytest.approx(distance(int(a.episode[i]), int(b.episode[j])), abs=2e-6)


@pytest.mark.parametrize("positions", [(20, 45), (31, 25)])
def test_similarity_of_optimal_policies_is_that_along_the_episodes(positions):
    x, y = (JumpingTask(position, 10) for position in positions)
    along = task_metrics([(x, y)], "psm", 0.999)[0]
    np.testing.assert_allclose(episode_similarity(x, y, 0.999), along, atol=2e-6)
    assert episode_similarity(x, y, 0.999, 0.3).sum() < 0.4 * along.sum()


@pytest.mark.parametrize("metric", [episode_bisimulation, episode_similarity])
def test_green_tasks_are_refused(metric):
    with pytest.raises(UserError, match="expected white or red tasks"):
        metric(JumpingTask(25, 10), JumpingTask(25, 10, "green"), 0.99)
