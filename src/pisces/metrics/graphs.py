"""Markov chains from matrices and graphs, and what their states are compared by."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pisces.errors import UserError, unknown_name
from pisces.metrics.costs import Cost, l1_distance, total_variation
from pisces.validation import as_array, as_reals, check_finite

Sinks = Literal["self-loop", "error"]
"""What to do about nodes without outgoing edges: they stay where they are, or are refused."""
SINKS = ("self-loop", "error")


def transition_matrix(name: str, chain: Any, sinks: str) -> Any:
    """Returns transition probabilities [n, n] of a matrix, as it is, or of the random walk on a graph.

    Args:
        name: of the argument, for errors.
        chain: dense or scipy.sparse matrix, or a networkx graph whose edges may have a "weight" >= 0; the probability
            of an edge is its share of the weights that leave its node.
        sinks: "self-loop" or "error", for nodes of a graph without outgoing weight.
    """
    if sinks not in SINKS:
        raise unknown_name("sinks", sinks, SINKS)
    if is_graph(chain):
        return _walk(name, chain, sinks)
    if not scipy.sparse.issparse(chain):
        return as_reals(name, chain)
    if chain.dtype.kind not in "biuf":
        raise UserError(f"{name} must be real numbers, got {chain.dtype}")
    return chain


def is_graph(chain: Any) -> bool:
    """Whether something is a networkx graph."""
    return all(hasattr(chain, name) for name in ("nodes", "edges", "is_directed", "adj"))


def state_features(labels: Any, chains: tuple[Any, Any]) -> tuple[Cost, NDArray[Any], NDArray[Any]]:
    """Returns a cost and the features of the states of both chains that it compares.

    Args:
        labels: the labels of both chains as a pair, those of one chain if it is compared with itself, or the name of a
            node attribute. Floats, and integers beside floats, are features that are compared by their L1 distance; any
            other labels cost 0 if they are equal and 1 if not.
        chains: both chains; the second is None for the first.
    """
    first, second = chains
    if isinstance(labels, str):
        given = [_attribute(labels, chain) for chain in ((first,) if second is None else (first, second))]
    else:
        given = list(labels) if second is not None and isinstance(labels, tuple) and len(labels) == 2 else [labels]
    if second is not None and len(given) != 2:
        raise UserError("labels of two chains must be a pair (labels of P, labels of Q), or a node attribute's name")
    arrays = [_numbers(one) for one in given]
    kinds = {None if array is None else array.dtype.kind for array in arrays}
    if "f" in kinds:
        if None in kinds:
            raise UserError("labels must be numbers in both chains or in none")
        features = [array.astype(np.float64) for array in arrays if array is not None]
        for feature in features:
            check_finite("labels", feature)
        return l1_distance, features[0], features[-1]
    codes = _codes([_objects(*one) for one in zip(given, arrays, strict=True)])
    return total_variation, codes[0], codes[-1]


def _walk(name: str, graph: Any, sinks: str) -> scipy.sparse.csr_array:
    place = {node: number for number, node in enumerate(graph.nodes)}
    if not place:
        raise UserError(f"{name} must be a graph with at least one node, got none")
    entries = [(place[u], place[v], _weight(u, v, weight)) for u, v, weight in graph.edges(data="weight", default=1.0)]
    if not graph.is_directed():
        entries += [(v, u, weight) for u, v, weight in entries if u != v]
    row, column, weight = (np.array(part) for part in zip(*entries, strict=True)) if entries else ([], [], [])
    matrix = scipy.sparse.coo_array((weight, (row, column)), shape=(len(place), len(place)), dtype=np.float64).tocsr()
    total = np.asarray(matrix.sum(axis=1)).ravel()
    stuck = np.flatnonzero(total == 0)
    if stuck.size and sinks == "error":
        raise UserError(
            f"node {list(place)[stuck[0]]!r} of {name} has no outgoing edges; sinks='self-loop' keeps it there"
        )
    loops = scipy.sparse.coo_array((np.ones(len(stuck)), (stuck, stuck)), shape=matrix.shape)
    return scipy.sparse.csr_array(scipy.sparse.diags_array(1 / np.where(total == 0, 1.0, total)) @ matrix + loops)


def _weight(u: Hashable, v: Hashable, weight: Any) -> float:
    try:
        value = float(weight)
    except (TypeError, ValueError):
        value = np.nan
    if not 0 <= value < np.inf:
        raise UserError(f"edge weights must be finite numbers >= 0, got {weight!r} from {u!r} to {v!r}")
    return value


def _attribute(name: str, graph: Any) -> list[Any]:
    if not is_graph(graph):
        raise UserError(f"labels={name!r} names a node attribute, which only a networkx graph has; pass one per state")
    missing = [node for node, value in graph.nodes(data=name) if value is None]
    if missing:
        raise UserError(f"node {missing[0]!r} has no attribute {name!r}")
    return [value for _, value in graph.nodes(data=name)]


def _numbers(labels: Any) -> NDArray[Any] | None:
    """Labels as an array, or None if they are not all numbers of one shape."""
    try:
        array = as_array("labels", labels)
    except UserError:
        return None
    return array if array.dtype.kind in "biuf" else None


def _objects(labels: Any, numbers: NDArray[Any] | None) -> Any:
    """Labels as Python objects; an array of all would turn numbers beside strings into strings."""
    if numbers is not None:
        return numbers.tolist()
    return [_object(one) for one in labels] if np.iterable(labels) else labels


def _object(label: Any) -> Any:
    return label.tolist() if hasattr(label, "tolist") else label


def _codes(labels: list[Any]) -> list[NDArray[np.int64]]:
    numbers: dict[Hashable, int] = {}
    found = []
    for part in labels:
        if not isinstance(part, list):
            raise UserError(f"labels must be one per state, got {part!r}")
        keys = [tuple(one) if isinstance(one, list) else one for one in part]
        try:
            found.append(np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64))
        except TypeError:
            raise UserError("labels must be hashable, e.g. strings, integers or tuples") from None
    return found
