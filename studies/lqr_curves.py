"""Errors and weights during LQR training, for docs/lqr.md: ``python studies/lqr_curves.py --out results``.

The unseen environment's error of IPO by the number of training steps, and |K_d| and the aggregation residual of
aggregation by the optimizer; all without early stopping. Rerun the command to resume: every batch of seeds is stored.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch
import tyro
from matplotlib.figure import Figure
from torch import Tensor

from lqr_ablation import DISTRACTORS, descent
from pisces.agents.linear.rotation import Rotation
from pisces.agents.linear.training import Policies, TrainedSeed, TrainingBatch, TwoLayerPolicies
from pisces.cli.lists import parse_names, parse_seeds
from pisces.experiments.lqr.config import FIRST_TUNING_SEED, SIZES, LQRConfig
from pisces.experiments.lqr.data import evaluate_seed, initial_policies, training_batch
from pisces.experiments.lqr.paper import LQR
from pisces.reports.figures import LINE_COLORS
from pisces.reports.tables import markdown
from pisces.runs.store import write_atomically

FILE = "curves.json"
STEPS = (100, 200, 300, 500, 1000, 1500, 2000, 2500, 3000, 4000, 5000)
"""Numbers of steps after which policies are evaluated; 5000 is the public code's."""
OPTIMIZER_STEPS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10000)
BATCH = 10
"""Seeds that are trained together and then stored."""
OPTIMIZERS: Mapping[str, Mapping[str, Any]] = {
    "adam 1e7": {},
    "adam 100": {"aggregation": 100.0},
    "gradient-descent 100": descent("gradient-descent", 100.0),
}
"""Changes of `psm` whose |K_d| is followed; the first is the method as it is."""
VALUES = ("error", "distractor_norm", "state_norm", "aggregation_residual")

Lift = Callable[[int, tuple[Tensor, ...]], tuple[Tensor, ...]]
Curves = dict[str, dict[str, list[dict[str, Any]]]]
"""Cell -> seed -> one row per number of steps."""


def curves(config: LQRConfig, seeds: Sequence[int], steps: Sequence[int]) -> dict[str, list[dict[str, Any]]]:
    """Follows some seeds' policies, without early stopping; returns rows by seed."""
    policies, batch, lift = _start(config, seeds)
    rows: dict[str, list[dict[str, Any]]] = {str(seed): [] for seed in seeds}
    for step in range(1, max(steps) + 1):
        policies.train_step(batch)
        if step in steps:
            for index, seed in enumerate(seeds):
                layers = lift(index, tuple(layer[index] for layer in policies.layers()))
                found = evaluate_seed(config, seed, TrainedSeed(layers, 0.0, step, 0))
                shown = {name: found[name] for name in VALUES if found.get(name) is not None}
                rows[str(seed)].append({"step": step} | {name: float(f"{v:.5g}") for name, v in shown.items()})
    return rows


def _start(config: LQRConfig, seeds: Sequence[int]) -> tuple[Policies, TrainingBatch, Lift]:
    """Policies before training; those of gradient descent in few coordinates, as in `train_seeds`."""
    batch = training_batch(config, seeds)
    policies = initial_policies(config, seeds, batch)
    if config.settings.optimizer == "adam" or not isinstance(policies, TwoLayerPolicies):
        return policies, batch, lambda index, layers: layers
    rotation = Rotation.of(batch, policies.first)
    reduced, first = rotation.reduce(batch)
    own = TwoLayerPolicies(first, policies.second.detach(), config.settings)
    return own, reduced, lambda index, layers: rotation.lift(index, TrainedSeed(layers, 0.0, 0, 0)).layers


def read_curves(root: Path) -> Curves:
    """The stored curves; empty if there are none."""
    path = root / "lqr" / FILE
    return json.loads(path.read_text()) if path.is_file() else {}


