"""Sweeps: lists of configs from a few words, to be run by an engine."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from pisces.experiments import distracting, grid_transfer
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


def distracting_jobs(
    tasks: Sequence[str],
    methods: Sequence[str],
    inits: Sequence[str],
    seeds: Sequence[int],
    preset: str = "paper",
    variant: str = "paper",
    davis: str = "",
    threads: int = 1,
    changes: Mapping[str, Any] | None = None,
) -> list[Job]:
    """All combinations, seed by seed and within a seed those first that others build on.

    A seed's `drq` from random weights is the pretraining run of its other jobs. Whichever job comes first trains it;
    the others wait for it or, if it is done, use it. Settings of the policy similarity loss leave `drq` as it is.
    """
    jobs = []
    for seed, task, init, method in itertools.product(seeds, tasks, inits, methods):
        foreign = distracting.AUXILIARY_SETTINGS if method == "drq" else ()
        own = {name: value for name, value in (changes or {}).items() if name not in foreign}
        config = distracting.make_config(method, task, seed, preset, init, variant, davis, threads, own)  # type: ignore[arg-type]
        jobs.append(Job(experiment(distracting.EXPERIMENT), config))
    place = {seed: index for index, seed in enumerate(seeds)}
    return sorted(jobs, key=lambda job: _order(job.config, place))


def _order(config: Any, place: Mapping[int, int]) -> tuple[int, bool]:
    return place[config.seed], config.needs_pretraining


def grid_jobs(
    methods: Sequence[str], seeds: Sequence[int], preset: str = "standard", changes: Mapping[str, Any] | None = None
) -> list[Job]:
    """All combinations, seed by seed."""
    return [
        Job(experiment(grid_transfer.EXPERIMENT), grid_transfer.make_config(method, seed, preset, changes))
        for seed, method in itertools.product(seeds, methods)
    ]
