"""The task with colors, tuned for a network that sees images: ``python studies/jumping_color_tuning.py --out results``.

Four methods are tuned with the same budget on the validation tasks, as the paper tunes its own (App. F), with a short
schedule and pruning; each is then trained with ten other seeds. About 6 hours on one core; rerun the command to resume.
One method's search alone: `pisces tune jumping --method pse --colors --schedule cosine --epochs 250 --evaluations 5
--seeds 1000 --trials 30`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tyro

from jumping_study import Batch
from jumping_tables import variant_values
from jumping_variants import Variant
from pisces.cli.sweep import SweepOptions, run_sweep
from pisces.errors import UserError
from pisces.experiments.jumping.experiment import Jumping
from pisces.experiments.jumping.report.tables import METHOD_NAMES
from pisces.experiments.registry import all_experiments
from pisces.reports.results import read_runs
from pisces.reports.tables import Cell, markdown
from pisces.runs.store import write_atomically
from pisces.runs.tuning import TuningConfig, tune

FILE = "color_settings.json"
METHODS = ("dropout+l2", "pse", "randconv", "randconv+pse")
SHORT = {"schedule": "cosine", "epochs": 250, "evaluations": 5}
"""An eighth of the published length."""
TUNING_SEED = 1000
COLORS = ("red", "green")

Settings = Mapping[str, Mapping[str, Any]]


def tuning_config(method: str) -> TuningConfig:
    """The search of one method's settings."""
    jumping = Jumping()
    options = {"grid": "wide", "colors": True}
    return TuningConfig(jumping, method, "paper", (TUNING_SEED,), jumping.search_space(method), SHORT, options)


def read_settings(root: Path) -> dict[str, dict[str, Any]]:
    """The settings that were found, by method; empty if there are none."""
    path = root / "jumping" / FILE
    return json.loads(path.read_text()) if path.is_file() else {}


def tuned_batch(method: str, found: Settings, seeds: str = "0-9") -> Batch:
    """The runs of a method with the settings that were found for it."""
    return Batch((method,), seeds=seeds, colors=True, changes={**SHORT, **found[method]["settings"]})


def find_settings(method: str, trials: int, workers: int, studies: Path) -> dict[str, Any]:
    """Searches, or resumes the search; returns the best settings, rounded to three digits, and their score."""
    best = tune(tuning_config(method), studies, trials, workers).state().best
    if best is None:
        raise UserError(f"no trial of {method} has a score yet; {studies} lists their errors")
    settings = {name: float(f"{v:.3g}") if isinstance(v, float) else v for name, v in best.settings.items()}
    return {"settings": settings, "validation_solved_percent": best.score, "trials": trials}


def tuned_table(root: Path) -> str:
    """Unseen tasks solved with the settings that were found."""
    found = read_settings(root)
    if not found:
        return "Not tuned yet.\n"
    runs = read_runs([root / "jumping" / method for method in found], all_experiments()).of("jumping")
    rows = []
    for method, own in found.items():
        variant = Variant("", method, tuned_batch(method, found).configs()[0].changes)
        values = [variant_values(runs, variant, f"{color}_test_solved_percent", colors=True) for color in COLORS]
        score = own["validation_solved_percent"]
        rows.append([METHOD_NAMES[method], f"{score:.1f}", *(Cell(value).ours() for value in values)])
    return markdown(["method", "validation tasks while tuning (%)", "red (%)", "green (%)"], rows)


def main(trials: int = 30, workers: int = 2, studies: Path = Path("tuning"), out: Path = Path("results")) -> None:
    """Tune four methods on the task with colors, then train each with ten seeds.

    Args:
        trials: Trials per method.
        workers: Number of worker processes.
        studies: Root of the tuning studies.
        out: Root of the results.
    """
    found = read_settings(out)
    for method in METHODS:
        if found.get(method, {}).get("trials") != trials:
            found[method] = find_settings(method, trials, workers, studies)
            path = out / "jumping" / FILE
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(found, indent=1) + "\n")
    configs = [config for method in METHODS for config in tuned_batch(method, found).configs()]
    run_sweep(Jumping(), configs, SweepOptions(workers=workers, out=out))


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
