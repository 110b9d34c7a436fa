"""Examples of the metrics' documentation: ``python studies/metric_examples.py [--parts aggregation,chains,...]``.

Measures state aggregation (results/metrics/aggregation.json) and draws the pictures of the pages on chains, state
aggregation, agents and enumerated environments.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import scipy.sparse
import tyro
from matplotlib.figure import Figure

import pisces.envs  # noqa: F401 (registers the environments)
from pisces.envs.minigrid import LevelEnv
from pisces.experiments.jumping.mdp import jumping_mdp
from pisces.metrics import (
    FiniteMDP,
    StateAggregation,
    chain_metric,
    compare_behavior,
    policy_iteration,
    policy_similarity_metric,
    policy_values,
)
from pisces.reports.behavior_page import Agent, episodes_figure, steps_figure
from pisces.reports.figures import heat_map
from pisces.runs.store import write_atomically
from pisces.trajectories import Trajectory

FILE = "metrics/aggregation.json"
IMAGES = Path(__file__).parents[1] / "docs" / "images"
DISCOUNT = 0.9
POSITIONS, HEIGHTS = range(20, 46), 11
"""Obstacle positions of the jumping task's 286 tasks, and the number of floor heights."""


def table(name: str, **options: Any) -> FiniteMDP:
    """The MDP of a toy-text environment."""
    return FiniteMDP.from_gymnasium(gymnasium.make(name, **options))


def jumping_tasks(heights: int) -> FiniteMDP:
    """The tasks of the jumping family side by side in one MDP; the floor's height is part of the state."""
    tasks = [jumping_mdp(position).mdp for position in POSITIONS for _ in range(heights)]
    rows = scipy.sparse.block_diag([task.transitions for task in tasks], format="csr")
    return FiniteMDP(rows, np.vstack([task.rewards for task in tasks]))


CASES: Mapping[str, tuple[Callable[[], FiniteMDP], Sequence[tuple[str, float]]]] = {
    "Jumping, 286 tasks": (lambda: jumping_tasks(HEIGHTS), [("bisimulation", 0), ("policy-similarity", 0)]),
    "Jumping, 26 tasks with one floor height": (
        lambda: jumping_tasks(1),
        [("bisimulation", 0), ("policy-similarity", 0)],
    ),
    "FourRooms (MiniGrid)": (
        lambda: FiniteMDP.enumerate(LevelEnv("rooms", 0, observation="state")),
        [("bisimulation", 0), ("bisimulation", 0.05), ("policy-similarity", 0), ("policy-similarity", 0.5)],
    ),
    "FrozenLake 8x8": (
        lambda: table("FrozenLake-v1", map_name="8x8"),
        [("bisimulation", epsilon) for epsilon in (0, 0.001, 0.01, 0.05)]
        + [("policy-similarity", 0), ("policy-similarity", 2)],
    ),
    "Taxi": (lambda: table("Taxi-v4"), [("bisimulation", 0), ("policy-similarity", 0), ("policy-similarity", 0.5)]),
}


def measure() -> list[dict[str, Any]]:
    """Aggregates the states of known problems; returns classes, value losses and their bounds."""
    found = []
    for name, (make, settings) in CASES.items():
        mdp = make()
        values = policy_iteration(mdp, DISCOUNT).values
        for metric, epsilon in settings:
            fitted = StateAggregation(metric, epsilon=epsilon, discount=DISCOUNT).fit(mdp)  # type: ignore[arg-type]
            loss = values - policy_values(mdp, fitted.lift_policy(), DISCOUNT)
            found.append(
                {
                    "problem": name,
                    "metric": metric,
                    "epsilon": epsilon,
                    "states": mdp.n_states,
                    "classes": len(fitted.representatives_),
                    "values": [float(values.min()), float(values.max())],
                    "loss": max(0.0, float(loss.max())),
                    "bound": fitted.value_loss_bound_,
                }
            )
    return found


def aggregation_table(root: Path) -> str:
    """The measured aggregations as a Markdown table."""
    rows = ["| problem | optimal values | metric | ε | states | classes | value loss | bound |", "|" + "---|" * 8]
    for row in json.loads((root / FILE).read_text()):
        low, high = (f"{value:.2f}" for value in row["values"])
        loss = "0" if row["loss"] < 1e-9 else f"{row['loss']:.2g}"
        cells = (row["problem"], f"{low} to {high}", row["metric"], f"{row['epsilon']:g}", str(row["states"]))
        bound = "0" if row["bound"] < 1e-9 else f"{row['bound']:.2g}"
        rows.append(f"| {' | '.join(cells)} | {row['classes']} | {loss} | {bound} |")
    return "\n".join(rows) + "\n"


def benchmark_cases(root: Path) -> str:
    """The part of the metrics' benchmark beyond sparse random chains, as it was printed."""
    lines = (root / "benchmarks/markov_metrics.txt").read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("(e) "))
    end = next((number for number in range(start + 1, len(lines)) if not lines[number].startswith(" ")), len(lines))
    return "\n".join(["```text", *(line.removeprefix("    ") for line in lines[start:end]), "```"]) + "\n"


