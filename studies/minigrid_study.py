"""The runs behind the tables of MiniGrid: ``python studies/minigrid_study.py --parts cloning --out results``.

Rerun the command to resume; finished runs are not run again. Seeds come in order, so that a study stopped early has
some seeds of every method.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from pisces.cli.lists import parse_names
from pisces.cli.sweep import SweepOptions, run_sweep
from pisces.errors import unknown_name
from pisces.experiments.minigrid.config import MiniGridConfig
from pisces.experiments.minigrid.experiment import MiniGrid

SHIFTS = ("layout", "appearance", "both")
FAMILIES = ("crossing", "doorkey")
ON_PAIRS = ("bc", "bc+randconv", "bc+pse", "bc+pse-states", "bc+l2", "bc+bisimulation")
ON_TRANSITIONS = ("bc+dbc", "bc+dbc-normalized", "bc+deepmdp", "bc+mico", "bc+simsr", "bc+spr", "bc+curl")


@dataclass(frozen=True)
class Part:
    """All combinations of some methods, families and shifts, for as many seeds."""

    methods: tuple[str, ...]
    """The methods."""
    seeds: int
    """The number of seeds, from 0."""
    families: tuple[str, ...] = FAMILIES
    """The families of levels."""
    shifts: tuple[str, ...] = SHIFTS
    """The shifts."""


STUDY: Mapping[str, Part] = {
    "first": Part(("bc", "bc+pse"), 20, ("crossing",), ("appearance",)),
    "cloning": Part(ON_PAIRS, 20),
    "transitions": Part(ON_TRANSITIONS, 20),
    "ppo": Part(("ppo", "ppo+pse", "ppo+pse-expert"), 10),
}
"""The parts of the study, in the order in which they are run."""


def study_configs(parts: Sequence[str]) -> list[MiniGridConfig]:
    """Returns the runs of some parts, each once."""
    configs: list[MiniGridConfig] = []
    for name in parts:
        if name not in STUDY:
            raise unknown_name("part of the study", name, STUDY)
        part = STUDY[name]
        axes = {"family": part.families, "shift": part.shifts}
        configs += MiniGrid().sweep_configs(part.methods, range(part.seeds), "standard", axes, {})
    return list(dict.fromkeys(configs))


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
