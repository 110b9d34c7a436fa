"""The demo: the same agent without and with policy similarity embeddings, trained side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pisces.experiments.engine import run_all
from pisces.experiments.jumping import EXPERIMENT, JumpingConfig, make_config
from pisces.experiments.store import RunFolder

if TYPE_CHECKING:
    from pisces.experiments.jumping_run import Progress

METHOD, PRESET = "pse", "quick"


def demo_configs(seed: int, preset: str = PRESET) -> tuple[JumpingConfig, JumpingConfig]:
    """The two runs that the demo compares: they differ in the auxiliary loss alone."""
    without = make_config(METHOD, "wide", seed, preset, changes={"auxiliary": "none"})
    return without, make_config(METHOD, "wide", seed, preset)


def run_demo(
    out: str | Path,
    seed: int = 0,
    preset: str = PRESET,
    report: Callable[[int, Progress], None] = lambda index, progress: None,
) -> tuple[RunFolder, RunFolder]:
    """Trains both agents at once, or goes on with them, and returns their run folders."""
    configs = demo_configs(seed, preset)
    folders = [RunFolder.open(out, EXPERIMENT, config.method, config) for config in configs]
    run_all([config for config, folder in zip(configs, folders, strict=True) if not folder.finished], out, report)
    return folders[0], folders[1]
