import gymnasium
import numpy as np
import pytest
import scipy.sparse

from pisces.errors import UserError
from pisces.metrics import FiniteMDP, bisimulation_metric, optimal_policy, policy_iteration, policy_values

TRANSITIONS = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.25, 0.75]]])
REWARDS = np.array([[1.0, 0.0], [0.0, 2.0]])


def test_dense_sparse_and_list_of_matrices_agree():
    dense = FiniteMDP(TRANSITIONS, REWARDS)
    stacked = FiniteMDP(scipy.sparse.csr_array(TRANSITIONS.reshape(4, 2)), REWARDS)
    listed = FiniteMDP([scipy.sparse.coo_array(TRANSITIONS[:, a]) for a in range(2)], REWARDS, axes="action-state")
    for other in (stacked, listed):
        np.testing.assert_array_equal(other.transitions.toarray(), dense.transitions.toarray())
    assert (dense.n_states, dense.n_actions) == (2, 2)


@pytest.mark.parametrize("convert", [np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_matrix])
@pytest.mark.parametrize("actions", [2, 3, 4])
def test_matrices_are_read_alike_dense_or_sparse(convert, actions):
    rng = np.random.default_rng(0)
    transitions, rewards = rng.dirichlet(np.ones(3), (3, actions)), rng.random((3, actions))
    expected = FiniteMDP(transitions, rewards).transitions.toarray()
    per_action = [convert(transitions[:, action]) for action in range(actions)]
    per_state = [convert(transitions[state]) for state in range(3)]
    rows = scipy.sparse.csr_array(transitions.transpose(1, 0, 2).reshape(-1, 3))
    found = [
        FiniteMDP(per_action, rewards, axes="action-state"),
        FiniteMDP(per_state, rewards, axes="state-action"),
        FiniteMDP(tuple(per_action), rewards, axes="action-state"),
        FiniteMDP(transitions.transpose(1, 0, 2), rewards, axes="action-state"),
        FiniteMDP(rows, rewards, axes="action-state"),
    ]
    for mdp in found:
        np.testing.assert_allclose(mdp.transitions.toarray(), expected, rtol=1e-15)
    if actions == 3:
        with pytest.raises(UserError, match=r"3 matrices \[3, 3\] can be read in two ways; pass axes="):
            FiniteMDP(per_action, rewards)
    else:
        np.testing.assert_array_equal(FiniteMDP(per_action, rewards).transitions.toarray(), expected)
        np.testing.assert_array_equal(FiniteMDP(per_state, rewards).transitions.toarray(), expected)
        with pytest.raises(UserError, match="pass axes="):
            FiniteMDP(transitions.transpose(1, 0, 2), rewards)


@pytest.mark.parametrize(
    ("transitions", "rewards", "words"),
    [
        (TRANSITIONS + 0j, REWARDS, "transitions must be real numbers, got complex128"),
        (TRANSITIONS, REWARDS + 0j, "rewards must be real numbers, got complex128"),
        (scipy.sparse.csr_array(TRANSITIONS.reshape(4, 2) + 0j), REWARDS, "real matrices, got complex128"),
        (TRANSITIONS.astype(str), REWARDS, "transitions must be real numbers, got <U"),
        ("transitions", REWARDS, "transitions must be real numbers, got a str"),
        ([[[1.0], [0.5, 0.5]]], REWARDS, "nested lists of different lengths"),
        (scipy.sparse.csr_array(np.eye(2)), REWARDS, r"\[S \* A, S\] with A = 2, got \[2, 2\]"),
    ],
)
def test_other_kinds_of_numbers_are_refused(transitions, rewards, words):
    with pytest.raises(UserError, match=words):
        FiniteMDP(transitions, rewards)


class Environment:
    """An environment with nothing but a table."""

    def __init__(self, table, starts=None):
        self.P = table
        if starts is not None:
            self.initial_state_distrib = np.array(starts)


def test_a_start_that_is_entered_only_by_ending_transitions_keeps_its_dynamics():
    table = {0: {0: [(1.0, 1, 0.0, False)]}, 1: {0: [(1.0, 0, 1.0, True)]}}
    for environment in (Environment(table), Environment(table, [1.0, 0.0]), Environment(table, [0.5, 0.5])):
        mdp = FiniteMDP.from_gymnasium(environment)
        assert mdp.n_states == 3
        np.testing.assert_allclose(policy_iteration(mdp, 0.9).values, [0.9, 1, 0])
    inner = FiniteMDP.from_gymnasium(Environment(table, [0.0, 1.0]))  # no episode passes through state 0
    np.testing.assert_allclose(policy_iteration(inner, 0.9).values, [0, 1])


