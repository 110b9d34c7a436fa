import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mdps import earth_movers

from pisces.errors import UserError
from pisces.metrics import chain_metric

networkx = pytest.importorskip("networkx")


def two_triangles():
    graph = networkx.DiGraph()
    graph.add_node("a", color="red", size=1.0)
    graph.add_node("b", color="blue", size=3.0)
    graph.add_node("c", color="red", size=1.5)
    graph.add_edge("a", "b", weight=3)
    graph.add_edge("a", "c", weight=1)
    graph.add_edge("b", "a")
    return graph


def test_a_graph_is_its_random_walk():
    rows = [[0, 0.75, 0.25], [1, 0, 0], [0, 0, 1]]  # "c" has no edges and stays where it is
    cost = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    expected = chain_metric(rows, cost=cost, discount=0.9).distance
    for labels in (
        "color",
        ["red", "blue", "red"],
        [1, 2, 1],
        [("r", 1), ("b", 2), ("r", 1)],
        [[0, 1], [1, 1], [0, 1]],
    ):
        found = chain_metric(two_triangles(), labels=labels, discount=0.9)
        np.testing.assert_array_equal(found.distance, expected)
        assert found.definition.cost == "labels"
    between = chain_metric(two_triangles(), two_triangles(), labels="color", discount=0.9)
    np.testing.assert_allclose(between.distance, expected, atol=3e-6)
    pair = chain_metric(rows, np.eye(2), labels=(["x", "y", "x"], ["x", "x"]), discount=0.0).distance
    np.testing.assert_array_equal(pair, [[0, 0], [1, 1], [0, 0]])


def test_features_cost_their_distance():
    sizes = np.array([1.0, 3.0, 1.5])
    expected = chain_metric(np.eye(3), cost=np.abs(sizes[:, None] - sizes), discount=0.5).distance
    np.testing.assert_array_equal(chain_metric(np.eye(3), labels=sizes, discount=0.5).distance, expected)
    graph = two_triangles()
    found = chain_metric(graph, labels="size", discount=0.0).distance
    np.testing.assert_allclose(found, np.abs(sizes[:, None] - sizes))


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=20)
def test_random_graphs_solve_their_equation(seed, directed):
    rng = np.random.default_rng(seed)
    kind = networkx.DiGraph if directed else networkx.Graph
    graph = networkx.gnp_random_graph(6, 0.4, seed=int(seed), directed=directed)
    graph = kind(graph)
    for u, v in graph.edges:
        graph[u][v]["weight"] = float(rng.integers(1, 4))
    weights = networkx.to_numpy_array(graph)
    weights[weights.sum(axis=1) == 0] = np.eye(6)[weights.sum(axis=1) == 0]
    rows = weights / weights.sum(axis=1, keepdims=True)
    labels = rng.integers(2, size=6)
    result = chain_metric(graph, labels=labels, discount=0.8, tolerance=1e-9)
    cost = (labels[:, None] != labels).astype(float)
    lifted = np.array([[earth_movers(result.distance, p, q) for q in rows] for p in rows])
    np.testing.assert_allclose(cost + 0.8 * lifted, result.distance, atol=1e-8)


def test_multigraphs_add_their_weights_and_loops_count_once():
    graph = networkx.MultiGraph([(0, 1), (0, 1), (0, 2), (0, 0)])
    rows = [[0.25, 0.5, 0.25], [1, 0, 0], [1, 0, 0]]
    cost = 1 - np.eye(3)
    np.testing.assert_allclose(
        chain_metric(graph, cost=cost, discount=0.7).distance, chain_metric(rows, cost=cost, discount=0.7).distance
    )


def test_the_average_cost_is_the_limit():
    # Two cycles of lengths 2 and 3 with labels by position: all six pairs recur once per six steps, and three of them
    # differ, so the average cost is 1/2 from any start.
    rows_x, rows_y = np.eye(2)[[1, 0]], np.eye(3)[[1, 2, 0]]
    result = chain_metric(rows_x, rows_y, labels=([0, 1], [0, 1, 2]), discount=0.99999, relative_tolerance=1e-6)
    average = (1 - 0.99999) * result.distance
    differing = np.mean([a != b for a in range(2) for b in range(3)])
    np.testing.assert_allclose(average, differing, atol=1e-4)


