"""Sweeps: lists of configs from a few words, to be run by an engine."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from pisces.experiments import grid_transfer
from pisces.experiments.engine import Job
from pisces.experiments.jumping import EXPERIMENT, make_config
from pisces.experiments.registry import experiment


def jumping_jobs(
    methods: Sequence[str],
    grids: Sequence[str],
    seeds: Sequence[int],
    preset: str = "paper",
    colors: bool = False,
    epsilons: Sequence[float] = (0.0,),
    training_tasks: Sequence[int] = (18,),
    changes: Mapping[str, Any] | None = None,
) -> list[Job]:
    """All combinations, seed by seed, so that a sweep that is stopped early has some seeds of everything."""
    jobs = []
    for seed, method, grid, epsilon, tasks in itertools.product(seeds, methods, grids, epsilons, training_tasks):
        config = make_config(method, grid, seed, preset, colors, epsilon, tasks, changes=changes)  # type: ignore[arg-type]
        jobs.append(Job(experiment(EXPERIMENT), config))
    return jobs


def grid_jobs(
    methods: Sequence[str], seeds: Sequence[int], preset: str = "standard", changes: Mapping[str, Any] | None = None
) -> list[Job]:
    """All combinations, seed by seed."""
    return [
        Job(experiment(grid_transfer.EXPERIMENT), grid_transfer.make_config(method, seed, preset, changes))
        for seed, method in itertools.product(seeds, methods)
    ]
