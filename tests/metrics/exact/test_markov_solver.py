import numpy as np
import ot
import pytest
from random_mdps import operator, random_mdp, random_policy

from pisces.errors import UserError
from pisces.metrics import FiniteMDP, bisimulation_metric, chain_metric, policy_similarity_metric, reward_difference
from pisces.metrics.exact import solver as markov_solver
from pisces.metrics.exact.reduction import reduce_chain


def features_cost(values):
    """A cost of the states' own, whatever their policies."""
    return lambda x, y: np.abs(values[:, None] - values[None, :])


def solve(mdp, policy, discount, **options):
    return policy_similarity_metric(mdp, discount=discount, policy_x=policy, **options)


def test_the_answer_does_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(markov_solver, "SHARE_SIZE", 100)
    rng = np.random.default_rng(0)
    mdp = random_mdp(rng, 40, support=4)
    policy = random_policy(rng, mdp)
    one, two = (solve(mdp, policy, 0.99, threads=threads) for threads in (1, 2))
    np.testing.assert_array_equal(one.distance, two.distance)
    assert one.error_bound == two.error_bound
    monkeypatch.setattr(markov_solver, "MIXING_ENTRIES", 0)  # as for problems too large to remember steps
    plain = solve(mdp, policy, 0.99)
    assert np.abs(plain.distance - one.distance).max() <= plain.error_bound + one.error_bound


@pytest.mark.parametrize(("first", "second"), [(0, 1), (2, 3)])
def test_equal_states_are_merged(first, second):
    # States 0 and 1 are copies; 2 and 3 differ only in which copy they lead to.
    transitions = np.zeros((5, 1, 5))
    transitions[[0, 1], 0, 4] = transitions[2, 0, 0] = transitions[3, 0, 1] = transitions[4, 0, 4] = 1
    mdp = FiniteMDP(transitions, np.array([[1.0], [1.0], [0.0], [0.0], [0.0]]))
    costs = reward_difference(mdp.rewards[:, 0], mdp.rewards[:, 0])
    assert len(reduce_chain(mdp.chain(), [costs]).member) == 3
    distance = bisimulation_metric(mdp, discount=0.9).distance
    assert distance[first, second] == 0
    np.testing.assert_array_equal(distance[first], distance[second])
    assert distance[0, 2] == pytest.approx(1.9, abs=1e-6)


def test_an_acyclic_mdp_takes_one_pass():
    # Every state leads to two later ones; one in-place round is exact and the second certifies it.
    rng = np.random.default_rng(1)
    states = 30
    transitions = np.zeros((states, 1, states))
    for state in range(states - 1):
        later = rng.choice(np.arange(state + 1, states), size=min(3, states - 1 - state), replace=False)
        transitions[state, 0, later] = rng.dirichlet(np.ones(len(later)))
    transitions[-1, 0, -1] = 1
    mdp = FiniteMDP(transitions, rng.random((states, 1)))
    result = bisimulation_metric(mdp, discount=0.95)
    assert result.iterations == 2
    assert result.error_bound < 1e-9


@pytest.mark.parametrize("kind", ["ring", "sticky", "two components", "ties", "deterministic", "dense", "hub"])
def test_structured_chains(kind):
    rng = np.random.default_rng(4)
    states = 24
    rows = np.zeros((states, states))
    ahead = (np.arange(states) + 1) % states
    if kind == "ring":
        rows[np.arange(states), ahead] = rng.uniform(0.5, 1, states)
        rows[np.arange(states), (ahead + 1) % states] = 1 - rows.sum(axis=1)
    elif kind == "deterministic":
        rows[np.arange(states), rng.integers(states, size=states)] = 1
    elif kind == "dense":
        rows = rng.dirichlet(np.ones(states), states)
    else:
        for state in range(states):
            side = state // 12 * 12 + np.arange(12) if kind == "two components" else np.arange(states)
            rows[state, rng.choice(side, 4, replace=False)] = 0.25 if kind == "ties" else rng.dirichlet(np.ones(4))
        if kind == "sticky":
            rows = 0.1 * rows + 0.9 * np.eye(states)
        if kind == "hub":
            rows[0] = rng.dirichlet(np.ones(states))
    mdp = FiniteMDP(rows[:, None], rng.integers(0, 3, (states, 1)).astype(float))
    loose, tight = (bisimulation_metric(mdp, discount=0.99, tolerance=tolerance) for tolerance in (1e-3, 1e-7))
    assert np.abs(loose.distance - tight.distance).max() <= loose.error_bound + tight.error_bound
    assert tight.error_bound <= 1e-7


@pytest.mark.parametrize("settings", [{"MIXING_STEPS": 0}, {"ACCURACY": 1e9}])
def test_relaxation_speeds_up_but_does_not_decide(settings, monkeypatch):
    # Without mixing, and with next to no relaxation (value iteration), the answer is the same.
    rng = np.random.default_rng(9)
    mdp = random_mdp(rng, 15)
    usual = bisimulation_metric(mdp, discount=0.95)
    for name, value in settings.items():
        monkeypatch.setattr(markov_solver, name, value)
    other = bisimulation_metric(mdp, discount=0.95, tolerance=1e-6)
    assert np.abs(usual.distance - other.distance).max() <= usual.error_bound + other.error_bound
    assert other.error_bound <= 1e-6


def test_a_tolerance_near_the_rounding_error_ends():
    mdp = random_mdp(np.random.default_rng(10), 10)
    large = FiniteMDP(mdp.transitions, 1e5 * mdp.rewards)
    result = bisimulation_metric(large, discount=0.99, tolerance=1e-4)
    assert result.error_bound <= 1e-4
    with pytest.raises(UserError, match="rounding error"):
        bisimulation_metric(large, discount=0.99, tolerance=1e-9)


