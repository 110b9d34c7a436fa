import copy
import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import pisces.envs  # noqa: F401 (registers the ids)
from pisces.envs.lqr import (
    DistractorLQREnv,
    LinearSystem,
    expected_cost,
    make_distractors,
    make_system,
    optimal_trajectories,
    policy_cost,
    semi_orthogonal,
    start_states,
)
from pisces.errors import UserError
from pisces.trajectories import collect


def stable_gain(system, seed):
    return system.optimal_gain + 0.02 * np.random.default_rng(seed).standard_normal(system.optimal_gain.shape)


def test_cost_equals_a_long_roll_out_from_every_basis_state():
    system = make_system(0)
    gain = stable_gain(system, 1)
    total, states = 0.0, np.eye(20)  # the expectation over standard normal starts is the sum over basis states
    for _ in range(400):
        actions = gain @ states
        total += np.sum(states * (system.state_cost @ states)) + np.sum(actions * (system.action_cost @ actions))
        states = system.dynamics @ states + system.control @ actions
    assert expected_cost(system, gain) == pytest.approx(total, rel=1e-10)


def test_the_environment_pays_the_same_cost():
    env = DistractorLQREnv(distractors=30, max_steps=300)
    gain = stable_gain(env.system, 2)
    policy = gain @ np.linalg.pinv(env.features)
    assert policy_cost(env.system, env.features[20:], policy) == pytest.approx(expected_cost(env.system, gain))
    costs = []
    for state in np.eye(20):
        observation, _ = env.reset(options={"state": state})
        truncated, cost = False, 0.0
        while not truncated:
            observation, reward, terminated, truncated, _ = env.step(policy @ observation)
            assert not terminated
            cost -= reward
        costs.append(cost)
    assert sum(costs) == pytest.approx(expected_cost(env.system, gain), rel=1e-8)


def test_no_controller_near_the_oracle_is_cheaper():
    system = make_system(3)
    assert expected_cost(system, system.optimal_gain) == pytest.approx(system.oracle_cost, rel=1e-12)
    assert min(expected_cost(system, stable_gain(system, seed)) for seed in range(20)) > system.oracle_cost
    # A = 0.8 x orthogonal and B = Q = R = I: the Riccati equation is scalar, p = 1 + 0.64 p / (1 + p).
    p = 0.32 + np.sqrt(0.32**2 + 1)
    assert system.oracle_cost == pytest.approx(20 * p, rel=1e-12)
    assert expected_cost(system, np.zeros((20, 20))) == pytest.approx(20 / (1 - 0.64), rel=1e-12)


def test_unstable_closed_loops_cost_infinity():
    system = make_system(0)
    assert expected_cost(system, 2 * np.eye(20) - system.dynamics) == float("inf")
    assert expected_cost(system, np.eye(20) - system.dynamics) == float("inf")


@pytest.mark.parametrize(("rows", "columns"), [(20, 20), (500, 20), (7, 1)])
def test_semi_orthogonal_matrices(rows, columns):
    matrix = semi_orthogonal(rows, columns, np.random.default_rng(0))
    assert matrix.shape == (rows, columns)
    np.testing.assert_allclose(matrix.T @ matrix, np.eye(columns), atol=1e-12)
    uniform = np.random.default_rng(0).random((rows, columns))
    assert (np.diag(matrix.T @ uniform) > 0).all()  # signs by the diagonal of R


def test_environments_of_a_seed_differ_in_their_distractors_alone():
    blocks = [make_distractors(0, 60, "train", 0), make_distractors(0, 60, "train", 1)]
    blocks += [make_distractors(0, 60, "validation"), make_distractors(0, 60, "test"), make_distractors(1, 60)]
    for i in range(len(blocks)):
        for j in range(i):
            assert np.abs(blocks[i] - blocks[j]).max() > 0.01
    np.testing.assert_array_equal(blocks[0], make_distractors(0, 60, "train", 0))
    np.testing.assert_array_equal(make_system(4).dynamics, make_system(4).dynamics)
    assert np.abs(make_system(4).dynamics - make_system(5).dynamics).max() > 0.01


def test_all_distractors_share_one_direction():
    cosines = np.linalg.svd(make_distractors(0, 500).T @ make_distractors(0, 500, "train", 1))[1]
    assert cosines[0] > 0.95
    assert cosines[1] < 0.5


