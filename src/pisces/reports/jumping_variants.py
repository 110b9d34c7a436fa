"""The variants of the jumping task's methods that the study's tables compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pisces.experiments.jumping_study import FEWER_TASKS
from pisces.reports.jumping_tables import published_study


class Variant(NamedTuple):
    """Runs that a table compares with others."""

    label: str
    """What the table calls it."""
    method: str
    """The method."""
    study: str = ""
    """The study that its runs carry."""
    grid: str = "wide"
    """The grid."""


MAIN: Sequence[Variant] = tuple(Variant(f"`{method}`", method) for method in ("randconv", "randconv+pse"))
COIN: Sequence[Variant] = (
    Variant("a coin at every call (ours)", "randconv"),
    Variant("one coin per run (the published code)", "randconv", "coin=run"),
    Variant("always augmented", "randconv", "pass_probability=0.0"),
)
COIN_WITH_PSES: Sequence[Variant] = (
    Variant("with PSEs, a coin at every call (ours)", "randconv+pse"),
    Variant("with PSEs, one coin per run (the published code)", "randconv+pse", "coin=run"),
)
LOSS: Sequence[Variant] = (
    Variant("Eq. 4, both directions, discount 0.999", "randconv+pse"),
    Variant("without weights", "randconv+pse", "weighted=False"),
    Variant("one direction", "randconv+pse", "symmetric=False"),
    Variant("both directions, half the coefficient", "randconv+pse", "coefficient=2.5"),
    Variant("discount 0.99", "randconv+pse", "discount=0.99"),
)
COLOR_VARIANTS: Sequence[Variant] = (
    Variant("RandConv, network and kernels of the published code", "randconv", published_study("randconv")),
    Variant("RandConv, kernels of the published code", "randconv", "kernels=rows"),
    Variant("Dropout and l2 reg., network of the published code", "dropout+l2", published_study("dropout+l2")),
    Variant(
        "RandConv + PSEs, network and kernels of the published code", "randconv+pse", published_study("randconv+pse")
    ),
    Variant("PSEs, network of the published code", "pse", published_study("pse")),
    Variant("our recipe `pisces` without RandConv", "pisces", "augmentation=none"),
)
RECIPE: Sequence[Variant] = (
    Variant("`pisces`: RandConv, shifts, cosine", "pisces"),
    Variant("with the border shifted too", "pisces", "shift_border=0"),
    Variant("without shifts", "pisces", "shift=0"),
    Variant("without RandConv", "pisces", "augmentation=none"),
    Variant("without the cosine", "pisces", "schedule=exponential"),
    Variant("with PSEs", "pisces", "auxiliary=contrastive,temperature=0.5"),
    Variant("`pisces` on the narrow grid", "pisces", grid="narrow"),
    Variant("narrow grid, with the border shifted too", "pisces", "shift_border=0", "narrow"),
    Variant("`pisces-plain`: PSEs and a cosine, no augmentation", "pisces-plain"),
    Variant("`pisces-plain` without PSEs", "pisces-plain", "auxiliary=none"),
    Variant("`pisces-plain-5`: five trainings, the best on validation tasks kept", "pisces-plain-5"),
)
GAINS: Sequence[tuple[Variant, Variant]] = (
    (Variant("RandConv, wide grid", "randconv"), Variant("", "randconv+pse")),
    *(
        (Variant(f"RandConv, {count} training tasks", "randconv", study), Variant("", "randconv+pse", study))
        for count, study in ((count, f"training_tasks={count}") for count in reversed(FEWER_TASKS))
    ),
    *(
        (Variant(f"RandConv, {grid} grid", "randconv", "", grid), Variant("", "randconv+pse", "", grid))
        for grid in ("narrow", "random")
    ),
    *(
        (Variant(f"no augmentation, {grid} grid", "dropout+l2", "", grid), Variant("", "pse", "", grid))
        for grid in ("wide", "narrow", "random")
    ),
    (
        Variant("no augmentation, our settings, wide grid", "pisces-plain", "auxiliary=none"),
        Variant("", "pisces-plain"),
    ),
    (
        Variant("RandConv and shifts, wide grid", "pisces"),
        Variant("", "pisces", "auxiliary=contrastive,temperature=0.5"),
    ),
)
"""Methods without and with PSEs, otherwise alike or each at its own published settings."""
EARLY_GAINS = tuple(pair for pair in GAINS if not any(variant.study for variant in pair) and pair[0].method != "pisces")
"""Those of Table 1, of which agents from the middle of training are compared too."""
COLOR_GAINS: Sequence[tuple[Variant, Variant]] = (
    (Variant("red tasks, no augmentation", "dropout+l2"), Variant("", "pse")),
    (Variant("red tasks, RandConv", "randconv"), Variant("", "randconv+pse")),
    (
        Variant(
            "red tasks, no augmentation, network of the published code", "dropout+l2", published_study("dropout+l2")
        ),
        Variant("", "pse", published_study("pse")),
    ),
    (
        Variant(
            "red tasks, RandConv, network and kernels of the published code", "randconv", published_study("randconv")
        ),
        Variant("", "randconv+pse", published_study("randconv+pse")),
    ),
)
"""The same with colours, of which red tasks are counted."""
