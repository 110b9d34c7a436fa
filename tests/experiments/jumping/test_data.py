import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pisces.agents.imitation.agent import ImitationAgent
from pisces.envs.jumping import JumpingEnv, JumpingTask, optimal_frames, stack_frames
from pisces.errors import UserError
from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.jumping.data import (
    TaskEvaluator,
    episode_pairs,
    imitation_data,
    shifted_copies,
    task_metrics,
)
from pisces.experiments.jumping.mdp import jumping_mdp
from pisces.experiments.jumping.tasks import is_solved, run_split
from pisces.metrics import pi_bisimulation_metric

SAME_AS_OPTIMAL = (0.1, 0.2, 0.3, 0.4)
"""Suboptimalities of the metric's policies with which training is that of optimal ones, bit for bit."""
X, Y = JumpingTask(25, 10), JumpingTask(45, 10)


def make(method, preset="paper", **arguments):
    return JumpingConfig.make(method, preset, **arguments)


def test_policy_similarity_is_zero_where_the_obstacle_is_equally_far():
    distance = task_metrics([(X, Y)], "psm", 0.99)[0]
    before = np.arange(X.jump_step + 1)
    np.testing.assert_allclose(distance[before, before + 20], 0, atol=1e-12)
    assert (distance[before].argmin(axis=1) == before + 20).all()
    # One step off, the jumps fall on different steps: the policies differ twice, one step apart.
    t = X.jump_step
    np.testing.assert_allclose(distance[t - 1, t - 1 + 19], 0.99 + 0.99**2)


def test_bisimulation_is_zero_at_equal_steps():
    distance = task_metrics([(X, Y)], "pi-bisimulation", 0.99)[0]
    np.testing.assert_allclose(np.diag(distance), 0, atol=1e-9)
    assert distance[0, 20] > 1


def test_bisimulation_with_an_end_is_that_of_the_mdps():
    x, y = jumping_mdp(X.obstacle_position), jumping_mdp(Y.obstacle_position)
    exact = pi_bisimulation_metric(x.mdp, y.mdp, discount=0.99).distance[np.ix_(x.episode, y.episode)]
    ended = task_metrics([(X, Y)], "pi-bisimulation-end", 0.99)[0]
    np.testing.assert_allclose(ended, exact, atol=1e-5)
    # A lag of two steps: 101 against 1, then the end against 101; the last reward, repeated, costs 100 twice instead.
    np.testing.assert_allclose(ended[55, 54], 100 + 0.99 * 101)
    np.testing.assert_allclose(task_metrics([(X, Y)], "pi-bisimulation", 0.99)[0][55, 53], 100 + 0.99 * 100)


def test_the_end_changes_distances_but_not_the_contrastive_loss():
    """All nonzero distances are many times the scale, so positives and weights are the same in single precision."""
    repeated, ended = (task_metrics([(X, Y)], name, 0.999)[0] for name in ("pi-bisimulation", "pi-bisimulation-end"))
    np.testing.assert_array_equal(repeated.argmin(axis=1), ended.argmin(axis=1))
    np.testing.assert_array_equal(*(-np.expm1(-d.astype(np.float32) / 0.01) for d in (repeated, ended)))
    assert repeated.max() > 10 * ended.max()


def test_true_similarity_is_the_difference_to_the_obstacle():
    distance = task_metrics([(X, Y)], "true", 0.99)[0]
    assert distance[3, 23] == 0
    assert distance[3, 20] == 3


def test_suboptimal_policies_shrink_the_metric():
    exact, blurred = (task_metrics([(X, Y)], "psm", 0.99, epsilon)[0] for epsilon in (0.0, 0.3))
    np.testing.assert_allclose(blurred, 0.4 * exact, atol=1e-12)
    np.testing.assert_allclose(task_metrics([(X, Y)], "psm", 0.99, 0.5)[0], 0, atol=1e-12)


@pytest.mark.parametrize("metric", ["psm", "psm-mdp", "pi-bisimulation", "pi-bisimulation-end", "true"])
def test_metric_of_a_pair_is_symmetric_and_the_same_with_copies(metric):
    tasks = run_split(make("pse"), "white").train[:4]
    pairs = episode_pairs(tasks, metric, 0.999, copies=3)
    expected = task_metrics([(tasks[0], tasks[2])], metric, 0.999)[0]
    assert expected.max() > 0
    np.testing.assert_array_equal(pairs.metric((0, 0), (2, 0)), expected)
    np.testing.assert_array_equal(pairs.metric((2, 0), (0, 0)), expected.T)


def test_data_of_a_run():
    data = imitation_data(make("randconv"))
    assert data.observations.shape == (1008, 60, 60, 2)
    assert data.actions.sum() == 18
    assert data.pairs is None
    colored = imitation_data(make("pse", colors=True))
    assert colored.observations.shape == (2016, 60, 60, 6)
    assert colored.actions.sum() == 18
    episodes = np.stack([group[0].observations for group in colored.pairs.groups])
    assert episodes.shape == (18, 56)
    # The auxiliary loss compares red episodes: those with a jump.
    assert (colored.actions[episodes].sum(axis=-1) == 1).all()


