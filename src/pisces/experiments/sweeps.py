"""Sweeps: lists of configs from a few words, to be run by an engine."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pisces.errors import UserError
from pisces.experiments.engine import Job
from pisces.experiments.jumping import EXPERIMENT, make_config
from pisces.experiments.registry import experiment


def parse_seeds(text: str) -> list[int]:
    """Reads seeds such as ``0-9``, ``3`` or ``0-4,8,10-12``."""
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", part)
        if match is None:
            raise UserError(f"expected seeds such as 0-9 or 0,3,5, got {text!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise UserError(f"expected a range of seeds that grows, got {part.strip()!r}; write {last}-{first}")
        seeds += range(first, last + 1)
    return list(dict.fromkeys(seeds))


def parse_names(text: str) -> list[str]:
    """Reads names that are separated by commas."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UserError(f"expected names separated by commas, got {text!r}")
    return names


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
