"""Meta-learning on the jumping task: ``python studies/jumping_meta.py --out results`` (about 3 minutes per seed).

Reptile (arXiv:1803.02999) with the network of the other methods, no augmentation. A training task is drawn, the network
takes some steps on the optimal episode of that task alone, and the initial weights move toward the result. Unseen tasks
give no demonstrations, so the initial weights themselves are evaluated on them. Rerun the command to resume.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from torch import nn

from pisces.agents.imitation.encoders import Network, PatchEncoder, make_network
from pisces.cli.lists import parse_seeds
from pisces.envs.jumping import JumpingTask, optimal_actions, optimal_frames, stack_frames
from pisces.envs.jumping.tasks import DECISIONS
from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.jumping.data import TaskEvaluator
from pisces.experiments.jumping.policy import JumpingPolicy
from pisces.experiments.jumping.results import solved_percentages, solved_tasks
from pisces.experiments.jumping.tasks import evaluated_tasks, run_split
from pisces.reports.tables import Cell, markdown
from pisces.runs.store import write_atomically

FILE = "meta_learning.json"
TUNING_SEED = 1000
LEARNING_RATES = (3e-4, 1e-3, 3e-3, 1e-2)
"""Learning rates to choose from, by the validation tasks of a seed that is not reported."""


@dataclass(frozen=True)
class ReptileSettings:
    """How Reptile learns."""

    learning_rate: float = 1e-3
    """Learning rate of Adam within a task; it has no momentum, as in the paper of Reptile."""
    inner_steps: int = 5
    """Steps within a task, each on the whole episode."""
    iterations: int = 1000
    """Tasks drawn."""
    step_size: float = 1.0
    """How far the initial weights move toward those of a task at the start; it decreases linearly to zero."""


class Episodes:
    """The optimal episodes of the training tasks."""

    def __init__(self, tasks: Sequence[JumpingTask]) -> None:
        self.tasks = tuple(tasks)

    @cached_property
    def encoder(self) -> PatchEncoder:
        """Represents the states of all episodes."""
        return PatchEncoder(np.concatenate([stack_frames(optimal_frames(task)) for task in self.tasks]))

    def loss(self, network: Network, index: int) -> torch.Tensor:
        """Imitation loss on one episode; both actions have the same weight, as in the other methods' batches."""
        states = np.arange(index * DECISIONS, (index + 1) * DECISIONS)
        logits = network.policy(self.encoder.represent(network, [states], [None]))
        actions = torch.from_numpy(optimal_actions(self.tasks[index]))
        weights = 0.5 / torch.bincount(actions, minlength=2).clamp(min=1)
        losses = nn.functional.cross_entropy(logits, actions, reduction="none")
        return (weights[actions] * losses).sum()


def adapted(network: Network, episodes: Episodes, index: int, settings: ReptileSettings, steps: int) -> Network:
    """A copy of the network after some steps on one episode."""
    own = copy.deepcopy(network)
    optimizer = torch.optim.Adam(own.parameters(), lr=settings.learning_rate, betas=(0.0, 0.999))
    for _ in range(steps):
        optimizer.zero_grad()
        episodes.loss(own, index).backward()
        optimizer.step()
    return own


def train_reptile(
    episodes: Episodes, settings: ReptileSettings, seed: int, report: Callable[[int], None] = lambda iteration: None
) -> Network:
    """Learns initial weights."""
    network = make_network("images", 2, torch.Generator().manual_seed(seed))
    rng = np.random.default_rng([seed, 0])
    for iteration in range(settings.iterations):
        index = int(rng.integers(len(episodes.tasks)))
        own = adapted(network, episodes, index, settings, settings.inner_steps)
        step = settings.step_size * (1 - iteration / settings.iterations)
        with torch.no_grad():
            for parameter, target in zip(network.parameters(), own.parameters(), strict=True):
                parameter.lerp_(target, step)
        report(iteration)
    return network


