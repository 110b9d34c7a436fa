"""One run at the paper's size, limited to about 90 minutes on one core: ``python studies/distracting_paper_size.py``.

It shows that the preset `paper` works, and what an update costs; far more steps need a GPU. The paper's learning
curves are a figure without numbers, so the table ends with its result after 500,000 steps.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from pisces.cli.sweep import SweepOptions, run_sweep
from pisces.experiments.distracting.config import DistractingConfig
from pisces.experiments.distracting.experiment import Distracting
from pisces.experiments.distracting.paper import DISTRACTING
from pisces.experiments.distracting.tables import NO_RUNS
from pisces.reports.results import StoredRun
from pisces.reports.tables import markdown

TASK, METHOD = "cartpole-swingup", "drq"
SHORT: Mapping[str, Any] = {
    "steps": 11_600,
    "evaluations": 3,
    "evaluation_episodes": 2,
    "train_episodes": 2,
    "final_episodes": 30,
}
"""The paper's protocol, shortened; the agent's settings are the paper's."""


def paper_size_config() -> DistractingConfig:
    """The run."""
    return DistractingConfig.make(METHOD, "paper", seed=0, task=TASK, changes=SHORT)


def paper_size_table(runs: Sequence[StoredRun]) -> str:
    """Returns along the run, and the paper's after its 500,000 steps."""
    wanted = paper_size_config().identity()
    found = [run for run in runs if run.config.identity() == wanted and run.curve]
    if not found:
        return NO_RUNS
    run = found[0]
    rows = [
        [f"{row['step']:,}", f"{row['updates']:,}", f"{row['train_return']:.0f}", f"{row['test_return']:.0f}"]
        for row in run.curve
    ]
    final = [f"{run.curve[-1]['step']:,}, 30 test videos", f"{run.curve[-1]['updates']:,}"]
    rows.append([*final, f"{run['train_return']:.0f}", f"{run['test_return']:.0f}"])
    rows.append(["500,000, the paper", "62,000", "–", f"{DISTRACTING['random', METHOD][TASK].mean:.0f}"])
    hours = "" if run.seconds is None else f"One run, seed 0, {run.seconds / 60:.0f} minutes on one core.\n\n"
    return hours + markdown(["environment steps", "updates", "training videos", "unseen videos"], rows)


def main(
    common: Annotated[SweepOptions, tyro.conf.arg(name="")] = SweepOptions(workers=1, out=Path("results")),  # noqa: B008 (frozen)
) -> None:
    """Train the run.

    Args:
        common: Where and how the run is done.
    """
    run_sweep(Distracting(), [paper_size_config()], common)


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
