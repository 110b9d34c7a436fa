"""The demo: RandConv without and with policy similarity embeddings, each at its own learning rate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pisces.errors import UserError
from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.jumping.experiment import Jumping
from pisces.metrics.exact.workers import usable_cores
from pisces.runs.job import Job
from pisces.runs.progress import Progress
from pisces.runs.sweep import SweepState, sweep

METHODS, PRESET = ("randconv", "randconv+pse"), "quick"
CHANGES: Mapping[str, Any] = {"epochs": 750, "evaluations": 10}
"""Shortens the runs of the preset: RandConv + PSE, the slower one, ends within five minutes on a core of its own."""
MOST_SEEDS = 5
NOTE = (
    "{seeds} per method {are} an illustration, not evidence: single runs differ widely. The runs are shorter "
    "than the paper's. The documentation's tables average over many seeds of full length. Each method has the learning "
    "rate that the paper chose for it."
)


def default_seeds() -> int:
    """Returns how many runs of each method fit into the time of one: two cores train one run of each."""
    return max(1, min(MOST_SEEDS, usable_cores() // len(METHODS)))


def demo_configs(seed: int, seeds: int, preset: str = PRESET) -> list[JumpingConfig]:
    """Returns the runs that the demo compares, those of a seed together."""
    if seeds < 1:
        raise UserError(f"--seeds must be at least 1, got {seeds}")
    changes = CHANGES if preset == PRESET else {}
    numbers = range(seed, seed + seeds)
    return [
        JumpingConfig.make(method, preset, seed=number, changes=changes) for number in numbers for method in METHODS
    ]


def demo_note(seeds: int) -> str:
    """Returns how to read the demo's page."""
    return NOTE.format(seeds="One run" if seeds == 1 else f"{seeds} runs", are="is" if seeds == 1 else "are")


def run_demo(
    out: str | Path,
    configs: Sequence[JumpingConfig],
    report: Callable[[int, Progress], None] | None = None,
) -> None:
    """Trains the agents, as many at once as there are cores, or resumes them.

    Args:
        out: root of the run folders.
        configs: the runs.
        report: called with the place of a config and its progress.
    """
    jobs = [Job(Jumping(), config) for config in configs]

    def show(state: SweepState) -> None:
        for index, progress in state.running.items():
            if report is not None and progress is not None:
                report(index, progress)

    workers = max(len(METHODS), min(len(jobs), usable_cores()))
    state = sweep(jobs, out, workers, report=show)
    for path in state.failed.values():
        raise UserError(f"a run of the demo failed; see {path}")


def solved_percent(row: Mapping[str, Any]) -> float:
    """Returns the percentage of unseen tasks that an evaluation found solved."""
    return float(row["test_solved_percent"])