def evaluate(config: JumpingConfig, network: Network, episodes: Episodes, settings: ReptileSettings) -> dict[str, Any]:
    """Percentages of solved tasks with the initial weights, and of training tasks after steps on their own episodes."""

    def solved(own: Network, tasks: tuple[JumpingTask, ...]) -> dict[JumpingTask, bool]:
        evaluator = TaskEvaluator(tasks, torch.device("cpu"))
        return solved_tasks(tasks, evaluator.greedy_actions(JumpingPolicy(own, None, [None])))

    percentages = solved_percentages(config, solved(network, evaluated_tasks(config)))
    after = [
        solved(adapted(network, episodes, index, settings, 10 * settings.inner_steps), (task,))[task]
        for index, task in enumerate(episodes.tasks)
    ]
    return {**percentages, "adapted_train_solved_percent": 100 * float(np.mean(after))}


def run(seed: int, settings: ReptileSettings) -> dict[str, Any]:
    """One seed on the wide grid."""
    config = JumpingConfig.make("dropout+l2", "paper", seed=seed)
    episodes = Episodes(run_split(config, "white").train)
    network = train_reptile(episodes, settings, seed)
    return {"seed": seed, "settings": asdict(settings), **evaluate(config, network, episodes, settings)}


def read_rows(root: Path) -> list[dict[str, Any]]:
    """The stored runs; empty if there are none."""
    path = root / "jumping" / FILE
    return json.loads(path.read_text()) if path.is_file() else []


def _find(rows: Sequence[Mapping[str, Any]], seed: int, settings: ReptileSettings) -> Mapping[str, Any] | None:
    return next((row for row in rows if (row["seed"], row["settings"]) == (seed, asdict(settings))), None)


def ensure(root: Path, seed: int, settings: ReptileSettings) -> Mapping[str, Any]:
    """A run's numbers; it is run and stored if it has not been."""
    rows = read_rows(root)
    if found := _find(rows, seed, settings):
        return found
    row = run(seed, settings)
    path = root / "jumping" / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps([*rows, row], indent=1) + "\n")
    print(f"Reptile, seed {seed}, learning rate {settings.learning_rate:g}: {row['test_solved_percent']:.1f} % unseen")
    return row


def _is_usual(row: Mapping[str, Any]) -> bool:
    settings = row["settings"]
    return bool(settings == asdict(ReptileSettings(settings["learning_rate"])))


def chosen_rate(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """The learning rate with the most validation tasks solved by the tuning seed."""
    tuning = [row for row in rows if row["seed"] == TUNING_SEED]
    best = max(tuning, key=lambda row: row["validation_solved_percent"], default=None)
    return float(best["settings"]["learning_rate"]) if best else None


def meta_values(root: Path, name: str) -> tuple[float, ...]:
    """A value of the reported seeds, with the learning rate that was chosen."""
    rows = [row for row in read_rows(root) if _is_usual(row)]  # no trials of another length
    rate = chosen_rate(rows)
    own = [row for row in rows if row["settings"]["learning_rate"] == rate and row["seed"] != TUNING_SEED]
    return tuple(float(row[name]) for row in own)


def meta_table(root: Path) -> str:
    """Tasks that Reptile solves with its initial weights and after steps on a task's own episode."""
    if not meta_values(root, "test_solved_percent"):
        return "Not run yet.\n"
    names = ("train_solved_percent", "adapted_train_solved_percent", "test_solved_percent", "heldout_solved_percent")
    cells = [Cell(meta_values(root, name)).ours() for name in names]
    header = ["training tasks (%)", "training tasks after steps on each (%)", "unseen tasks (%)"]
    return markdown([*header, "without the validation tasks (%)"], [cells])


def main(seeds: str = "0-4", iterations: int = ReptileSettings.iterations, out: Path = Path("results")) -> None:
    """Choose Reptile's learning rate on validation tasks, then train some seeds with it.

    Args:
        seeds: Seeds to report.
        iterations: Tasks drawn per run.
        out: Root of the results.
    """
    torch.set_num_threads(1)
    numbers = parse_seeds(seeds)
    tuning = [ensure(out, TUNING_SEED, ReptileSettings(rate, iterations=iterations)) for rate in LEARNING_RATES]
    rate = chosen_rate(tuning)
    assert rate is not None
    for seed in numbers:
        ensure(out, seed, ReptileSettings(rate, iterations=iterations))


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
