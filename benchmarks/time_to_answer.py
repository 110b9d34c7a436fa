"""How soon 80 % of the wide grid's unseen tasks are solved: `randconv+pse` against `randconv+shift`, one thread.

Evaluations stop the clock. A run that has not got there when its training ends is listed as "not reached".
"""

from __future__ import annotations

import time

import numpy as np
import torch

from pisces.agents.imitation.agent import ImitationAgent
from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.jumping.data import TaskEvaluator, imitation_data
from pisces.experiments.jumping.tasks import is_solved, run_split, solved_percent

METHODS = ("randconv+shift", "randconv+pse")
SEEDS = (0, 1, 2)
EVERY, GOAL = 100, 80.0


def time_to_goal(method: str, seed: int) -> tuple[int, float, float]:
    """Iterations, seconds (data, metric and training), and the percentage at the end."""
    config = JumpingConfig.make(method, "paper", seed=seed)
    split = run_split(config, "white")
    start = time.perf_counter()
    agent = ImitationAgent(imitation_data(config), config.imitation, seed, "cpu")
    seconds = time.perf_counter() - start
    evaluator = TaskEvaluator(split.test, agent.device)
    percent = 0.0
    while percent < GOAL and agent.iteration < agent.total_iterations:
        start = time.perf_counter()
        for _ in range(EVERY):
            agent.train_iteration()
        seconds += time.perf_counter() - start
        actions = evaluator.greedy_actions(agent)
        solved = {task: is_solved(task, chosen) for task, chosen in zip(evaluator.tasks, actions, strict=True)}
        percent = solved_percent(split.test, solved)
    return agent.iteration, seconds, percent


def main() -> None:
    torch.set_num_threads(1)
    warm = JumpingConfig.make("randconv+pse", "paper")
    ImitationAgent(imitation_data(warm), warm.imitation, 0, "cpu").train_iteration()
    found: dict[str, list[float]] = {method: [] for method in METHODS}
    print(f"until {GOAL:.0f} % of unseen tasks are solved, wide grid, looked at every {EVERY} iterations, one thread")
    for seed in SEEDS:
        for method in METHODS:
            iterations, seconds, percent = time_to_goal(method, seed)
            found[method].append(seconds)
            note = "" if percent >= GOAL else ": not reached"
            print(
                f"{method:14s} seed {seed}: {iterations:5d} iterations, {seconds:6.1f} s, {percent:5.1f} %{note}",
                flush=True,
            )
    fast, slow = (float(np.median(found[method])) for method in METHODS)
    print(f"median: {METHODS[0]} {fast:.1f} s, {METHODS[1]} {slow:.1f} s: {slow / fast:.1f} times as long")


if __name__ == "__main__":
    main()