def add_curves(root: Path, name: str, config: LQRConfig, seeds: Sequence[int], steps: Sequence[int]) -> None:
    """Follows the seeds of a cell that are not stored yet, batch by batch."""
    stored = read_curves(root)
    cell = stored.setdefault(name, {})
    missing = [seed for seed in seeds if str(seed) not in cell]
    for start in range(0, len(missing), BATCH):
        cell |= curves(config, missing[start : start + BATCH], steps)
        stored[name] = cell = {seed: cell[seed] for seed in sorted(cell, key=int)}
        path = root / "lqr" / FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(stored, separators=(",", ":")) + "\n")
        print(f"{name}: {len(cell)} seeds")


def values_by_step(cell: Mapping[str, Sequence[Mapping[str, Any]]], name: str) -> dict[int, list[float]]:
    """A value of all seeds of a cell, by the number of steps; infinite where a policy is unstable."""
    found: dict[int, list[float]] = {}
    for rows in cell.values():
        for row in rows:
            found.setdefault(row["step"], []).append(row.get(name, float("inf")))
    return found


def ipo_table(root: Path) -> str:
    """IPO's error by the number of training steps, ours and the paper's."""
    stored = read_curves(root)
    cells = {size: values_by_step(stored[f"ipo {size}"], "error") for size in SIZES if f"ipo {size}" in stored}
    if not cells:
        return "Not measured yet.\n"
    rows = []
    for step in sorted(set.union(*(set(cell) for cell in cells.values()))):
        rows.append([str(step), *(_cell(cell.get(step, [])) for cell in cells.values())])
    published = [LQR["ipo"][size] for size in cells]
    rows.append(["the paper", *map(str, published)])
    header = ["steps", *(f"{size} distractors, n={len(stored[f'ipo {size}'])}" for size in cells)]
    return markdown(header, rows)


def _cell(errors: Sequence[float]) -> str:
    stable = [error for error in errors if math.isfinite(error)]
    if len(stable) < 2:
        return "–"
    unstable = f", {len(errors) - len(stable)} unstable" if len(stable) < len(errors) else ""
    return f"{fmean(stable):.1f} ({stdev(stable):.1f}){unstable}"


def norm_figure(root: Path) -> Figure:
    """|K_d| and the aggregation residual during training, by the optimizer."""
    stored = read_curves(root)
    figure = Figure(figsize=(8.6, 3.2), layout="constrained")
    panels = figure.subplots(1, 2)
    names = (("distractor_norm", "|K| of the distractors' columns"), ("aggregation_residual", "aggregation residual"))
    for axes, (value, label) in zip(panels, names, strict=True):
        for color, name in zip(LINE_COLORS, OPTIMIZERS, strict=False):
            means = {step: fmean(own) for step, own in values_by_step(stored.get(name, {}), value).items()}
            axes.plot(list(means), list(means.values()), color=color, marker="o", markersize=3, label=name)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("training steps")
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    panels[1].legend(frameon=False, fontsize=8)
    return figure


def main(seeds: str = "0-99", sizes: str = ",".join(map(str, SIZES)), out: Path = Path("results")) -> None:
    """Follow the training of IPO, and of aggregation with two optimizers (about an hour on one core).

    Args:
        seeds: Seeds of IPO.
        sizes: Numbers of distractors of IPO, separated by commas.
        out: Root of the results.
    """
    torch.set_num_threads(1)
    numbers = parse_seeds(seeds)
    for name, changes in OPTIMIZERS.items():
        tuning = range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + 5)
        config = LQRConfig.make("psm", "paper", seed=tuning[0], distractors=DISTRACTORS, changes=changes)
        add_curves(out, name, config, tuning, OPTIMIZER_STEPS)
    for size in map(int, parse_names(sizes)):
        config = LQRConfig.make("ipo", "paper", seed=numbers[0], distractors=size)
        add_curves(out, f"ipo {size}", config, numbers, STEPS)


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