def test_terminal_states_that_loop_stay_where_they_are():
    table = {0: {0: [(0.5, 0, 1.0, False), (0.5, 1, 0.0, True)]}, 1: {0: [(1.0, 1, 0.0, True)]}}
    mdp = FiniteMDP.from_gymnasium(Environment(table))
    assert mdp.n_states == 2
    np.testing.assert_allclose(policy_iteration(mdp, 0.9).values, [0.5 / 0.55, 0])


def test_rewards_of_states_hold_for_all_actions():
    np.testing.assert_array_equal(FiniteMDP(TRANSITIONS, [1.0, 3.0]).rewards, [[1, 1], [3, 3]])


def bad_row(value):
    changed = TRANSITIONS.copy()
    changed[1, 1] = value
    return changed


@pytest.mark.parametrize(
    ("transitions", "rewards", "words"),
    [
        (bad_row([0.25, 0.7]), REWARDS, "sum of 0.95 at state 1, action 1"),
        (bad_row([-0.25, 1.25]), REWARDS, "got -0.25 at state 1, action 1, next state 0"),
        (bad_row([np.nan, 1]), REWARDS, "got nan at state 1, action 1"),
        (TRANSITIONS, REWARDS + np.inf, "rewards must be finite"),
        (TRANSITIONS, [[1.0, np.nan], [0.0, 0.0]], "got nan at state 0, action 1"),
        (TRANSITIONS, np.zeros((2, 3)), "2 states and 3 actions"),
        (TRANSITIONS, np.zeros((3, 2)), "3 states and 2 actions"),
        (np.zeros((0, 2, 0)), np.zeros((0, 2)), "at least one state"),
        (np.ones((2, 2)), REWARDS, r"shape \[S, A, S\]"),
        (scipy.sparse.csr_array((4, 2)), REWARDS, "sum of 0.0 at state 0, action 0"),
        ([scipy.sparse.eye_array(2), scipy.sparse.eye_array(3)], REWARDS, "one shape"),
    ],
)
def test_bad_mdps_name_the_place(transitions, rewards, words):
    with pytest.raises(UserError, match=words):
        FiniteMDP(transitions, rewards)


def test_files(tmp_path):
    mdp = FiniteMDP(TRANSITIONS, REWARDS)
    mdp.save(tmp_path / "mdp.npz")
    again = FiniteMDP.load(tmp_path / "mdp.npz")
    np.testing.assert_array_equal(again.transitions.toarray(), mdp.transitions.toarray())
    np.testing.assert_array_equal(again.rewards, mdp.rewards)
    np.savez(tmp_path / "dense.npz", transitions=TRANSITIONS, rewards=REWARDS)
    np.testing.assert_array_equal(
        FiniteMDP.load(tmp_path / "dense.npz").transitions.toarray(), mdp.transitions.toarray()
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "is not a file"),
        ({"other": np.ones(1)}, "transitions and rewards"),
        ({"transitions": np.array([{}]), "rewards": REWARDS}, "without pickled objects"),
        (
            {"shape": [2, 2], "probability": [1.0], "next_state": [9], "pointer": [0, 1, 1, 1, 1], "rewards": REWARDS},
            "consistent sparse arrays",
        ),
    ],
)
def test_bad_files(tmp_path, content, words):
    if content is not None:
        np.savez(tmp_path / "mdp.npz", **content)
    with pytest.raises(UserError, match=words):
        FiniteMDP.load(tmp_path / "mdp.npz")


def test_a_file_that_is_no_archive(tmp_path):
    (tmp_path / "mdp.npz").write_text("hello")
    with pytest.raises(UserError, match="MDP file"):
        FiniteMDP.load(tmp_path / "mdp.npz")


@pytest.mark.parametrize(
    ("name", "options", "states", "actions"),
    [
        ("FrozenLake-v1", {"map_name": "8x8"}, 64, 4),
        ("CliffWalking-v1", {}, 48, 4),
        ("Taxi-v4", {}, 501, 6),
    ],
)
def test_toy_text(name, options, states, actions):
    environment = gymnasium.make(name, **options)
    mdp = FiniteMDP.from_gymnasium(environment)
    assert (mdp.n_states, mdp.n_actions) == (states, actions)
    start, _ = environment.reset(seed=0)
    values = policy_iteration(mdp, 0.99).values
    assert np.isfinite(values).all()
    if name == "CliffWalking-v1":  # 13 steps of -1 along the cliff, then nothing
        assert values[start] == pytest.approx(-(1 - 0.99**13) / 0.01)
        assert values[47] == pytest.approx(0, abs=1e-12)
    if name == "Taxi-v4":
        assert values[500] == pytest.approx(0, abs=1e-12)
        assert values.max() == pytest.approx(20)


