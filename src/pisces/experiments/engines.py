"""The engines that run sweeps, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pisces.errors import UserError, unknown_name
from pisces.experiments.engine import Job, SweepState, sweep

ENGINES = ("local", "ray")


def run_sweep(
    engine: str,
    jobs: Sequence[Job],
    out: str | Path,
    workers: int,
    report: Callable[[SweepState], None],
    address: str | None = None,
) -> SweepState:
    """Runs a sweep with the engine of that name."""
    if engine not in ENGINES:
        raise unknown_name("engine", engine, ENGINES)
    if engine == "local":
        if address is not None:
            raise UserError("expected --address with --engine ray, got it with the local engine")
        return sweep(jobs, out, workers, report)
    from pisces.experiments.ray_engine import ray_sweep  # ray is an extra

    return ray_sweep(jobs, out, workers, report, address)
