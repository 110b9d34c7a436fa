"""Time per training step and seed of `psm` on LQR, against a direct implementation.

The reference solves the Lyapunov equation as a 400 x 400 Kronecker system through autograd, one seed at a time, with
the same layers, losses and Adam. Ours runs as in `make reproduce-lqr`: two processes of one thread each, 25 seeds per
batch, so its time per step and seed is divided by two; the reference is timed with two threads and as two processes.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable

import torch

from pisces.experiments.lqr.config import LQRConfig
from pisces.experiments.lqr.data import initial_policies, training_batch

PROCESSES = 2
SECONDS = 6.0
SEEDS = tuple(range(25))
GROWTH = (500, 1000, 10_000, 100_000)


def kronecker_cost(system: object, gain: torch.Tensor) -> torch.Tensor:
    """tr(P) of P = L'PL + Q + F'RF as one linear system."""
    closed = system.dynamics[0, 0] + system.control[0, 0] @ gain
    constant = system.state_cost[0, 0] + gain.T @ system.action_cost[0, 0] @ gain
    equations = torch.eye(gain.shape[1] ** 2, dtype=gain.dtype) - torch.kron(
        closed.T.contiguous(), closed.T.contiguous()
    )
    return torch.linalg.solve(equations, constant.flatten()).view_as(constant).trace()


def direct_step(distractors: int) -> Callable[[], torch.Tensor]:
    """One step of the reference; its costs are float64, as ours are."""
    config = LQRConfig.make("psm", "paper", distractors=distractors)
    batch = training_batch(config, (0,))
    policies = initial_policies(config, (0,), batch)
    first, second = (torch.nn.Parameter(layer[0].T.clone()) for layer in policies.layers())
    features = [matrix.T.contiguous() for matrix in batch.features[0]]
    optimizer = torch.optim.Adam([first, second], lr=config.settings.learning_rate)

    def step() -> torch.Tensor:
        representations = [first @ matrix for matrix in features]
        costs = [kronecker_cost(batch.systems, (second @ part).double()) for part in representations]
        differences = torch.cat(representations, dim=1) @ batch.pairs[0]
        loss = sum(costs) / len(costs) + config.settings.aggregation * differences.square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return torch.stack([cost.detach() for cost in costs])

    return step


def batched_step(distractors: int, seeds: tuple[int, ...] = SEEDS) -> Callable[[], torch.Tensor]:
    config = LQRConfig.make("psm", "paper", distractors=distractors)
    batch = training_batch(config, seeds)
    policies = initial_policies(config, seeds, batch)
    return lambda: policies.train_step(batch)


def seconds_per_step(step: Callable[[], torch.Tensor], duration: float = SECONDS) -> float:
    """Best of the windows of a run, so that a neighbor's load matters less."""
    step()
    times, start = [], time.perf_counter()
    while time.perf_counter() - start < duration or len(times) < 3:
        before = time.perf_counter()
        step()
        times.append(time.perf_counter() - before)
    return min(times) if len(times) < 20 else sorted(times)[len(times) // 4]


def _work(
    make: Callable[[int], Callable[[], torch.Tensor]], distractors: int, barrier: object, results: object
) -> None:
    torch.set_num_threads(1)
    step = make(distractors)
    barrier.wait()
    results.put(seconds_per_step(step))


def side_by_side(make: Callable[[int], Callable[[], torch.Tensor]], distractors: int) -> float:
    """Seconds per step with both cores busy: two processes at once, divided by two."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(PROCESSES), context.Queue()
    arguments = (make, distractors, barrier, results)
    workers = [context.Process(target=_work, args=arguments) for _ in range(PROCESSES)]
    for worker in workers:
        worker.start()
    times = [results.get(timeout=600) for _ in workers]
    for worker in workers:
        worker.join()
    return sum(times) / len(times) / PROCESSES


def check_equal() -> None:
    """Both give the same costs along the first steps."""
    ours, theirs = batched_step(500, (0,)), direct_step(500)
    for _ in range(20):
        torch.testing.assert_close(ours()[0], theirs(), rtol=1e-3, atol=0)


def main() -> None:
    check_equal()
    torch.set_num_threads(PROCESSES)
    threads = seconds_per_step(direct_step(1000))
    processes = side_by_side(direct_step, 1000)
    ours = side_by_side(batched_step, 1000) / len(SEEDS)
    print(
        f"1000 distractors, per step and seed: direct {threads * 1e3:.2f} ms with two threads, {processes * 1e3:.2f} ms"
    )
    print(
        f"as two processes; batched {ours * 1e3:.3f} ms: {threads / ours:.1f} and {processes / ours:.1f} times faster"
    )
    torch.set_num_threads(1)
    print("growth, one seed, one thread:")
    for distractors in GROWTH:
        seconds = seconds_per_step(batched_step(distractors, (0,)), duration=3.0)
        print(f"  {distractors} distractors: {seconds * 1e3:.2f} ms per step")


if __name__ == "__main__":
    main()
