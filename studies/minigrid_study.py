"""The runs behind the tables of MiniGrid: ``python studies/minigrid_study.py --parts appearance --out results``.

Rerun the command to resume; finished runs are not run again. Seeds come in order, so that a study stopped early has
some seeds of every method.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from pisces.cli.lists import parse_names
from pisces.cli.sweep import SweepOptions, run_sweep
from pisces.errors import unknown_name
from pisces.experiments.minigrid.config import MiniGridConfig
from pisces.experiments.minigrid.experiment import MiniGrid

SHIFTS = ("appearance", "both", "layout")


@dataclass(frozen=True)
class Part:
    """All combinations of some methods, families and shifts, for as many seeds."""

    methods: tuple[str, ...]
    """The methods."""
    seeds: range
    """The seeds."""
    families: tuple[str, ...] = ("crossing",)
    """The families of levels."""
    shifts: tuple[str, ...] = SHIFTS
    """The shifts."""
    themes: int = 2
    """The number of themes of each training level."""
    levels: int = 12
    """The number of training levels."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Settings that differ from the methods' own."""


MANY_LEVELS = Part(
    *(("bc", "bc+pse"), range(20)), shifts=("layout",), levels=100, changes={"steps": 3600, "learning_rate": 5e-3}
)
"""Enough levels for plain cloning to solve many unseen layouts, and the steps and the rate that fit them."""
STUDY: Mapping[str, Part] = {
    "appearance": Part(("bc", "bc+pse", "bc+pse-states"), range(20), shifts=("appearance",)),
    "themes": Part(("bc", "bc+pse"), range(20), shifts=("appearance",), themes=3),
    "control": Part(("bc-unnormalized",), range(20), shifts=("appearance",), themes=3),
    "states": Part(("bc+pse-states",), range(20), shifts=("appearance",), themes=3),
    "doorkey": Part(("bc", "bc+pse", "bc+pse-states"), range(20), ("doorkey",), ("appearance",), themes=3),
    "colors": Part(
        ("bc+colors", "bc+colors+pse-states"), range(20), ("crossing", "doorkey"), ("appearance",), themes=3
    ),
    "shifts": Part(("bc", "bc+pse"), range(20), shifts=("both", "layout")),
    "levels": MANY_LEVELS,
    "randconv": Part(("bc-unnormalized", "bc+randconv", "bc+randconv+pse"), range(3), shifts=("appearance",)),
    "ppo": Part(("ppo", "ppo+pse", "ppo+pse-expert"), range(10), shifts=("appearance",), themes=3),
}
"""The parts of the study, in the order in which they are run."""


def study_configs(parts: Sequence[str]) -> list[MiniGridConfig]:
    """Returns the runs of some parts, each once."""
    configs: list[MiniGridConfig] = []
    for name in parts:
        if name not in STUDY:
            raise unknown_name("part of the study", name, STUDY)
        configs += part_configs(STUDY[name])
    return list(dict.fromkeys(configs))


def part_configs(part: Part) -> list[MiniGridConfig]:
    """Returns the runs of one part."""
    axes = {"family": part.families, "shift": part.shifts}
    sizes = {"training_themes": part.themes, "training_levels": part.levels}
    return MiniGrid().sweep_configs(part.methods, part.seeds, "standard", axes, part.changes, **sizes)


def main(
    parts: str = ",".join(STUDY),
    common: Annotated[SweepOptions, tyro.conf.arg(name="")] = SweepOptions(out=Path("results")),  # noqa: B008 (frozen)
) -> None:
    """Train everything behind the tables of MiniGrid.

    Args:
        parts: Parts of the study, separated by commas.
        common: Where and how the runs are done.
    """
    run_sweep(MiniGrid(), study_configs(parse_names(parts)), common)


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
