"""The losses on transitions by name."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch

from pisces.errors import UserError, unknown_name
from pisces.losses.behavioral import BehavioralLoss
from pisces.losses.curl import CURLLoss
from pisces.losses.dbc import DBCLoss
from pisces.losses.deepmdp import DeepMDPLoss
from pisces.losses.mico import MICoLoss
from pisces.losses.self_prediction import SelfPredictionLoss
from pisces.losses.simsr import SimSRLoss

LOSSES: Mapping[str, tuple[type[BehavioralLoss], Mapping[str, Any]]] = {
    "dbc": (DBCLoss, {}),
    "dbc-normalized": (DBCLoss, {"norm": 2.0, "reward_range": 1.0}),
    "deepmdp": (DeepMDPLoss, {}),
    "mico": (MICoLoss, {}),
    "simsr": (SimSRLoss, {}),
    "spr": (SelfPredictionLoss, {}),
    "curl": (CURLLoss, {}),
}
"""The class of each loss, and options in which it differs from the class's defaults."""


def make_loss(
    name: str, feature_size: int, action_size: int, *, generator: torch.Generator | None = None, **options: Any
) -> BehavioralLoss:
    """Creates a loss on transitions by name.

    Example:
        >>> loss = make_loss("mico", feature_size=8, action_size=4, discount=0.9)
        >>> loss.uses_target
        True

    Args:
        name: one of `LOSSES`.
        feature_size: width of the encoder's features.
        action_size: number of actions, or entries of a continuous one.
        generator: draws the initial weights of the loss's heads.
        options: of the loss's class.
    """
    if name not in LOSSES:
        raise unknown_name("loss", name, LOSSES)
    kind, defaults = LOSSES[name]
    known = list(inspect.signature(kind).parameters)[2:-1]
    for option in options:
        if option not in known:
            raise UserError(f"loss {name!r} has no option {option!r}; choose from: {', '.join(known) or 'none'}")
    return kind(feature_size, action_size, generator=generator, **{**defaults, **options})


def spanning_options(name: str, options: Mapping[str, Any], steps: int) -> dict[str, Any]:
    """Returns the options of a loss for transitions that span several steps, whose rewards are discounted sums.

    The metric's discount and the range of the rewards are then those of all steps; the largest distance is the same.
    """
    kind, defaults = LOSSES[name]
    known = inspect.signature(kind).parameters
    if steps == 1 or "discount" not in known:
        return dict(options)
    values = {"discount": known["discount"].default, **defaults, **options}
    discount, spanning = values["discount"], {**options, "discount": values["discount"] ** steps}
    if values.get("reward_range") is not None:
        spanning["reward_range"] = values["reward_range"] * (1 - discount**steps) / (1 - discount)
    return spanning


def loss_options(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those of some values by name that are options of a loss."""
    if name not in LOSSES:
        raise unknown_name("loss", name, LOSSES)
    known = list(inspect.signature(LOSSES[name][0]).parameters)[2:-1]
    return {option: value for option, value in values.items() if option in known}
