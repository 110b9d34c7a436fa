"""Bisimulation transfer on the jumping task: Table 1's baseline that learns nothing (Castro & Precup, 2010).

For every training and test task, the exact bisimulation metric between their full MDPs; in each state of a test task
the agent takes the optimal action of the nearest state of any training task. It needs the dynamics and rewards of the
test tasks, which no learner is given.

    python -m pisces.experiments.bisimulation_transfer --out results
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.envs.grids import Grid, TaskSplit, all_tasks, split_tasks
from pisces.envs.jumping import DECISIONS, JumpingTask, optimal_actions
from pisces.experiments.jumping_mdp import jumping_mdp
from pisces.experiments.store import RunFolder, non_defaults
from pisces.metrics import bisimulation_metric, optimal_policy

EXPERIMENT, METHOD = "jumping", "bisimulation-transfer"


@dataclass(frozen=True)
class TransferConfig:
    """One run: which tasks train, and the metric's discount."""

    grid: Grid = "wide"
    """The grid of training tasks."""
    seed: int = 0
    """Draws the random grid; the others don't depend on it."""
    discount: float = 0.99
    """Discount of the metric and of the optimal policies."""
    method: str = METHOD
    """Name in tables."""
    preset: str = "paper"
    """The only one: nothing is trained."""
    study: str = ""
    """Empty: the run departs from nothing."""

    def as_dict(self) -> dict[str, Any]:
        """The whole config."""
        return asdict(self)

    def identity(self) -> dict[str, Any]:
        """The entries that differ from their defaults."""
        return non_defaults(self)


@cache
def _nearest(test_position: int, train_position: int, discount: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """For each walking state of the test task, the distance to the nearest training state and that state's action."""
    test, train = jumping_mdp(test_position), jumping_mdp(train_position)
    states = np.arange(train.mdp.states)
    pairs = np.stack([np.tile(states, len(test.floor)), np.repeat(test.floor, len(states))], axis=1)
    distance = bisimulation_metric(train.mdp, test.mdp, discount, pairs=pairs).distance[:, test.floor]
    actions = optimal_policy(train.mdp, discount).argmax(axis=1)
    nearest = distance.argmin(axis=0)
    return distance[nearest, np.arange(len(test.floor))], actions[nearest]


def transferred_actions(test: JumpingTask, train: Iterable[JumpingTask], discount: float) -> NDArray[np.int64]:
    """Actions copied from the nearest training states, in the test task's walking states; the first of equals."""
    positions = list(dict.fromkeys(task.obstacle_position for task in train))
    found = [_nearest(test.obstacle_position, position, discount) for position in positions]
    best = np.argmin([distance for distance, _ in found], axis=0)
    return np.array([found[task][1][state] for state, task in enumerate(best)])


def evaluate(config: TransferConfig) -> dict[str, Any]:
    """Runs one config; returns its result."""
    split = split_tasks(config.grid, config.seed)
    actions = {task: transferred_actions(task, split.train, config.discount) for task in all_tasks()}
    solved = {
        task: np.array_equal(chosen[: task.jump_step + 1], optimal_actions(task)[: task.jump_step + 1])
        for task, chosen in actions.items()
    }
    return {
        "config": config.as_dict(),
        **_percentages(split, solved),
        "tasks": [[task.obstacle_position, task.floor_height, task.color] for task in actions],
        "train_tasks": [asdict(task) for task in split.train],
        "solved": "".join(str(int(won)) for won in solved.values()),
        "actions": ["".join(map(str, chosen[:DECISIONS])) for chosen in actions.values()],
    }


def _percentages(split: TaskSplit, solved: dict[JumpingTask, bool]) -> dict[str, float]:
    parts = {"train": split.train, "validation": split.validation, "test": split.test, "heldout": split.heldout}
    return {
        f"{name}_solved_percent": 100 * float(np.mean([solved[task] for task in tasks])) if tasks else 0.0
        for name, tasks in parts.items()
    }


def run(config: TransferConfig, out: str | Path) -> dict[str, Any]:
    """Runs one config unless its folder holds the result already; returns the result."""
    folder = RunFolder.open(out, EXPERIMENT, METHOD, config)
    if not folder.finished:
        folder.write_result(evaluate(config))
    return folder.read_json("result.json")


def main(report: Callable[[str], None] = print) -> None:
    """Runs the wide and narrow grids and ten random ones."""
    parser = argparse.ArgumentParser(description="Bisimulation transfer on the jumping task (Table 1).")
    parser.add_argument("--out", default="runs", help="folder for results")
    parser.add_argument("--seeds", type=int, default=10, help="number of random grids")
    options = parser.parse_args()
    configs = [TransferConfig("wide"), TransferConfig("narrow")]
    configs += [TransferConfig("random", seed) for seed in range(options.seeds)]
    for config in configs:
        result = run(config, options.out)
        report(f"{config.grid} seed {config.seed}: {result['test_solved_percent']:.1f} % of unseen tasks solved")


if __name__ == "__main__":
    main()