def test_the_limit_is_the_cost_of_the_optimal_transition_coupling():
    pyotc = pytest.importorskip("pyotc")
    rng = np.random.default_rng(0)
    P, Q = rng.dirichlet(np.ones(4), 4), rng.dirichlet(np.ones(3), 3)  # noqa: N806
    cost = rng.random((4, 3))
    expected = pyotc.exact_otc(P, Q, cost)[0]
    average = (1 - 0.99999) * chain_metric(P, Q, cost=cost, discount=0.99999, relative_tolerance=1e-6).distance
    np.testing.assert_allclose(average, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("graph", "options", "words"),
    [
        (networkx.DiGraph([(0, 1)]), {"labels": [0, 1], "sinks": "error"}, "node 1 of P has no outgoing edges"),
        (networkx.DiGraph([(0, 1)]), {"labels": [0, 1], "sinks": "stay"}, "unknown sinks"),
        (networkx.Graph(), {"labels": []}, "at least one node"),
        (networkx.Graph([(0, 1, {"weight": -1})]), {"labels": [0, 1]}, "edge weights must be"),
        (networkx.Graph([(0, 1, {"weight": "much"})]), {"labels": [0, 1]}, "edge weights must be"),
        (networkx.Graph([(0, 1)]), {"labels": "color"}, "node 0 has no attribute 'color'"),
        (np.eye(2), {"labels": "color"}, "names a node attribute"),
        (np.eye(2), {"labels": [0, 1, 2]}, "one label per state, 2 and 2, got 3 and 3"),
        (np.eye(2), {"labels": 3}, "one per state"),
        (np.eye(2), {"labels": [{}, {}]}, "hashable"),
        (np.eye(2), {"labels": [np.nan, 1.0]}, "finite"),
        (np.eye(2), {}, "either cost"),
        (np.eye(2), {"cost": np.eye(2), "labels": [0, 1]}, "either cost"),
        (scipy.sparse.eye_array(2) * 1j, {"labels": [0, 1]}, "real numbers"),
    ],
)
def test_bad_input(graph, options, words):
    with pytest.raises(UserError, match=words):
        chain_metric(graph, discount=0.9, **options)


def test_labels_of_two_chains_are_compared_as_what_they_are():
    def distance(x, y):
        return chain_metric(np.eye(2), np.eye(2), labels=(x, y), discount=0.5).distance

    np.testing.assert_allclose(distance([0.5, 0.25], [0, 1]), [[1.0, 1.0], [0.5, 1.5]])
    np.testing.assert_array_equal(distance([1, "1"], ["1", 2]), [[2, 2], [0, 2]])
    np.testing.assert_array_equal(distance([(1,), (1, 2)], [(1, 2), (1,)]), [[2, 0], [0, 2]])
    with pytest.raises(UserError, match="numbers in both chains or in none"):
        distance([0.5, 1.0], ["a", "b"])


@pytest.mark.parametrize(
    "labels",
    [
        torch.tensor([0, 1, 0]),
        [np.array([0, 1]), np.array([1, 1]), np.array([0, 1])],
        [np.array(0), np.array(1), np.array(0)],
        [np.array(["a", "b"]), np.array(["b", "b"]), np.array(["a", "b"])],
        np.array(["a", "b", "a"]),
        [True, False, True],
    ],
)
def test_labels_are_equal_if_their_contents_are(labels):
    expected = 2 * np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(chain_metric(np.eye(3), labels=labels, discount=0.5).distance, expected)


def test_two_chains_need_two_lists_of_labels():
    with pytest.raises(UserError, match="must be a pair"):
        chain_metric(np.eye(2), np.eye(2), labels=[0, 1], discount=0.9)