def test_progress_is_reported_and_can_interrupt():
    rng = np.random.default_rng(5)
    mdp = random_mdp(rng, 20)
    policy = random_policy(rng, mdp)
    seen = []
    result = solve(mdp, policy, 0.9, progress=lambda rounds, error: seen.append((rounds, error)))
    assert seen[-1] == (result.iterations, result.error_bound)
    assert [rounds for rounds, _ in seen] == list(range(2, 2 + len(seen)))

    def interrupt(rounds, error):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve(mdp, policy, 0.9, progress=interrupt)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"discount": 1.0}, "discount must be in"),
        ({"discount": -0.1}, "discount must be in"),
        ({"tolerance": 0.0}, "tolerance must be > 0"),
        ({"tolerance": 1e-16}, "rounding error"),
        ({"policy_y": np.ones((3, 2)) / 2}, r"policy of shape \[4, 2\]"),
        ({"policy_y": np.ones((4, 2))}, "sum to 1"),
        ({"policy_y": np.array([0, 1, 2, 0])}, "actions 0 to 1"),
        ({"cost": lambda x, y: np.zeros((1, 1))}, "cost of shape"),
        ({"cost": lambda x, y: np.full((len(x), len(y)), np.nan)}, "finite costs"),
        ({"pairs": [[0, 4]]}, r"states below 4 and 4, got \[0, 4\] to \[0, 4\]"),
        ({"pairs": [[-1, 0], [2, 2]]}, r"got \[-1, 0\] to \[2, 2\]"),
        ({"pairs": [0, 1]}, r"\[k, 2\]"),
        ({"threads": 0}, "at least 1 thread"),
    ],
)
def test_bad_input(options, words):
    rng = np.random.default_rng(7)
    mdp, other = random_mdp(rng, 4), random_mdp(rng, 4)
    given_options = {"discount": 0.9, "policy_y": random_policy(rng, other)} | options
    with pytest.raises(UserError, match=words):
        policy_similarity_metric(mdp, other, policy_x=random_policy(rng, mdp), **given_options)


def test_no_requested_pairs():
    mdp = random_mdp(np.random.default_rng(7), 4)
    for pairs in ([], np.zeros((0, 2), int)):
        assert policy_similarity_metric(mdp, discount=0.9, pairs=pairs).distance.shape == (0,)


def test_bisimulation_needs_the_same_actions():
    rng = np.random.default_rng(8)
    with pytest.raises(UserError, match="same number of actions"):
        bisimulation_metric(random_mdp(rng, 3, actions=2), random_mdp(rng, 3, actions=3), discount=0.9)


def test_one_state():
    mdp = FiniteMDP(np.ones((1, 1, 1)), [[1.0]])
    assert bisimulation_metric(mdp, discount=0.9).distance.tolist() == [[0.0]]


@pytest.mark.parametrize(("rows", "columns"), [(1, 63), (1, 64), (64, 1), (1, 65), (2, 32), (32, 2), (8, 8), (2, 62)])
def test_transports_at_the_limit_of_the_bit_masks(rows, columns):
    # State 0 of either chain spreads over absorbing states, so its distance follows from one transport.
    rng = np.random.default_rng(0)
    chains = []
    for size in (rows, columns):
        chain = np.eye(size + 1)
        chain[0] = np.append(0.0, rng.dirichlet(np.ones(size)))
        chains.append(chain)
    cost = rng.random((rows + 1, columns + 1))
    result = chain_metric(*chains, cost=cost, discount=0.9, tolerance=1e-9)
    absorbing = cost[1:, 1:] / (1 - 0.9)
    np.testing.assert_allclose(result.distance[1:, 1:], absorbing, atol=1e-9)
    expected = cost[0, 0] + 0.9 * ot.emd2(chains[0][0, 1:], chains[1][0, 1:], absorbing)
    assert result.distance[0, 0] == pytest.approx(expected, abs=2e-9)


def random_walk(states):
    rows = np.zeros((states, states))
    here = np.arange(states)
    np.add.at(rows, (here, np.minimum(here + 1, states - 1)), 0.5)
    np.add.at(rows, (here, np.maximum(here - 1, 0)), 0.5)
    return rows


@pytest.mark.parametrize("kind", ["random", "labels", "line"])
def test_a_random_walk_near_discount_one(kind):
    # Sweeps alone would need thousands of steps here; the answer is checked by POT's transports.
    states, discount, rng = 24, 0.9999, np.random.default_rng(0)
    features = {"random": rng.random(states), "labels": np.arange(states) // 8, "line": np.arange(states)}[kind]
    cost = reward_difference(features, features)
    walk = random_walk(states)
    result = chain_metric(walk, cost=cost, discount=discount, tolerance=1e-6 * cost.max() / (1 - discount))
    image = operator(result.distance, cost, walk, walk, discount)
    assert np.abs(image - result.distance).max() / (1 - discount) <= 3 * result.error_bound + 1e-9 / (1 - discount)


@pytest.mark.parametrize("outcome", [True, False])
def test_factors_speed_up_but_do_not_decide(outcome, monkeypatch):
    walk, cost = random_walk(12), reward_difference(np.arange(12.0), np.arange(12.0))
    usual = chain_metric(walk, cost=cost, discount=0.99)
    monkeypatch.setattr(markov_solver, "FACTOR_AFTER", 1)
    if not outcome:
        monkeypatch.setattr(markov_solver, "solve_couplings", lambda *arguments: False)
    other = chain_metric(walk, cost=cost, discount=0.99)
    assert np.abs(usual.distance - other.distance).max() <= usual.error_bound + other.error_bound
