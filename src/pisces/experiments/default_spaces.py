"""What `pisces tune` searches if it is not told: the space of every method of every experiment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pisces.errors import unknown_name
from pisces.experiments import distracting, grid_transfer, jumping, lqr
from pisces.experiments.search_space import Choice, Range, Space


def jumping_space(method: str) -> Space:
    """The step size, and what the method's losses have."""
    settings = _method(method, jumping.METHODS)
    space: list[Range] = [Range("learning_rate", 2e-4, 2e-2, log=True)]
    if settings.l2_coefficient:
        space.append(Range("l2_coefficient", 1e-6, 1e-2, log=True))
    if settings.dropout:
        space.append(Range("dropout", 0.0, 0.6))
    if settings.auxiliary == "contrastive":
        space += [Range("temperature", 0.05, 2.0, log=True), Range("scale", 1e-3, 1.0, log=True)]
        space.append(Range("coefficient", 0.1, 30.0, log=True))
    if settings.auxiliary == "l2":
        space.append(Range("coefficient", 1e-7, 1.0, log=True))
    return tuple(space)


def lqr_space(method: str) -> Space:
    """The step size, and the weight of the method's penalty."""
    settings = _method(method, lqr.METHODS)
    rate = Range("learning_rate", 1e-4, 1e-2, log=True)
    if settings.aggregation:
        return (Range("aggregation", 1e3, 1e9, log=True), rate)
    return (Range("sparsity", 1e-7, 1e-3, log=True), rate) if settings.sparsity else (rate,)


def distracting_space(method: str) -> Space:
    """For drq+pse the paper's grid (App. H, arXiv:2101.05265); for drq the step size."""
    if _method(method, distracting.METHODS):
        return (Choice("temperature", (0.01, 0.1, 1.0)), Choice("coefficient", (1.0, 3.0, 10.0)))
    return (Choice("learning_rate", (3e-4, 1e-3, 3e-3)),)


def grid_space(method: str) -> Space:
    """PPO's step size, and for ppo+pse what the callback and its metric have."""
    space = [Range("learning_rate", 2e-4, 5e-3, log=True)]
    if _method(method, grid_transfer.METHODS).similarity_rate:
        space += [Range("similarity_rate", 1e-4, 1e-2, log=True), Range("updates", 1, 12, log=True, whole=True)]
        space += [Range("temperature", 0.05, 2.0, log=True), Range("scale", 1e-2, 10.0, log=True)]
        space.append(Range("match_within", 1e-3, 0.5, log=True))
    return tuple(space)


def _method(name: str, methods: Mapping[str, Any]) -> Any:
    if name not in methods:
        raise unknown_name("method", name, methods)
    return methods[name]