def test_registered_environment_follows_the_interface():
    env = gym.make("pisces/DistractorLQR-v0", distractors=40, role="test", max_steps=5)
    assert env.observation_space.shape == (60,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it advises bounded spaces; this problem has none
        check_env(env.unwrapped, skip_render_check=True)
    trajectory = collect(env, lambda observation: np.zeros(20), seed=3)
    assert len(trajectory) == 5
    again = collect(env, lambda observation: np.zeros(20), seed=3)
    np.testing.assert_array_equal(trajectory.observations, again.observations)


def test_trajectories_equal_the_environments():
    env = DistractorLQREnv(distractors=25, problem_seed=2, max_steps=6)
    starts = start_states(2, 3)
    states, actions = optimal_trajectories(env.system, starts, 6)
    policy = env.system.optimal_gain @ np.linalg.pinv(env.features)
    for start, own_states, own_actions in zip(starts, states, actions, strict=True):
        observation, info = env.reset(options={"state": start})
        for state, action in zip(own_states, own_actions, strict=True):
            np.testing.assert_allclose(info["state"], state, atol=1e-12)
            np.testing.assert_allclose(policy @ observation, action, atol=1e-12)
            observation, _, _, _, info = env.step(action)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_distractors(0, 19), "at least 20 distractors, got 19"),
        (lambda: make_distractors(0, 50, "tset"), "did you mean 'test'"),
        (lambda: make_system(-1), "seed must be an integer in"),
        (lambda: expected_cost(make_system(0), np.zeros((20, 19))), r"gain of shape \(20, 20\), got \(20, 19\)"),
        (lambda: expected_cost(make_system(0), np.full((20, 20), np.nan)), "gain must be finite"),
        (lambda: policy_cost(make_system(0), np.zeros((30, 20)), np.zeros((20, 30))), r"\(20, 50\), got \(20, 30\)"),
        (lambda: make_system(0).features(np.zeros((30, 5))), r"\[n_d, 20\], got \(30, 5\)"),
        (lambda: DistractorLQREnv(max_steps=0), "max_steps of at least 1"),
        (lambda: DistractorLQREnv(distractors=20).step(np.zeros(3)), r"action of shape \(20,\), got \(3,\)"),
        (lambda: DistractorLQREnv(distractors=20).reset(options={"stat": 0}), "did you mean 'state'"),
        (lambda: DistractorLQREnv(render_mode="human"), "render_mode None"),
    ],
)
def test_bad_arguments_are_explained(call, message):
    with pytest.raises(UserError, match=message):
        call()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dynamics": np.eye(2)}, "spectral radius below 1, got 1"),
        ({"dynamics": np.zeros((2, 3))}, r"dynamics of shape \[s, s\]"),
        ({"control": np.zeros((3, 1))}, r"control of shape \[2, a\]"),
        ({"state_cost": np.eye(3)}, r"state_cost of shape \(2, 2\)"),
        ({"action_cost": np.zeros((1, 1))}, "positive definite action_cost"),
        ({"state_features": np.zeros((4, 3))}, r"state_features of shape \[f, 2\]"),
        ({"dynamics": np.full((2, 2), np.inf)}, "dynamics must be finite"),
    ],
)
def test_bad_systems_are_explained(changes, message):
    good = {
        "dynamics": 0.5 * np.eye(2),
        "control": np.ones((2, 1)),
        "state_cost": np.eye(2),
        "action_cost": np.eye(1),
        "state_features": np.ones((4, 2)),
    }
    LinearSystem(**good)
    with pytest.raises(UserError, match=message):
        LinearSystem(**{**good, **changes})


@pytest.mark.parametrize(
    ("arguments", "message"), [({"max_steps": float("nan")}, "max_steps"), ({"index": -1}, "index")]
)
def test_environments_of_impossible_sizes_are_refused(arguments, message):
    with pytest.raises(UserError, match=message):
        DistractorLQREnv(distractors=20, **arguments)


def test_copies_of_a_system_are_read_only():
    for one in (copy.deepcopy(make_system(0)), pickle.loads(pickle.dumps(make_system(0)))):
        with pytest.raises(ValueError, match="read-only"):
            one.dynamics[0, 0] = 1.0
