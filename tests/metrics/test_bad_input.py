"""Wrong arguments of every metric give one clear line."""

import warnings

import numpy as np
import pytest
import scipy.sparse

from pisces.errors import UserError
from pisces.metrics import (
    FiniteMDP,
    alignment_score,
    approximation_bound,
    augmentation_invariance,
    bisimulation_metric,
    bootstrap_metric,
    chain_metric,
    cosine_distance,
    diagnose,
    l1_distance,
    mico_distance,
    nearest_neighbors,
    neighbor_regrets,
    optimal_policy,
    optimal_transport,
    pi_bisimulation_metric,
    policy_divergence,
    policy_similarity_metric,
    policy_values,
    reward_difference,
    sequence_metric,
    total_variation,
    trajectory_metric,
    transfer_bound,
    transfer_policy,
)
from pisces.trajectories import Trajectory

MDP = FiniteMDP(np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.25, 0.75]]]), np.array([[1.0, 0.0], [0.0, 2.0]]))
WALK = Trajectory(np.zeros((2, 3)), actions=np.array([0, 1]))
RAGGED = [[1.0], [1.0, 2.0]]
NUMBERS = [None, "much", [1.0], 1j, np.nan, object()]
"""What is no number."""
ARRAYS = [None, "text", 3.0, RAGGED, [["a", "b"]], np.ones((2, 2), complex), {"a": 1}, object(), np.ones((1, 2, 3, 4))]
"""What is no array of the right shape."""
BAD = {
    "discount": [*NUMBERS, 1.0, -0.1, np.inf],
    "tolerance": [*NUMBERS[1:], 0.0, -1.0, np.inf, True],
    "relative_tolerance": [*NUMBERS[1:], 0.0, -1.0, np.inf],
    "pairs": [*ARRAYS[1:], [[0.0, 1.0]], [[0, 9]], [[-1, 0]], [0, 1]],
    "threads": [0, -1, 1.5, "2", True, [1]],
    "cost": [None, "total_variation", 3, lambda x, y: "text", lambda x, y: None, lambda x, y: 1j * np.ones((2, 2))],
    "progress": [3, "yes"],
    "policy_x": [*ARRAYS[1:], np.ones((2, 2)), [0, 5], [0.5, 0.5], -np.ones((2, 2)), [[np.nan, 1], [0, 1]]],
    "policy_y": [*ARRAYS[1:], np.ones((2, 2)), [0, 5]],
    "mdp_x": [*ARRAYS, MDP.transitions, (MDP, MDP)],
    "mdp_y": [*ARRAYS[1:], MDP.transitions],
}
SHARED = ("discount", "tolerance", "relative_tolerance", "pairs", "threads", "cost", "progress", "mdp_x", "mdp_y")
METRICS = {
    policy_similarity_metric: (*SHARED, "policy_x", "policy_y"),
    pi_bisimulation_metric: (*SHARED, "policy_x", "policy_y"),
    bisimulation_metric: SHARED,
    mico_distance: ("discount", "tolerance", "relative_tolerance", "pairs", "cost", "mdp_x", "mdp_y", "policy_x"),
}


def cases():
    for metric, names in METRICS.items():
        for name in names:
            for value in BAD[name]:
                arguments = {"mdp_x": MDP, "discount": 0.9} | {name: value}
                yield metric, arguments, f"{metric.__name__}-{name}-{type(value).__name__}"


