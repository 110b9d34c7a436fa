"""Stored runs without files, for tests of tables and figures."""

from pathlib import Path

from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.jumping.experiment import Jumping
from pisces.experiments.lqr.config import LQRConfig
from pisces.experiments.lqr.experiment import LQR
from pisces.reports.results import StoredRun


def stored_run(experiment, config, **values):
    return StoredRun(Path("x"), experiment, config, {"config": config.as_dict(), **values})


def jumping_run(method, seed=0, preset="paper", values=None, **arguments):
    """A run of the jumping task; `arguments` are those of its config."""
    return stored_run(Jumping(), JumpingConfig.make(method, preset, seed=seed, **arguments), **(values or {}))


def lqr_config(method, distractors=500, seeds=(0,), preset="paper", **arguments):
    return LQRConfig.make(method, preset, seed=seeds[0], n_seeds=len(seeds), distractors=distractors, **arguments)


def lqr_result(config, errors):
    rows = [
        {
            "seed": seed,
            "error": error,
            "cost": None if error is None else 27.4 + error,
            "oracle_cost": 27.4,
            "train_error": 0.1,
            "validation_error": error,
            "state_norm": 20.0,
            "distractor_norm": 0.1,
            "column_norms": [4.0] * 20 + [0.01] * config.distractors,
        }
        for seed, error in zip(config.seeds, errors, strict=True)
    ]
    return {"config": config.as_dict(), "runs": rows}


def lqr_runs(config, errors):
    """The runs of one cell, seed by seed as reports see them."""
    parts = LQR().split(lqr_result(config, errors))
    return [StoredRun(Path("x"), LQR(), LQRConfig.from_dict(part["config"]), part) for part in parts]