def aggregation() -> None:
    """Writes the measured aggregations, and draws the classes of FrozenLake and of the jumping task."""
    root = Path(__file__).parents[1] / "results"
    (root / FILE).parent.mkdir(parents=True, exist_ok=True)
    write_atomically(root / FILE, json.dumps(measure(), indent=1) + "\n")
    draw_jumping_classes()
    mdp = table("FrozenLake-v1", map_name="8x8")
    figure = Figure(figsize=(9, 3.3), layout="constrained")
    for axes, epsilon in zip(figure.subplots(1, 3), (0, 0.01, 0.05), strict=True):
        labels = StateAggregation(epsilon=epsilon, discount=DISCOUNT).fit_transform(mdp)
        axes.imshow(labels.reshape(8, 8), cmap="tab20", interpolation="nearest")
        for state, label in enumerate(labels):
            axes.text(state % 8, state // 8, str(label), ha="center", va="center", fontsize=8)
        axes.set_title(f"ε = {epsilon:g}: {labels.max() + 1} classes", fontsize=10)
        axes.set_axis_off()
    figure.savefig(IMAGES / "aggregation.png", dpi=110)


def draw_jumping_classes() -> None:
    """Draws the classes of the jumping task's states on the floor, by the agent's and the obstacle's position."""
    tasks, mdp = [jumping_mdp(position) for position in POSITIONS], jumping_tasks(1)
    starts = np.cumsum([0, *(task.mdp.n_states for task in tasks)])
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for axes, metric in zip(figure.subplots(1, 2), ("bisimulation", "policy-similarity"), strict=True):
        fitted = StateAggregation(metric, epsilon=0, discount=DISCOUNT).fit(mdp)  # type: ignore[arg-type]
        grid = np.full((len(tasks), max(len(task.floor) for task in tasks)), np.nan)
        for row, task in enumerate(tasks):
            grid[row, : len(task.floor)] = fitted.labels_[starts[row] + task.floor]
        shown = np.unique(grid[~np.isnan(grid)])
        colors = np.where(np.isnan(grid), np.nan, np.searchsorted(shown, grid) * 7 % len(shown))
        axes.imshow(colors, cmap="turbo", interpolation="nearest", aspect="auto", extent=(0, grid.shape[1], 46, 20))
        axes.set_title(f"{metric}: {len(shown)} classes here, {len(fitted.representatives_)} in all", fontsize=10)
        axes.set_xlabel("agent's position")
        axes.set_ylabel("obstacle's position")
    figure.savefig(IMAGES / "aggregation_jumping.png", dpi=110)


def chains() -> None:
    """Draws the distances between the nodes of two rings of six and nine nodes, every third one red."""

    def ring(size: int) -> scipy.sparse.csr_array:
        here = np.arange(size)
        places = (np.tile(here, 2), np.concatenate([(here + 1) % size, (here - 1) % size]))
        return scipy.sparse.csr_array((np.full(2 * size, 0.5), places), shape=(size, size))

    labels = [["red" if node % 3 == 0 else "blue" for node in range(size)] for size in (6, 9)]
    result = chain_metric(ring(6), ring(9), labels=tuple(labels), discount=0.9)
    figure = heat_map(result.distance, "random walks on two rings", "node of a ring of 6", "node of a ring of 9")
    figure.savefig(IMAGES / "chain_metric.png", dpi=110)


def walks(right: float, seed: int, count: int = 12, size: int = 8) -> list[Trajectory]:
    """Episodes of an agent on an empty grid that goes to the far corner, right with a probability, or else down."""
    rng, episodes = np.random.default_rng(seed), []
    for _ in range(count):
        place, places, actions = np.array([0, 0]), [], []
        while (place < size - 1).any():
            blocked = place == size - 1
            action = int(blocked[0] or (not blocked[1] and rng.random() < right))
            places.append(place.copy())
            actions.append(action)
            place[action] += 1
        episodes.append(Trajectory(np.array(places), actions=np.array(actions)))
    return episodes


def agents() -> None:
    """Draws the comparison of two agents that cross a grid."""
    found = compare_behavior(walks(0.2, seed=0), walks(0.7, seed=1), discount=0.9)
    names = [str(number) for number in range(12)]
    both = (Agent("mostly down", names, found.states_a), Agent("mostly right", names, found.states_b))
    episodes_figure(found, both).savefig(IMAGES / "agents_episodes.png", dpi=110)
    steps_figure(found, both).savefig(IMAGES / "agents_steps.png", dpi=110)
    print(found.text())


def enumerated() -> None:
    """Draws the PSM between the states of CliffWalking, found by search, and its start."""
    mdp = FiniteMDP.enumerate(gymnasium.make("CliffWalking-v1"))
    result = policy_similarity_metric(mdp, discount=0.9)
    grid = np.full(48, np.nan)
    for state, observation in enumerate(mdp.observations):
        if observation is not None:
            grid[int(observation)] = result.distance[0, state]
    title = f"CliffWalking, {mdp.n_states} states: PSM to the start"
    heat_map(grid.reshape(4, 12), title, "row", "column").savefig(IMAGES / "enumerated.png", dpi=110)


PARTS = {"aggregation": aggregation, "chains": chains, "agents": agents, "enumerated": enumerated}


def main(parts: str = ",".join(PARTS)) -> None:
    """Measures and draws.

    Args:
        parts: which ones, separated by commas.
    """
    for part in parts.split(","):
        if part not in PARTS:
            sys.exit(f"unknown part {part!r}; choose from: {', '.join(PARTS)}")
        PARTS[part]()


if __name__ == "__main__":
    tyro.cli(main)
