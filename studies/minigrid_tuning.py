"""Every method of cloning with settings of its own: ``python studies/minigrid_tuning.py --workers 2 --out results``.

Each method is tuned with the same number of trials on validation tasks of seeds that are not reported, on one family of
levels. Then it is trained with twenty other seeds on that family and, with the same settings, on another one. Rerun the
command to resume.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from scipy.stats import spearmanr

from pisces.cli.sweep import SweepOptions, run_sweep
from pisces.errors import UserError
from pisces.experiments.minigrid.config import Family, MiniGridConfig
from pisces.experiments.minigrid.experiment import MiniGrid
from pisces.experiments.minigrid.tables import AGREEMENT, MEASURE, agreement_table, gains_table, solved_table
from pisces.files import write_atomically
from pisces.reports.results import StoredRun, StoredRuns
from pisces.reports.tables import Table, markdown
from pisces.runs.search_space import Choice, Space
from pisces.runs.tuning import TuningConfig, tune

FILE = Path("minigrid/tuning.json")
OPTIONS: Mapping[str, Any] = {"shift": "appearance", "training_levels": 12, "training_themes": 3}
FAMILIES: tuple[Family, ...] = ("crossing", "doorkey")
"""Families of levels; settings are chosen on the first."""
TUNING_SEEDS, SEEDS = (1000, 1001, 1002), range(20)
TRIALS = 6
"""Trials per method: all combinations of its search space."""
NAMES = ("learning_rate", "auxiliary_rate")
NOT_TUNED = "No method has been tuned yet.\n"
PLAIN = ("bc", "bc+colors")
AUXILIARY = (
    *("bc+pse", "bc+pse-states", "bc+colors+pse", "bc+bisimulation", "bc+l2"),
    *("bc+curl", "bc+spr", "bc+deepmdp", "bc+simsr", "bc+mico", "bc+dbc"),
)
RATES = (3e-4, 1e-3, 2e-3, 3e-3, 5e-3, 1e-2)
"""Learning rates of methods without a loss, whose trials all go to the learning rate."""


def search_space(method: str) -> Space:
    """The settings that are tried, as many combinations for every method."""
    if method in PLAIN:
        return (Choice("learning_rate", RATES),)
    return (Choice("learning_rate", (3e-3, 5e-3)), Choice("auxiliary_rate", (3e-4, 1e-3, 3e-3)))


def tuning_config(method: str) -> TuningConfig:
    """The search of one method's settings."""
    space, options = search_space(method), {"threads": 1, "family": FAMILIES[0], **OPTIONS}
    return TuningConfig(MiniGrid(), method, "standard", TUNING_SEEDS, space, {}, options, "grid", "none")


def find_settings(method: str, workers: int, studies: Path) -> dict[str, Any]:
    """Searches, or resumes the search; returns the best settings, their score and all trials."""
    found = tune(tuning_config(method), studies, TRIALS, workers).state()
    if found.best is None:
        raise UserError(f"no trial of {method} has a score yet; {studies} lists their errors")
    trials = [{"settings": trial.settings, "score": trial.score} for trial in found.trials]
    return {"settings": found.best.settings, "score": found.best.score, "trials": trials}


def read_settings(root: Path) -> dict[str, Any]:
    """What tuning has found, by method; empty if nothing was tuned."""
    path = root / FILE
    return json.loads(path.read_text()) if path.is_file() else {}


def tuned_config(method: str, found: Mapping[str, Any], seed: int, family: Family = FAMILIES[0]) -> MiniGridConfig:
    """The run of a method with the settings that were found for it."""
    changes = found[method]["settings"]
    return MiniGridConfig.make(method, "standard", seed=seed, changes=changes, family=family, **OPTIONS)


def settings_table(root: Path) -> str:
    """The settings that were found, and the validation tasks that they and the worst ones solve."""
    rows = []
    for method, own in read_settings(root).items():
        scores = [trial["score"] for trial in own["trials"]]
        rates = [f"{own['settings'][name]:g}" if name in own["settings"] else "–" for name in NAMES]
        rows.append([f"`{method}`", *rates, f"{own['score']:.1f}", f"{min(scores):.1f}"])
    header = ["method", "learning rate", "rate of the loss", "best trial (%)", "worst trial (%)"]
    return markdown(header, rows) if rows else NOT_TUNED


def tuned(table: Callable[..., Table], runs: StoredRuns, root: Path) -> str:
    """A table of the runs with tuned settings."""
    found = read_settings(root)
    return table(runs.of("minigrid"), is_tuned(found)).body() if found else NOT_TUNED


def prediction_table(runs: StoredRuns, root: Path) -> str:
    """Spearman's correlation of agreement and tasks solved: across the means of methods, and among a method's runs."""
    rows = []
    for family, groups in tuned_runs(runs, root).items():
        for name, words in zip(AGREEMENT, ("rank correlation", "neighbor agreement"), strict=True):
            values = [np.array([(run[name], run[MEASURE]) for run in group], dtype=float) for group in groups.values()]
            if len(values) > 2:
                across = spearmanr(np.stack([own.mean(axis=0) for own in values])).statistic
                within = [spearmanr(own).statistic for own in values if len(own) > 2 and own.std(axis=0).all()]
                counts = f"{across:.2f} ({len(values)} methods)", f"{np.mean(within):.2f} ({len(within)} methods)"
                rows.append([family, words, *counts])
    header = ["levels", "measure on unseen tasks", "across methods", "among the seeds of a method, mean"]
    return markdown(header, rows) if rows else NOT_TUNED


def tuned_runs(runs: StoredRuns, root: Path) -> dict[str, dict[str, list[StoredRun]]]:
    """The runs with tuned settings, by family and method; empty if nothing was tuned."""
    found = read_settings(root)
    counted = list(filter(is_tuned(found), runs.of("minigrid")))
    groups: dict[str, dict[str, list[StoredRun]]] = {}
    for family, method in itertools.product(FAMILIES, found):
        own = [run for run in counted if (run.config.family, run.config.method) == (family, method)]
        if own:
            groups.setdefault(family, {})[method] = own
    return groups


TABLES: Mapping[str, Callable[[StoredRuns, Path], str]] = {
    "minigrid-prediction": prediction_table,
    "minigrid-tuned": partial(tuned, solved_table),
    "minigrid-tuned-gains": partial(tuned, gains_table),
    "minigrid-tuned-agreement": partial(tuned, agreement_table),
}
"""Name -> function of all runs and the root of the results."""


def is_tuned(found: Mapping[str, Any]) -> Callable[[StoredRun], bool]:
    """Returns a function that tells whether a run has the settings that were found for its method."""
    wanted = set(tuned_configs(found))
    return lambda run: run.config in wanted


def tuned_configs(found: Mapping[str, Any]) -> list[MiniGridConfig]:
    """All runs with the settings that were found, family by family."""
    cells = itertools.product(FAMILIES, SEEDS, found)
    return [tuned_config(method, found, seed, family) for family, seed, method in cells]


def main(workers: int = 2, studies: Path = Path("tuning"), out: Path = Path("results")) -> None:
    """Tune every method on one family of levels, then train each with twenty seeds on two.

    Args:
        workers: Number of worker processes.
        studies: Root of the tuning studies.
        out: Root of the results.
    """
    found = read_settings(out)
    for method in (*PLAIN, *AUXILIARY):
        if method not in found:
            found[method] = find_settings(method, workers, studies)
            (out / FILE).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(out / FILE, json.dumps(found, indent=1) + "\n")
    run_sweep(MiniGrid(), tuned_configs(found), SweepOptions(workers=workers, out=out))


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
