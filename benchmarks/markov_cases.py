"""Cases beyond sparse random chains: dense, deterministic, near discount 1, requested pairs of large grids."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from pisces.metrics import FiniteMDP, chain_metric, optimal_transport, policy_similarity_metric, total_variation


def cpu(function: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """Smallest CPU seconds of a few calls, and the last result."""
    spent = []
    for _ in range(repeats):
        start = time.process_time()
        found = function()
        spent.append(time.process_time() - start)
    return min(spent), found


def pot_policy_iteration(rows: np.ndarray, cost: np.ndarray, discount: float, tolerance: float) -> np.ndarray:
    """Policy iteration over couplings on the pairs i < j: POT's network simplex per pair, a sparse LU per round."""
    import ot

    size = len(rows)
    supports = [np.flatnonzero(row) for row in rows]
    masses = [row[support] for row, support in zip(rows, supports, strict=True)]
    first, second = np.triu_indices(size, 1)
    index = np.full((size, size), -1)
    index[first, second] = index[second, first] = np.arange(len(first))
    distance = cost.copy()
    while True:
        image, entries = np.empty(len(first)), []
        for k, (i, j) in enumerate(zip(first, second, strict=True)):
            block = np.ascontiguousarray(distance[np.ix_(supports[i], supports[j])])
            plan = ot.lp.emd(masses[i], masses[j], block, check_marginals=False)
            a, b = np.nonzero(plan)
            image[k] = cost[i, j] + discount * (plan[a, b] * block[a, b]).sum()
            target = index[supports[i][a], supports[j][b]]
            entries.append((np.full((target >= 0).sum(), k), target[target >= 0], plan[a, b][target >= 0]))
        error = discount / (1 - discount) * np.abs(image - distance[first, second]).max()
        if error > tolerance:
            k, target, mass = (np.concatenate(part) for part in zip(*entries, strict=True))
            couplings = scipy.sparse.csc_array((mass, (k, target)), shape=(len(first),) * 2)
            system = scipy.sparse.eye_array(len(first), format="csc") - discount * couplings
            image = scipy.sparse.linalg.spsolve(system, cost[first, second])
        distance[first, second] = distance[second, first] = image
        if error <= tolerance:
            return distance


def doubling(following: np.ndarray, cost: np.ndarray, discount: float, tolerance: float) -> np.ndarray:
    """The metric of a deterministic chain by pointer doubling."""
    distance, steps = cost, 1
    while discount**steps / (1 - discount) * cost.max() > tolerance:
        distance = distance + discount**steps * distance[following][:, following]
        following, steps = following[following], 2 * steps
    return distance


def dense(sizes: tuple[tuple[int, int], ...] = ((50, 4), (100, 30), (60, 60), (100, 100))) -> None:
    import ot  # noqa: F401 (so that its import is not timed)

    print("    policy iteration with POT and a sparse LU on the same pairs, discount 0.9, error 1e-6")
    for states, support in sizes:
        rng = np.random.default_rng(0)
        rows = np.zeros((states, states))
        for row in rows:
            row[rng.choice(states, support, replace=False)] = rng.dirichlet(np.ones(support))
        labels = rng.dirichlet(np.ones(4), states)
        cost = total_variation(labels, labels)
        ours, found = cpu(lambda r=rows, c=cost: chain_metric(r, cost=c, discount=0.9), 3 if support < 60 else 1)
        theirs, distance = cpu(lambda r=rows, c=cost: pot_policy_iteration(r, c, 0.9, 1e-6))
        gap = np.abs(found.distance - distance).max()
        print(f"        {states} states, support {support}: {ours:.3f} s, POT {theirs:.2f} s = {theirs / ours:.1f} "
              f"times ours; difference {gap:.0e}", flush=True)  # fmt: skip


def transports() -> None:
    import ot

    print("    one cold transport against ot.emd2, best of 3")
    rng = np.random.default_rng(0)
    for size in (100, 400, 800):
        p, q = rng.dirichlet(np.ones(size), 2)
        points = rng.random((2, size, 2))
        plane = np.linalg.norm(points[0][:, None] - points[1][None], axis=-1)
        for name, cost in (("random costs", rng.random((size, size))), ("points in the plane", plane)):
            ours, _ = cpu(lambda c=cost, p=p, q=q: optimal_transport(c, p, q), 3)
            theirs, _ = cpu(lambda c=cost, p=p, q=q: ot.emd2(p, q, c, numItermax=10**7), 3)
            print(f"        {size} x {size}, {name}: {1e3 * ours:.1f} ms = {ours / theirs:.2f} times POT's", flush=True)