def test_shifted_copies_move_all_states_of_an_episode_alike():
    data = imitation_data(make("pse", changes={"shift": 3, "shifted_copies": 4}))
    plain = imitation_data(make("pse"))
    assert (len(data.pairs.groups), data.copies) == (18, 5)
    numbers, originals = data.pairs.groups[7][0].observations, plain.pairs.groups[7][0].observations
    copies = numbers + 56 * np.arange(5)[:, None]
    first = data.observations[copies]
    np.testing.assert_array_equal(first[0], plain.observations[originals])
    np.testing.assert_array_equal(data.actions[copies], np.tile(plain.actions[originals], (5, 1)))
    # Away from the border a copy is the original, moved by up to three pixels.
    inner = first[0][:, 10:50, 10:50]
    for copy in first[1:]:
        moves = [(down, right) for down in range(-3, 4) for right in range(-3, 4)]
        same = [np.array_equal(copy[:, 10 - d : 50 - d, 10 - r : 50 - r], inner) for d, r in moves]
        assert sum(same) == 1
    agent = ImitationAgent(data, make("pse", changes={"shift": 3}).settings, 0)
    assert agent.iterations_per_epoch == ImitationAgent(plain, make("pse").settings, 0).iterations_per_epoch


def test_shifts_can_leave_the_screens_border_in_place():
    frames = stack_frames(optimal_frames(JumpingTask(30, 10)))
    copies = shifted_copies(frames, 6, 4, np.random.default_rng(0), border=1).reshape(6, *frames.shape)
    np.testing.assert_array_equal(copies[0], frames)
    for copy in copies[1:]:
        for edge in (np.s_[:, 0], np.s_[:, -1], np.s_[:, :, 0], np.s_[:, :, -1]):
            np.testing.assert_array_equal(copy[edge], frames[edge])
        moves = [(down, right) for down in range(-4, 5) for right in range(-4, 5)]
        inner = frames[:, 10:50, 10:50]
        assert any(np.array_equal(copy[:, 10 - d : 50 - d, 10 - r : 50 - r], inner) for d, r in moves)
    with pytest.raises(UserError, match=r"shift_border must be in \[0, 29\], got 30"):
        make("randconv+shift", changes={"shift_border": 30})


@given(st.integers(14, 47), st.lists(st.booleans(), min_size=45, max_size=45), st.sampled_from(["white", "green"]))
def test_solved_means_that_the_environment_is_solved(position, choices, color):
    """The agent plays its greedy actions; those in the air do not matter."""
    task = JumpingTask(position, 10, color)
    actions = np.array(choices[: task.steps_to_obstacle], dtype=np.int64)
    env = JumpingEnv(position, 10, color)
    env.reset()
    done, step, rewards = False, 0, []
    while not done:
        action = int(actions[step]) if step < len(actions) else 0
        _, reward, done, _, info = env.step(action)
        rewards.append(reward)
        step += 1
    expected = info["success"] if color == "white" else not actions.any()
    assert is_solved(task, actions) == expected


def test_one_jump_at_the_right_step_solves():
    actions = np.zeros(X.steps_to_obstacle, dtype=np.int64)
    assert not is_solved(X, actions)
    actions[X.jump_step] = 1
    assert is_solved(X, actions)
    actions[X.jump_step + 1] = 1
    assert is_solved(X, actions)
    actions[X.jump_step - 1] = 1
    assert not is_solved(X, actions)


@pytest.mark.parametrize("method", ["pse", "randconv"])
def test_evaluator_agrees_with_one_state_at_a_time(method):
    config = make(method, preset="smoke")
    agent = ImitationAgent(imitation_data(config), config.settings, 0)
    tasks = (JumpingTask(20, 10), JumpingTask(27, 13))
    short = TaskEvaluator(tasks, torch.device("cpu")).greedy_actions(agent)
    long = TaskEvaluator(tasks, torch.device("cpu"), beyond_jump=True).greedy_actions(agent)
    for task, a, b in zip(tasks, short, long, strict=True):
        assert (len(a), len(b)) == (task.jump_step + 1, task.steps_to_obstacle)
        np.testing.assert_array_equal(a, b[: len(a)])


@pytest.mark.parametrize(
    ("change", "same"),
    [
        *(({"epsilon": epsilon}, True) for epsilon in SAME_AS_OPTIMAL),
        ({"changes": {"discount": 0.99}}, True),
        ({"epsilon": 0.45}, False),
    ],
)
def test_weights_of_the_loss_are_the_same_for_all_distances_far_above_the_scale(change, same):
    """What docs/reproduction_details.md says of suboptimal policies and of the discount."""
    trained = []
    for arguments in ({}, change):
        config = make("pse", **arguments)
        agent = ImitationAgent(imitation_data(config), config.settings, 0)
        for _ in range(4):
            agent.train_iteration()
        trained.append(torch.cat([parameter.detach().flatten() for parameter in agent.parameters]))
    assert torch.equal(*trained) == same
