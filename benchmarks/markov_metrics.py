"""Exact metrics of finite MDPs against public implementations at equal certified error 1e-6, and its growth.

python benchmarks/markov_metrics.py            (a) public loops, (b) ot-markov-distances, (c) growth, (d) structure,
                                               (e) dense, deterministic, near discount 1, requested pairs, threads
python benchmarks/markov_metrics.py --large    10,000 states, alone
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse

import markov_cases
from pisces.metrics import FiniteMDP, MetricResult, policy_similarity_metric, total_variation

KINDS = ("random", "ring", "sticky", "two components", "ties", "deterministic")
ACTIONS = 4
TOLERANCE = 1e-6
Transport = Callable[[np.ndarray, np.ndarray, np.ndarray], float]


def make_chain(kind: str, states: int, support: int, seed: int = 0) -> tuple[FiniteMDP, np.ndarray]:
    """An MDP whose actions share one chain, with a random policy [S, 4] that gives the costs."""
    rng = np.random.default_rng(seed)
    here = np.arange(states)[:, None]
    if kind == "ring":
        columns = (here + 1 + np.arange(support)) % states
    elif kind == "two components":
        half = states // 2
        columns = np.array([rng.choice(half, support, replace=False) + half * (s >= half) for s in range(states)])
    else:
        columns = np.array([rng.choice(states, support, replace=False) for _ in range(states)])
    mass = rng.dirichlet(np.ones(support), states)
    if kind == "ties":
        mass = np.full((states, support), 1 / support)
    if kind == "deterministic":
        columns, mass = columns[:, :1], np.ones((states, 1))
    if kind == "sticky":
        columns, mass = np.hstack([columns, here]), np.hstack([0.1 * mass, np.full((states, 1), 0.9)])
    rows = (mass.ravel(), (np.repeat(np.arange(states), columns.shape[1]), columns.ravel()))
    chain = scipy.sparse.csr_array(scipy.sparse.coo_array(rows, shape=(states, states)))
    policy = (
        np.eye(ACTIONS)[rng.integers(2, size=states)] if kind == "ties" else rng.dirichlet(np.ones(ACTIONS), states)
    )
    return FiniteMDP([chain] * ACTIONS, np.zeros((states, ACTIONS))), policy


def solve(mdp: FiniteMDP, policy: np.ndarray, discount: float, threads: int | None = None) -> MetricResult:
    return policy_similarity_metric(mdp, discount=discount, policy_x=policy, tolerance=TOLERANCE, threads=threads)


def timed(function: Callable[[], object], repeats: int = 1) -> tuple[float, float]:
    """Median wall-clock and CPU seconds; the latter hardly depend on other load."""
    spent = []
    for _ in range(repeats):
        start, busy = time.perf_counter(), time.process_time()
        function()
        spent.append((time.perf_counter() - start, time.process_time() - busy))
    return tuple(np.median(spent, axis=0).tolist())


def public_loop(
    rows: np.ndarray, cost: np.ndarray, discount: float, bare: bool, sweeps: int | None
) -> tuple[int, np.ndarray]:
    """Value iteration that calls ot.emd2 once per pair and sweep, until the certified error is reached."""
    import ot

    size = len(rows)
    supports = [np.flatnonzero(row) if bare else np.arange(size) for row in rows]
    masses = [row[support] for row, support in zip(rows, supports, strict=True)]
    distance, count = np.zeros_like(cost), 0
    while sweeps is None or count < sweeps:
        image = np.empty_like(distance)
        for i in range(size):
            for j in range(size):
                block = np.ascontiguousarray(distance[np.ix_(supports[i], supports[j])]) if bare else distance
                image[i, j] = cost[i, j] + discount * ot.emd2(masses[i], masses[j], block)
        error = discount / (1 - discount) * np.abs(image - distance).max()
        distance, count = image, count + 1
        if error <= TOLERANCE:
            break
    return count, distance


def against_the_public_loop() -> None:
    print("(a) one ot.emd2 per pair and sweep; random chains, support 4, discount 0.9, certified error 1e-6")
    print("    CPU seconds on one core for both sides; in parentheses wall-clock seconds")
    counts: dict[bool, int] = {}
    for states in (50, 100):
        mdp, policy = make_chain("random", states, 4)
        rows, cost = mdp.policy_chain(policy), total_variation(policy, policy)
        dense = np.zeros((states, states))
        dense[np.repeat(np.arange(states), np.diff(rows.pointer)), rows.next_state] = rows.probability
        clock, ours = timed(lambda m=mdp, p=policy: solve(m, p, 0.9), 20)
        print(f"    {states} states: ours {1e3 * ours:.2f} ms ({1e3 * clock:.2f} ms), median of 20")
        for bare in (False, True):
            start, busy = time.perf_counter(), time.process_time()
            done, distance = public_loop(dense, cost, 0.9, bare, None if states == 50 else 4)
            clock, busy = time.perf_counter() - start, time.process_time() - busy
            if states == 50:
                counts[bare] = done
                gap = np.abs(distance - solve(mdp, policy, 0.9).distance).max()
                note = f"{done} sweeps, largest difference to ours {gap:.1e}"
            else:
                clock, busy = clock * counts[bare] / done, busy * counts[bare] / done
                note = f"{done} sweeps measured, times {counts[bare] / done:g} for the {counts[bare]} of 50 states"
            name = "bare supports" if bare else "full rows"
            print(
                f"        loop on {name}: {busy:.1f} s ({clock:.1f} s), {busy / ours:,.0f} times ours; {note}",
                flush=True,
            )


def first_calls() -> None:
    print("    first call after installation, and with the compiled cache in a new process:")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("compiling", "loading the cache"):
            print(f"        {name}: {child('first', environment={'NUMBA_CACHE_DIR': folder})}")


def against_ot_markov_distances() -> None:
    print("(b) ot-markov-distances (Sinkhorn in torch, PyPI), 50 states, support 4, discount 0.9")
    try:
        import torch
        from ot_markov_distances.discounted_wl import discounted_wl_infty_cost_matrix
    except ImportError:
        print("        not installed: pip install ot-markov-distances")
        return
    mdp, policy = make_chain("random", 50, 4)
    exact, cost = solve(mdp, policy, 0.9).distance, torch.tensor(total_variation(policy, policy))[None]
    rows = torch.tensor(mdp.transitions.toarray()[::4])[None]
    ours, _ = timed(lambda: solve(mdp, policy, 0.9), 20)
    for strength, steps in ((1e-1, 50), (1e-2, 200), (1e-3, 1000), (1e-4, 5000)):
        options = {"delta": 0.1, "sinkhorn_reg": strength, "max_iter": 150, "sinkhorn_iter": steps}
        options |= {"convergence_threshold_rtol": 0.0, "convergence_threshold_atol": 1e-8, "sinkhorn_iter_schedule": 50}
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = discounted_wl_infty_cost_matrix(rows, rows, cost, **options)[0].numpy() / 0.1
        seconds = time.perf_counter() - start
        error = np.abs(found - exact).max()
        ratio = f"{seconds:.1f} s = {seconds / ours:,.0f} times ours"
        name = f"regularization {strength:g}, up to {steps} Sinkhorn steps"
        print(f"        {name}: {ratio}, true error {error:.1e} (it certifies none)", flush=True)
        if seconds > 60:  # the next one would take ten times as long
            break


def growth() -> None:
    print("(c) growth: seconds (compiled) and peak memory of a fresh process")
    for states, support, discount in itertools.product((200, 500, 1000, 2000), (2, 4, 8), (0.9, 0.99)):
        found = child("one", "random", states, support, discount)
        print(f"        {states} states, support {support}, discount {discount}: {found}", flush=True)


def structure() -> None:
    print("(d) structured chains, 1000 states, support 4")
    for discount in (0.9, 0.99):
        for kind in KINDS:
            print(f"        discount {discount}, {kind}: {child('one', kind, 1000, 4, discount)}", flush=True)


def cases() -> None:
    print("(e) beyond sparse random chains; CPU seconds of both sides in one process")
    markov_cases.dense()
    markov_cases.transports()
    markov_cases.deterministic()
    markov_cases.random_walks()
    print("    requested pairs: 10 of a grid of 40,000 states, discount 0.9, in a fresh process")
    for name, slip in (("deterministic", 0.0), ("slippery", 0.2)):
        print(f"        {name}: {child('pairs', slip)}", flush=True)
    print("    threads: random chain of 1000 states, support 4, discount 0.99")
    for threads in (1, 2):
        print(f"        {threads}: {child('one', 'random', 1000, 4, 0.99, threads)}", flush=True)


def child(*arguments: object, environment: dict[str, str] | None = None) -> str:
    command = [sys.executable, str(Path(__file__).resolve()), "--child", *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **(environment or {})})
    return run.stdout.strip()


def peak_memory() -> float:
    """Peak memory of this process in megabytes; `getrusage` would include the parent's peak."""
    status = Path("/proc/self/status").read_text().splitlines()
    return float(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1024


def run_child(arguments: list[str]) -> None:
    if arguments[0] == "first":
        mdp, policy = make_chain("random", 50, 4)
        clock, busy = timed(lambda: solve(mdp, policy, 0.9))
        print(f"{clock:.2f} s ({busy:.2f} s of CPU time)")
        return
    if arguments[0] == "pairs":
        print(f"{markov_cases.requested_pairs(float(arguments[1]))}, {peak_memory():.0f} MB")
        return
    kind, (states, support), discount = arguments[1], map(int, arguments[2:4]), float(arguments[4])
    small, small_policy = make_chain("random", 40, support)
    solve(small, small_policy, 0.9)
    mdp, policy = make_chain(kind, states, support)
    start, busy = time.perf_counter(), time.process_time()
    result = solve(mdp, policy, discount, int(arguments[5]) if len(arguments) > 5 else None)
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    print(
        f"{seconds:.2f} s ({busy:.2f} s of CPU time), {peak_memory():.0f} MB, {result.iterations} rounds, "
        f"error {result.error_bound:.1e}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--large", action="store_true", help="run 10,000 states, support 4, discount 0.9 and nothing else"
    )
    parser.add_argument("--parts", default="afbcde", help="which parts to run; f: first calls")
    parser.add_argument("--child", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_child(options.child)
        return
    cores = len(os.sched_getaffinity(0))
    print(f"{cores} cores, load {os.getloadavg()[0]:.1f} at the start; other work on the machine slows both sides")
    if options.large:
        print(f"10000 states, support 4, discount 0.9: {child('one', 'random', 10000, 4, 0.9)}")
        return
    parts = {
        "a": against_the_public_loop,
        "f": first_calls,
        "b": against_ot_markov_distances,
        "c": growth,
        "d": structure,
        "e": cases,
    }
    for part in options.parts:
        parts[part]()


if __name__ == "__main__":
    main()
