"""The variants of the jumping task's methods that the study's tables compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jumping_study import FEWER_TASKS
from pisces.experiments.jumping.report.tables import published_changes


@dataclass(frozen=True)
class Variant:
    """Runs that a table compares with others."""

    label: str
    """What the table calls it."""
    method: str
    """The method."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """What its runs override."""
    grid: str = "wide"
    """The grid."""


MAIN: Sequence[Variant] = tuple(Variant(f"`{method}`", method) for method in ("randconv", "randconv+pse"))
PASSTHROUGH: Sequence[Variant] = (
    Variant("sampled at every call (ours)", "randconv"),
    Variant("sampled once per run (the published code)", "randconv", {"passthrough_per": "run"}),
    Variant("always augmented", "randconv", {"passthrough_probability": 0.0}),
)
PASSTHROUGH_WITH_PSES: Sequence[Variant] = (
    Variant("with PSEs, sampled at every call (ours)", "randconv+pse"),
    Variant("with PSEs, sampled once per run (the published code)", "randconv+pse", {"passthrough_per": "run"}),
)
LOSS: Sequence[Variant] = (
    Variant("Eq. 4, both directions, discount 0.999", "randconv+pse"),
    Variant("without weights", "randconv+pse", {"weighted": False}),
    Variant("one direction", "randconv+pse", {"symmetric": False}),
    Variant("both directions, half the coefficient", "randconv+pse", {"coefficient": 2.5}),
    Variant("discount 0.99", "randconv+pse", {"discount": 0.99}),
)
COLOR_VARIANTS: Sequence[Variant] = (
    Variant("RandConv, network and kernels of the published code", "randconv", published_changes("randconv")),
    Variant("RandConv, kernels of the published code", "randconv", {"kernels": "rows"}),
    Variant("Dropout and l2 reg., network of the published code", "dropout+l2", published_changes("dropout+l2")),
    Variant(
        "RandConv + PSEs, network and kernels of the published code", "randconv+pse", published_changes("randconv+pse")
    ),
    Variant("PSEs, network of the published code", "pse", published_changes("pse")),
    Variant("`randconv+shift` without RandConv", "randconv+shift", {"augmentation": "none"}),
)
RECIPE: Sequence[Variant] = (
    Variant("`randconv+shift`: RandConv, shifts, cosine", "randconv+shift"),
    Variant("with the border shifted too", "randconv+shift", {"shift_border": 0}),
    Variant("without shifts", "randconv+shift", {"shift": 0}),
    Variant("without RandConv", "randconv+shift", {"augmentation": "none"}),
    Variant("without the cosine", "randconv+shift", {"schedule": "exponential"}),
    Variant("with PSEs", "randconv+shift", {"auxiliary": "contrastive", "temperature": 0.5}),
    Variant("`randconv+shift` on the narrow grid", "randconv+shift", grid="narrow"),
    Variant("narrow grid, with the border shifted too", "randconv+shift", {"shift_border": 0}, "narrow"),
    Variant("`pse-tuned`: PSEs and a cosine, no augmentation", "pse-tuned"),
    Variant("`pse-tuned` without PSEs", "pse-tuned", {"auxiliary": "none"}),
    Variant("`pse-tuned-5`: five training runs, the best on validation tasks kept", "pse-tuned-5"),
)
GAINS: Sequence[tuple[Variant, Variant]] = (
    (Variant("RandConv, wide grid", "randconv"), Variant("", "randconv+pse")),
    *(
        (Variant(f"RandConv, {count} training tasks", "randconv", changes), Variant("", "randconv+pse", changes))
        for count, changes in ((count, {"training_tasks": count}) for count in reversed(FEWER_TASKS))
    ),
    *(
        (Variant(f"RandConv, {grid} grid", "randconv", {}, grid), Variant("", "randconv+pse", {}, grid))
        for grid in ("narrow", "random")
    ),
    *(
        (Variant(f"no augmentation, {grid} grid", "dropout+l2", {}, grid), Variant("", "pse", {}, grid))
        for grid in ("wide", "narrow", "random")
    ),
    (
        Variant("no augmentation, our settings, wide grid", "pse-tuned", {"auxiliary": "none"}),
        Variant("", "pse-tuned"),
    ),
    (
        Variant("RandConv and shifts, wide grid", "randconv+shift"),
        Variant("", "randconv+shift", {"auxiliary": "contrastive", "temperature": 0.5}),
    ),
)
"""Methods without and with PSEs, otherwise alike or each at its own published settings."""
EARLY_GAINS = tuple(
    pair for pair in GAINS if not any(variant.changes for variant in pair) and pair[0].method != "randconv+shift"
)
"""Those of Table 1, of which agents from the middle of training are compared too."""
COLOR_GAINS: Sequence[tuple[Variant, Variant]] = (
    (Variant("red tasks, no augmentation", "dropout+l2"), Variant("", "pse")),
    (Variant("red tasks, RandConv", "randconv"), Variant("", "randconv+pse")),
    (
        Variant(
            "red tasks, no augmentation, network of the published code", "dropout+l2", published_changes("dropout+l2")
        ),
        Variant("", "pse", published_changes("pse")),
    ),
    (
        Variant(
            "red tasks, RandConv, network and kernels of the published code", "randconv", published_changes("randconv")
        ),
        Variant("", "randconv+pse", published_changes("randconv+pse")),
    ),
)
"""The same with colors, of which red tasks are counted."""
