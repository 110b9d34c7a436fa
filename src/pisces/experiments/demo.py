"""The demo: the same agent without and with policy similarity embeddings, trained side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pisces.experiments.engine import Job, SweepState, sweep
from pisces.experiments.jumping import EXPERIMENT, JumpingConfig, make_config
from pisces.experiments.progress import Progress
from pisces.experiments.registry import experiment
from pisces.experiments.store import RunFolder

METHOD, PRESET = "pse", "quick"


def demo_configs(seed: int, preset: str = PRESET) -> tuple[JumpingConfig, JumpingConfig]:
    """The two runs that the demo compares: they differ in the auxiliary loss alone."""
    without = make_config(METHOD, "wide", seed, preset, changes={"auxiliary": "none"})
    return without, make_config(METHOD, "wide", seed, preset)


def run_demo(
    out: str | Path, seed: int = 0, preset: str = PRESET, report: Callable[[int, Progress], None] | None = None
) -> tuple[RunFolder, RunFolder]:
    """Trains both agents at once, or goes on with them, and returns their run folders."""
    configs = demo_configs(seed, preset)
    jumping = experiment(EXPERIMENT)

    def tell(state: SweepState) -> None:
        for index, progress in state.running.items():
            if report is not None and progress is not None:
                report(index, progress)

    state = sweep([Job(jumping, config) for config in configs], out, len(configs), tell)
    for path in state.failed.values():
        raise RuntimeError(f"a run of the demo failed: {path.read_text()}")
    without, with_pse = (jumping.folder(config, out) for config in configs)
    return without, with_pse
