"""The demo: the same agent without and with policy similarity embeddings, trained side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pisces.errors import UserError
from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.jumping.experiment import Jumping
from pisces.runs.job import Job
from pisces.runs.progress import Progress
from pisces.runs.store import RunFolder
from pisces.runs.sweep import SweepState, sweep

METHOD, PRESET = "randconv+pse", "quick"


def demo_configs(seed: int, preset: str = PRESET) -> tuple[JumpingConfig, JumpingConfig]:
    """Returns the two runs that the demo compares: they differ in the auxiliary loss alone."""
    without = JumpingConfig.make(METHOD, preset, seed=seed, changes={"auxiliary": "none"})
    return without, JumpingConfig.make(METHOD, preset, seed=seed)


def run_demo(
    out: str | Path, seed: int = 0, preset: str = PRESET, report: Callable[[int, Progress], None] | None = None
) -> tuple[RunFolder, RunFolder]:
    """Trains both agents at once, or resumes them, and returns their run folders."""
    jobs = [Job(Jumping(), config) for config in demo_configs(seed, preset)]

    def show(state: SweepState) -> None:
        for index, progress in state.running.items():
            if report is not None and progress is not None:
                report(index, progress)

    state = sweep(jobs, out, len(jobs), report=show)
    for path in state.failed.values():
        raise UserError(f"a run of the demo failed; see {path}")
    without, with_pse = (job.folder(out) for job in jobs)
    return without, with_pse
