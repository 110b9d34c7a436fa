"""What each choice of the preset `cpu` gives: ``python studies/distracting_ablation.py --workers 1 --out results``.

Every variant changes one choice. Seeds are not those of Table 3, and unseen videos are the validation videos, so that
nothing is chosen on what is reported.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import tyro

from pisces.cli.sweep import SweepOptions, run_sweep
from pisces.experiments.distracting.config import DistractingConfig
from pisces.experiments.distracting.experiment import Distracting
from pisces.experiments.distracting.tables import NO_RUNS
from pisces.reports.results import StoredRun
from pisces.reports.tables import escape_markdown, markdown

TASK, SEEDS = "cartpole-swingup", (1000, 1001)
COMMON: Mapping[str, Any] = {"unseen_videos": "validation", "final_episodes": 10}
VARIANTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "the preset": ("drq", {}),
    "two views of each observation": ("drq", {"views": 2}),
    "a target with its own convolutions": ("drq", {"target_convolutions": True}),
    "new views for the actor": ("drq", {"reuse_features": False}),
    "no LayerNorm in the critic": ("drq", {"critic_norm": False}),
    "the actor at every second update": ("drq", {"actor_frequency": 2}),
    "sums of rewards": ("drq", {"average_rewards": False}),
    "one-step targets": ("drq", {"return_steps": 1}),
    "frames of 32 pixels": ("drq", {"frame_size": 32, "supersampling": 3, "padding": 1}),
    "frames drawn without supersampling": ("drq", {"supersampling": 1}),
    "DrQ-v2": ("drqv2", {}),
}
"""Words -> method and changed settings."""


def ablation_configs() -> list[DistractingConfig]:
    """All variants, seed by seed."""
    return [
        DistractingConfig.make(method, "cpu", seed=seed, task=TASK, changes={**COMMON, **changes})
        for seed in SEEDS
        for method, changes in VARIANTS.values()
    ]


def ablation_table(runs: Sequence[StoredRun]) -> str:
    """The returns of every variant that was run, and how long a run took."""
    rows = []
    for words, (method, changes) in VARIANTS.items():
        found = [run for run in runs if _is_variant(run.config, method, changes)]
        if found:
            times = [run.seconds / 60 for run in found if run.seconds is not None]
            returns = [f"{fmean(float(run[name]) for run in found):.0f}" for name in ("train_return", "test_return")]
            rows.append([words, str(len(found)), *returns, f"{fmean(times):.0f}" if times else "–"])
    header = ["variant", "seeds", "training videos", "validation videos", "minutes"]
    return markdown(header, [list(map(escape_markdown, row)) for row in rows]) if rows else NO_RUNS


def _is_variant(config: DistractingConfig, method: str, changes: Mapping[str, Any]) -> bool:
    wanted = DistractingConfig.make(method, "cpu", seed=config.seed, task=TASK, changes={**COMMON, **changes})
    return config.identity() == wanted.identity()


def main(
    common: Annotated[SweepOptions, tyro.conf.arg(name="")] = SweepOptions(out=Path("results")),  # noqa: B008 (frozen)
) -> None:
    """Train all variants of the preset.

    Args:
        common: Where and how the runs are done.
    """
    run_sweep(Distracting(), ablation_configs(), common)


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