def calls():
    """Functions with one argument to spoil, and what to spoil it with."""
    yield from ((lambda v: FiniteMDP(v, MDP.rewards), value) for value in ARRAYS)
    yield from ((lambda v: FiniteMDP(MDP.transitions, v), value) for value in ARRAYS)
    yield from ((lambda v: FiniteMDP([v, v], MDP.rewards), value) for value in (scipy.sparse.eye(3), np.ones(2)))
    yield from ((lambda v: FiniteMDP(MDP.transitions, MDP.rewards, axes=v), value) for value in ("sas", 1))
    yield from ((lambda v: FiniteMDP.from_gymnasium(v), value) for value in (None, "FrozenLake-v1", tables()[0]))
    yield from ((lambda v: FiniteMDP.from_gymnasium(v), value) for value in tables())
    for name in ("states", "actions", "rewards", "next_states", "shape", "smoothing", "terminated"):
        values = ["text", 3j, RAGGED, object(), np.ones((2, 2), complex), [0.5, "a"]]
        yield from ((lambda v, name=name: FiniteMDP.from_samples(**samples(name, v)), value) for value in values)
    yield from ((lambda v: FiniteMDP.from_samples(**samples("unseen", v)), value) for value in ("loop", None))
    yield from ((lambda v: FiniteMDP.from_samples(**samples("reward_range", v)), value) for value in ((1, 0), "a", 3))
    yield from ((lambda v: chain_metric(v, cost=np.zeros((2, 2)), discount=0.9), value) for value in ARRAYS)
    yield from ((lambda v: chain_metric(np.eye(2), v, cost=np.zeros((2, 2)), discount=0.9), v) for v in ARRAYS[1:])
    yield from ((lambda v: chain_metric(np.eye(2), cost=v, discount=0.9), value) for value in ARRAYS)
    yield from ((lambda v: chain_metric(np.eye(2), cost=np.eye(2), discount=v), value) for value in BAD["discount"])
    yield from ((lambda v: policy_values(MDP, v, 0.9), value) for value in ARRAYS)
    yield from ((lambda v: policy_divergence(MDP, v, [0, 1], 0.9), value) for value in ARRAYS)
    yield from ((lambda v: policy_divergence(v, [0, 1], [0, 1], 0.9), value) for value in ARRAYS)
    yield from ((lambda v: optimal_policy(MDP, v), value) for value in BAD["discount"])
    yield from ((lambda v: nearest_neighbors(v), value) for value in ARRAYS)
    yield from ((lambda v: nearest_neighbors(np.eye(2), v), value) for value in (0, 1.5, "2", None, True))
    yield from ((lambda v: transfer_policy(v, [0, 1]), value) for value in ARRAYS)
    yield from ((lambda v: transfer_policy(np.eye(2), v), value) for value in (RAGGED, 3, None))
    yield from ((lambda v: transfer_bound(v, 0.9), value) for value in ARRAYS)
    yield from ((lambda v: transfer_bound(np.eye(2), v), value) for value in BAD["discount"])
    yield from (
        (lambda v: approximation_bound(v, [0, 1], [0, 1], discount=0.9), value) for value in (MDP, None, [1, 2])
    )
    yield from ((lambda v: augmentation_invariance(MDP, MDP, v, discount=0.9), value) for value in ARRAYS)
    yield from ((lambda v: bootstrap_metric(bisimulation_metric, v, discount=0.9), value) for value in (MDP, None))
    yield from ((lambda v: total_variation(v, [0, 1]), value) for value in ARRAYS)
    yield from ((lambda v: l1_distance(v, [0, 1]), value) for value in ARRAYS if not isinstance(value, float))
    yield from ((lambda v: reward_difference(v, [0, 1]), value) for value in ARRAYS)
    yield from ((lambda v: sequence_metric(v, 0.9), value) for value in ARRAYS[:-1])
    yield from ((lambda v: sequence_metric(np.eye(2), v), value) for value in BAD["discount"])
    yield from ((lambda v: cosine_distance(v, np.eye(2)), value) for value in ARRAYS)
    yield from ((lambda v: neighbor_regrets(v, np.eye(2)), value) for value in ARRAYS)
    yield from ((lambda v: alignment_score(np.eye(2), np.eye(2), tolerance=v), value) for value in NUMBERS)
    yield from ((lambda v: trajectory_metric(v, WALK, 0.9), value) for value in (None, [WALK], np.eye(2)))
    yield from ((lambda v: trajectory_metric(WALK, WALK, 0.9, cost=v), value) for value in (None, "l1", 3))
    yield from ((lambda v: diagnose(v, [WALK], lambda x: x), value) for value in (WALK, None, [1], []))
    yield from ((lambda v: diagnose([WALK], v, lambda x: x), value) for value in (WALK, None, [1], []))
    yield from ((lambda v: diagnose([WALK], [WALK], v), value) for value in (None, "embed", lambda x: "text"))
    yield from ((lambda v: diagnose([WALK], [WALK], lambda x: x, threshold=v), value) for value in NUMBERS)
    yield from ((lambda v: optimal_transport(v, [1.0], [1.0]), value) for value in ARRAYS)
    yield from ((lambda v: optimal_transport([[1.0]], v, [1.0]), value) for value in ARRAYS)


def tables():
    class Environment:
        def __init__(self, table):
            self.P = table

    good = [(1.0, 0, 0.0, False)]
    wrong = [{1: {0: good}}, {0: good}, {0: {1: good}}, {0: {0: [(1.0, 0)]}}, {0: {0: [(1.0, 7, 0.0, False)]}}]
    wrong += [{0: {0: good}, 1: {0: good, 1: good}}, {0: {0: [("a", 0, 0.0, False)]}}, {0: {0: 3}}, {0: {0: []}}]
    return [Environment(table) for table in wrong]


def samples(name, value):
    whole = {"states": [0, 1], "actions": [0, 0], "rewards": [0.0, 1.0], "next_states": [1, 0], "shape": (2, 1)}
    return whole | {name: value}


@pytest.mark.parametrize(("metric", "arguments"), [pytest.param(*one[:2], id=one[2]) for one in cases()])
def test_metrics_explain_wrong_arguments(metric, arguments):
    check(lambda: metric(**arguments))


@pytest.mark.parametrize(("call", "value"), list(calls()), ids=lambda one: type(one).__name__)
def test_functions_explain_wrong_arguments(call, value):
    check(lambda: call(value))


def check(call):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserError) as caught:
            call()
    message = str(caught.value)
    assert message
    assert "\n" not in message


def test_the_number_of_cases():
    assert len(list(cases())) + len(list(calls())) > 400
