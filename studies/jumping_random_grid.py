"""Bisimulation transfer on many random grids, for docs/reproduction.md: ``python studies/jumping_random_grid.py``.

Which number of distinct training positions gives the published result, and which way of sampling gives that number.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from numpy.typing import NDArray

from pisces.cli.lists import parse_seeds
from pisces.envs.jumping import JumpingTask, split_tasks
from pisces.envs.jumping.grids import GRID_HEIGHTS, GRID_POSITIONS, TRAINING_TASKS
from pisces.experiments.jumping.bisimulation_transfer import transferred_actions
from pisces.experiments.jumping.config import TransferSettings
from pisces.experiments.jumping.paper import JUMPING
from pisces.experiments.jumping.tasks import is_solved
from pisces.reports.tables import markdown
from pisces.runs.store import write_atomically

FILE = "random_grid.json"
SAMPLES = 20_000
"""Samples of each way of sampling grids; the mean's standard error is below 0.05."""
SCHEMES: Mapping[str, tuple[int, int]] = {
    "18 tasks, positions from all 26 (ours)": (TRAINING_TASKS, len(GRID_POSITIONS)),
    "11 tasks, positions from all 26": (11, len(GRID_POSITIONS)),
    "18 tasks, positions from 11 values": (TRAINING_TASKS, 11),
}
"""Ways of sampling a random grid, with replacement: number of tasks, number of positions to choose from."""


def solved_percent(positions: Iterable[int], distinct_tasks: int) -> float:
    """Unseen tasks that transfer solves if it solves exactly those at trained positions, in percent."""
    solved = len(set(positions)) * len(GRID_HEIGHTS) - distinct_tasks
    return 100 * solved / (len(GRID_POSITIONS) * len(GRID_HEIGHTS) - distinct_tasks)


def transfer_solves(train: Sequence[int], discount: float) -> list[int]:
    """The positions whose tasks bisimulation transfer solves; the floor's height does not matter to it."""
    known = [JumpingTask(position, 10) for position in train]
    tests = [JumpingTask(position, 10) for position in GRID_POSITIONS]
    return [task.obstacle_position for task in tests if is_solved(task, transferred_actions(task, known, discount))]


def measure(seed: int) -> dict[str, Any]:
    """Bisimulation transfer on the random grid of a seed."""
    train = split_tasks("random", seed).train
    positions = sorted({task.obstacle_position for task in train})
    return {
        "seed": seed,
        "positions": len(positions),
        "tasks": len(train),
        "solved_percent": solved_percent(positions, len(train)),
        "solves_trained_positions_only": transfer_solves(positions, TransferSettings().discount) == positions,
    }


def sample_scheme(tasks: int, choices: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Distinct positions and the solved percentage of sampled grids, [SAMPLES, 2]."""
    positions, heights = rng.integers(choices, size=(SAMPLES, tasks)), rng.integers(11, size=(SAMPLES, tasks))
    found = []
    for p, h in zip(positions.tolist(), heights.tolist(), strict=True):
        found.append((len(set(p)), solved_percent(p, len(set(zip(p, h, strict=True))))))
    return np.array(found)


def random_grid_table(root: Path) -> str:
    """Distinct positions and tasks solved by the way of sampling, as the script measured them."""
    path = root / "jumping" / FILE
    if not path.is_file():
        return "Not measured yet.\n"
    content = json.loads(path.read_text())
    draws, rows = content["draws"], []
    solved = [draw["solved_percent"] for draw in draws]
    counts = [draw["positions"] for draw in draws]
    rows.append([f"{len(draws)} seeds of our grid", *_spread(counts), *_spread(solved), f"{min(solved):.1f}"])
    for scheme in content["schemes"]:
        numbers = [f"{scheme[name]:.1f}" for name in ("positions", "positions_std", "solved", "solved_std", "smallest")]
        rows.append([scheme["label"], *numbers])
    mean, std = content["published"]
    rows.append(["the paper", "", "", f"{mean:.1f}", f"{std:.1f}", ""])
    header = ["grids", "distinct positions", "std", "unseen tasks solved (%)", "std", "fewest solved (%)"]
    return markdown(header, rows)


def _spread(values: Sequence[float]) -> list[str]:
    return [f"{np.mean(values):.1f}", f"{np.std(values, ddof=1):.1f}"]


def main(seeds: str = "0-99", out: Path = Path("results")) -> None:
    """Run bisimulation transfer on many random grids, in a few minutes.

    Args:
        seeds: Seeds of the grids.
        out: Root of the results.
    """
    draws = [measure(seed) for seed in parse_seeds(seeds)]
    schemes, rng = [], np.random.default_rng(0)
    for label, (tasks, choices) in SCHEMES.items():
        found = sample_scheme(tasks, choices, rng)
        (positions, solved), (positions_std, solved_std) = found.mean(axis=0), found.std(axis=0, ddof=1)
        numbers = {"positions": positions, "positions_std": positions_std, "solved": solved, "solved_std": solved_std}
        schemes.append({"label": label, **numbers, "smallest": found[:, 1].min()})
    published = JUMPING["bisimulation-transfer"]["random"]
    content = {"draws": draws, "schemes": schemes, "published": [published.mean, published.deviation]}
    path = out / "jumping" / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(content, indent=1, sort_keys=True) + "\n")
    print(path)


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