def deterministic() -> None:
    print("    deterministic chains against pointer doubling in numpy")
    rng = np.random.default_rng(0)
    for states, discount in ((1000, 0.9), (1000, 0.999), (2000, 0.999), (1000, 0.99999)):
        following, labels = rng.integers(states, size=states), rng.dirichlet(np.ones(4), states)
        cost = total_variation(labels, labels)
        rows = scipy.sparse.csr_array((np.ones(states), (np.arange(states), following)), shape=(states, states))
        tolerance = 1e-6 if discount < 0.9999 else 1e-5
        ours, found = cpu(
            lambda r=rows, c=cost, g=discount, t=tolerance: chain_metric(r, cost=c, discount=g, tolerance=t), 3
        )
        theirs, _ = cpu(lambda f=following, c=cost, g=discount, t=tolerance: doubling(f, c, g, t), 3)
        print(f"        {states} states, discount {discount}: {1e3 * ours:.0f} ms, doubling {1e3 * theirs:.0f} ms = "
              f"{theirs / ours:.1f} times ours; error {found.error_bound:.0e}", flush=True)  # fmt: skip


def random_walks(states: int = 300, discount: float = 0.9999) -> None:
    print(f"    random walk of {states} states, discount {discount}, error 1e-6 of the largest possible distance")
    here, rng = np.arange(states), np.random.default_rng(0)
    ahead, behind = np.minimum(here + 1, states - 1), np.maximum(here - 1, 0)
    rows = scipy.sparse.csr_array(
        (np.full(2 * states, 0.5), (np.tile(here, 2), np.concatenate([ahead, behind]))), shape=(states, states)
    )
    labels = rng.dirichlet(np.ones(4), states)
    thirds = np.asarray(here[:, None] // 100 != here[None] // 100, dtype=float)
    line = np.abs(here[:, None] - here[None]) / states
    for name, cost in (("random labels", total_variation(labels, labels)), ("three labels", thirds), ("line", line)):
        tolerance = 1e-6 * cost.max() / (1 - discount)
        ours, found = cpu(lambda c=cost, t=tolerance: chain_metric(rows, cost=c, discount=discount, tolerance=t), 3)
        print(f"        {name}: {ours:.2f} s, {found.iterations} rounds, error {found.error_bound:.0e} of distances "
              f"up to {found.distance.max():.0f}", flush=True)  # fmt: skip


def grid(side: int, slip: float) -> FiniteMDP:
    """A grid with four moves, the last cell absorbing; a move slips to either side with probability slip / 2."""
    states = side * side
    row, column = np.divmod(np.arange(states), side)
    moves = [(0, -1), (1, 0), (0, 1), (-1, 0)]
    targets = [np.clip(row + a, 0, side - 1) * side + np.clip(column + b, 0, side - 1) for a, b in moves]
    matrices = []
    for action in range(4):
        matrix = scipy.sparse.csr_array((states, states))
        for turn, mass in ((0, 1 - slip), (1, slip / 2), (3, slip / 2)):
            target = targets[(action + turn) % 4].copy()
            target[-1] = states - 1
            matrix = matrix + scipy.sparse.csr_array(
                (np.full(states, mass), (np.arange(states), target)), shape=(states, states)
            )
        matrix.eliminate_zeros()
        matrices.append(matrix)
    return FiniteMDP(matrices, np.zeros((states, 4)))


def requested_pairs(slip: float, side: int = 200) -> str:
    """Ten pairs of a grid under a policy that moves toward the diagonal and along it to the last cell."""
    warm = grid(6, slip)
    policy_similarity_metric(warm, discount=0.5, policy_x=np.full(36, 2), pairs=[[0, 1]])
    mdp, rng = grid(side, slip), np.random.default_rng(0)
    row, column = np.divmod(np.arange(side * side), side)
    policy, pairs = np.where(row >= column, 2, 1), rng.integers(side * side, size=(10, 2))
    spent, found = cpu(
        lambda: policy_similarity_metric(
            mdp, discount=0.9, policy_x=policy, pairs=pairs, tolerance=1e-3 if slip else 1e-6
        )
    )
    return f"{spent:.2f} s of CPU time, error {found.error_bound:.0e}"