def test_only_toy_text():
    with pytest.raises(UserError, match="P dictionary"):
        FiniteMDP.from_gymnasium(gymnasium.make("CartPole-v1"))


def test_from_samples_counts():
    states, actions = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 0])
    rewards, following = np.array([1.0, 3.0, 5.0, 7.0]), np.array([0, 1, 1, 1])
    with pytest.raises(UserError, match=r"1 of 4 pairs .* no samples \(the first: state 1, action 1\)"):
        FiniteMDP.from_samples(states, actions, rewards, following, shape=(2, 2))
    mdp = FiniteMDP.from_samples(states, actions, rewards, following, shape=(2, 2), unseen="self-loop")
    np.testing.assert_array_equal(mdp.unseen, [[False, False], [False, True]])
    np.testing.assert_array_equal(mdp.counts, [[2, 1], [1, 0]])
    dense = mdp.transitions.toarray().reshape(2, 2, 2)
    np.testing.assert_allclose(dense, [[[0.5, 0.5], [0, 1]], [[0, 1], [0, 1]]])
    np.testing.assert_allclose(mdp.rewards, [[2, 5], [7, 0]])
    smooth = FiniteMDP.from_samples(states, actions, rewards, following, shape=(2, 2), smoothing=1.0)
    np.testing.assert_allclose(
        smooth.transitions.toarray().reshape(2, 2, 2), [[[0.5, 0.5], [1 / 3, 2 / 3]], [[1 / 3, 2 / 3], [0.5, 0.5]]]
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"states": [0, 2]}, "states must be from 0 to 1"),
        ({"actions": [0]}, "one length"),
        ({"next_states": [0.0, 1.0]}, "integers"),
        ({"smoothing": -1.0}, "smoothing must be a number >= 0"),
        ({"rewards": [0.0, np.nan]}, "rewards must be finite"),
    ],
)
def test_bad_samples(changes, words):
    samples = {"states": [0, 1], "actions": [0, 1], "rewards": [0.0, 1.0], "next_states": [1, 0]}
    with pytest.raises(UserError, match=words):
        FiniteMDP.from_samples(**(samples | {"shape": (2, 2)} | changes))


def test_policy_evaluation_and_improvement():
    mdp = FiniteMDP(TRANSITIONS, REWARDS)
    policy = optimal_policy(mdp, 0.9)
    plan = policy_iteration(mdp, 0.9)
    np.testing.assert_allclose(policy_values(mdp, policy, 0.9), plan.values, atol=1e-8)
    for other in ([0, 0], [0, 1], [1, 0], [1, 1]):
        assert (policy_values(mdp, np.array(other), 0.9) <= plan.values + 1e-9).all()


def test_large_chains_are_evaluated_by_iteration(monkeypatch):
    from pisces.metrics.mdp import linear

    mdp = FiniteMDP(TRANSITIONS, REWARDS)
    direct = policy_values(mdp, np.array([0, 1]), 0.9)
    monkeypatch.setattr(linear, "SOLVE_STATES", 1)
    monkeypatch.setattr(linear, "SOLVE_OPERATIONS", 0)
    np.testing.assert_allclose(policy_values(mdp, np.array([0, 1]), 0.9), direct, atol=1e-10)


@pytest.mark.parametrize("states", [30, 1200])
def test_policy_iteration_ends_near_discount_one(states):
    rng = np.random.default_rng(0)
    rows = (np.ones(2 * states), (np.arange(2 * states), rng.integers(states, size=2 * states)))
    mdp = FiniteMDP(scipy.sparse.coo_array(rows, shape=(2 * states, states)), rng.normal(size=(states, 2)))
    plan = policy_iteration(mdp, 0.999)
    np.testing.assert_allclose(policy_values(mdp, plan.policy, 0.999), plan.values, atol=2 * plan.error_bound + 1e-7)
    assert plan.error_bound < 1e-6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_input_is_left_alone(dtype):
    rows = np.random.default_rng(0).dirichlet(np.ones(4), size=4).round(3)
    rows[:, 0] += 1 - rows.sum(axis=1)
    entries = [(i, j) for i in range(4) for j in (3, 1, 0, 2)]  # unsorted, and with zeros that are stored
    values = [rows[i, j] if j != 1 else 0 for i, j in entries]
    matrix = scipy.sparse.csr_array((np.array(values, dtype), [j for _, j in entries], np.arange(0, 17, 4)))
    matrix.data = (matrix.toarray() / matrix.toarray().sum(axis=1, keepdims=True))[
        [i for i, _ in entries], [j for _, j in entries]
    ].astype(dtype)
    before, rewards = matrix.toarray(), np.arange(4.0)[:, None]
    first = bisimulation_metric(FiniteMDP(matrix, rewards), FiniteMDP(matrix, rewards), discount=0.9).distance
    np.testing.assert_array_equal(matrix.toarray(), before)
    again = bisimulation_metric(FiniteMDP(matrix, rewards), FiniteMDP(matrix, rewards), discount=0.9).distance
    np.testing.assert_array_equal(first, again)


