"""Time of one training iteration of `randconv+pse`, in units of a matrix product on the same machine.

U is the time of torch.mm for 13.5 GFLOP, the iteration's dense arithmetic, in float32 with both cores. The training
runs as in a sweep: two runs at once with one thread each, and the time per iteration is divided by two. For comparison
the same with plain convolutions, and one full evaluation (286 tasks, 5 RandConv draws, states up to the jump).
"""

from __future__ import annotations

import multiprocessing
import time

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from pisces.agents.imitation.agent import ImitationAgent
from pisces.agents.imitation.encoders import ImageEncoder
from pisces.envs.jumping import all_tasks
from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.jumping.data import TaskEvaluator, imitation_data

GFLOP = 13.5
SIZE = 2048
RUNS = 2
FAST_SECONDS, PLAIN_SECONDS = 8.0, 5.0


def matrix_product_seconds() -> float:
    """Time of a 13.5 GFLOP matrix product with both cores."""
    torch.set_num_threads(RUNS)
    a, b = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)
    times = []
    for _ in range(12):
        start = time.perf_counter()
        torch.mm(a, b)
        times.append(time.perf_counter() - start)
    return float(np.median(times[2:])) * GFLOP * 1e9 / (2 * SIZE**3)


def make_agent(seed: int) -> ImitationAgent:
    config = JumpingConfig.make("randconv+pse", "paper", seed=seed)
    return ImitationAgent(imitation_data(config), config.imitation, seed)


def train(seed: int, plain: bool, duration: float, barrier: object, results: object) -> None:
    torch.set_num_threads(1)
    agent = make_agent(seed)
    if plain:
        agent.encoder = ImageEncoder(agent.data.observations, agent.device)
    for _ in range(3):
        agent.train_iteration()
    barrier.wait()
    start, iterations = time.perf_counter(), 0
    while time.perf_counter() - start < duration:
        agent.train_iteration()
        iterations += 1
    results.put((time.perf_counter() - start) / iterations)


def iteration_seconds(plain: bool, duration: float) -> float:
    """Time per iteration with both cores busy: two runs at once, divided by two."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(RUNS), context.Queue()
    workers = [context.Process(target=train, args=(k, plain, duration, barrier, results)) for k in range(RUNS)]
    for worker in workers:
        worker.start()
    times = [results.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join()
    return float(np.mean(times)) / RUNS


def linear_flop(inputs: torch.Size, weight: torch.Size, *_: object, **__: object) -> int:
    return 2 * inputs.numel() * weight[0]


def matrix_gflop(iterations: int = 20) -> float:
    """What an iteration on distinct patches still multiplies; oneDNN's products may be faster than that of U."""
    agent = make_agent(0)
    products = {torch.ops.mkldnn._linear_pointwise: linear_flop}
    with FlopCounterMode(display=False, custom_mapping=products) as counter:
        for _ in range(iterations):
            agent.train_iteration()
    return float(counter.get_total_flops()) / iterations / 1e9


def evaluation_seconds() -> float:
    torch.set_num_threads(1)
    agent = make_agent(0)
    evaluator = TaskEvaluator(all_tasks(), torch.device("cpu"))
    evaluator.greedy_actions(agent)
    start = time.perf_counter()
    evaluator.greedy_actions(agent)
    return time.perf_counter() - start


def main() -> None:
    unit = matrix_product_seconds()
    print(f"matrix product of {GFLOP} GFLOP, both cores: {unit * 1e3:.1f} ms")
    fast = iteration_seconds(plain=False, duration=FAST_SECONDS)
    print(f"iteration on distinct patches: {fast * 1e3:.1f} ms")
    print(f"iteration with plain convolutions: {iteration_seconds(plain=True, duration=PLAIN_SECONDS) * 1e3:.1f} ms")
    print(f"evaluation of 286 tasks, one thread: {evaluation_seconds() * 1e3:.0f} ms")
    print(f"fast path: {fast / unit:.2f} U")
    gflop = matrix_gflop()
    print(f"matrix products of an iteration on distinct patches: {gflop:.2f} GFLOP, {gflop / GFLOP:.2f} U")


if __name__ == "__main__":
    main()