def test_a_file_without_a_suffix_is_found_again(tmp_path):
    mdp = FiniteMDP(np.eye(3)[:, None, :], np.ones((3, 1)))
    mdp.save(tmp_path / "world")
    np.testing.assert_array_equal(FiniteMDP.load(tmp_path / "world").rewards, mdp.rewards)


@pytest.mark.parametrize("factor", [1e-12, 1.0, 1e6])
def test_the_optimal_policy_does_not_depend_on_the_unit_of_rewards(factor):
    transitions = np.zeros((2, 2, 2))
    transitions[:, 0, 0] = transitions[:, 1, 1] = 1
    mdp = FiniteMDP(transitions, factor * np.array([[0.0, 0.0], [0.0, 1.0]]))
    np.testing.assert_array_equal(optimal_policy(mdp, 0.9), [[0, 1], [0, 1]])


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("rounded", [lambda rows: rows.astype(np.float32), lambda rows: rows.round(8)])
def test_planning_ends_with_rows_that_sum_to_one_only_nearly(rounded, discount):
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(5), (5, 3))
    rewards = rng.random((5, 3))
    plan = policy_iteration(FiniteMDP(rounded(rows), rewards), discount)
    exact = policy_iteration(FiniteMDP(rows, rewards), discount)
    np.testing.assert_array_equal(plan.policy, exact.policy)
    np.testing.assert_allclose(plan.values, exact.values, rtol=1e-5)


def test_rows_and_policies_are_scaled_to_sum_to_one(tmp_path):
    mdp = FiniteMDP(np.array([[[0.3333333, 0.6666663]], [[0.0, 1.0]]]), np.ones((2, 1)))
    np.testing.assert_allclose(mdp.transitions.sum(axis=1), 1, rtol=1e-15)
    mdp.save(tmp_path / "mdp.npz")
    np.testing.assert_array_equal(FiniteMDP.load(tmp_path / "mdp.npz").transitions.data, mdp.transitions.data)
    still = FiniteMDP(np.eye(2)[:, None, :].repeat(3, axis=1), np.ones((2, 3)))
    policy = np.array([[0.3333333] * 3, [1, 0, 0]], np.float32)
    np.testing.assert_allclose(still.policy_rewards(policy), 1, rtol=1e-15)
    np.testing.assert_allclose(policy_values(still, policy, 0.999), 1000, rtol=1e-12)


@pytest.mark.parametrize("shape", [[np.inf, 2], [2**40, 2**40]])
def test_impossible_sizes_in_a_file_are_explained(tmp_path, shape):
    mdp = FiniteMDP(TRANSITIONS, REWARDS)
    mdp.save(tmp_path / "mdp.npz")
    with np.load(tmp_path / "mdp.npz") as archive:
        arrays = dict(archive)
    np.savez(tmp_path / "mdp.npz", **{**arrays, "shape": np.array(shape)})
    with pytest.raises(UserError, match="expected consistent sparse arrays"):
        FiniteMDP.load(tmp_path / "mdp.npz")


@pytest.mark.parametrize("rewards", [np.zeros((2, 1)), 0.0])
def test_samples_are_lists_of_numbers(rewards):
    with pytest.raises(UserError, match="of one length"):
        FiniteMDP.from_samples([0, 1], [0, 0], rewards, [1, 0], shape=(2, 1))


def test_arrays_are_read_only():
    mdp = FiniteMDP(TRANSITIONS, REWARDS)
    for array in (mdp.rewards, mdp.transitions.data, mdp.transitions.indices, mdp.transitions.indptr):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        mdp.transitions[0, 0] = 1.0
    np.testing.assert_array_equal(FiniteMDP(mdp.transitions, mdp.rewards).transitions.data, mdp.transitions.data)
