"""The study of linear control with distractors: its methods and their settings (arXiv:2101.05265, "LQR with Spurious
Correlations"). Free of torch."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from pisces.agents.linear_settings import LinearSettings
from pisces.envs.lqr import STATES
from pisces.errors import UserError, unknown_name
from pisces.experiments.lists import format_seeds
from pisces.experiments.store import changed_settings, non_defaults
from pisces.validation import check_seed

EXPERIMENT = "lqr"
SIZES = (500, 1000, 10_000)
"""The paper's numbers of distractors."""
ENVIRONMENTS = 2
"""The paper's number of training environments."""

METHODS: Mapping[str, LinearSettings] = {
    # Coefficients: lowest mean validation error over seeds 1000-1009 (docs/lqr.md); the test environment was not used.
    "overparametrized": LinearSettings(),
    "ipo": LinearSettings(policy="ensemble", learning_rate=5e-4),
    "l1": LinearSettings(sparsity=1e-5),
    "psm": LinearSettings(aggregation=1e7),
}

PRESETS: Mapping[str, Mapping[str, Any]] = {"paper": {}, "smoke": {"max_steps": 20, "width": 40}}


@dataclass(frozen=True)
class LQRConfig:
    """One run, or one cell of the table (several seeds): equal configs give equal results on one machine."""

    method: str
    """The method's name."""
    distractors: int
    """Number of distractors n_d."""
    seeds: tuple[int, ...]
    """Each decides a system, its environments and the initial weights."""
    preset: str
    """The preset that the settings come from."""
    settings: LinearSettings
    """How the agents learn."""
    environments: int = ENVIRONMENTS
    """Number of training environments."""
    study: str = ""
    """Names what was changed against the method's preset; empty for the method itself."""

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise unknown_name("method", self.method, METHODS)
        if self.distractors < STATES:
            raise UserError(f"expected at least {STATES} distractors, got {self.distractors}")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise UserError(f"expected distinct seeds, got {list(self.seeds)}")
        for seed in self.seeds:
            check_seed(seed)
        if self.environments < 1 or (self.settings.aggregation and self.environments < 2):
            raise UserError(f"expected at least 2 training environments (1 without pairs), got {self.environments}")
        if self.settings.policy == "two-layer" and self.settings.width > self.distractors + STATES:
            size = self.distractors + STATES
            raise UserError(f"expected a width of at most {size}, the observation's size, got {self.settings.width}")

    def as_dict(self) -> dict[str, Any]:
        """Returns the config as nested JSON values; a single seed also stands under `seed`."""
        values = {**asdict(self), "seeds": list(self.seeds)}
        return {**values, "seed": self.seeds[0]} if len(self.seeds) == 1 else values

    def identity(self) -> dict[str, Any]:
        """Returns the entries that differ from their defaults, which name the run."""
        return non_defaults(self)


def make_config(
    method: str,
    distractors: int = SIZES[0],
    seeds: tuple[int, ...] = (0,),
    preset: str = "paper",
    environments: int = ENVIRONMENTS,
    changes: Mapping[str, Any] | None = None,
) -> LQRConfig:
    """Resolves a method's settings, a preset and further changes into a config.

    Args:
        method: a key of `METHODS`.
        distractors: number of distractors.
        seeds: one for a run, several for a cell.
        preset: "paper" or "smoke".
        environments: number of training environments.
        changes: settings that differ from the method's; they are named in the config's `study`.
    """
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    if preset not in PRESETS:
        raise unknown_name("preset", preset, PRESETS)
    unknown = set(changes or {}) - set(LinearSettings.names())
    if unknown:
        raise unknown_name("setting", min(unknown), LinearSettings.names())
    standard = replace(METHODS[method], **PRESETS[preset])
    settings = replace(standard, **(changes or {}))
    changed = {name: value for name, value in asdict(settings).items() if value != getattr(standard, name)}
    if environments != ENVIRONMENTS:
        changed["environments"] = environments
    study = ",".join(f"{name}={value}" for name, value in sorted(changed.items()))
    return LQRConfig(method, distractors, seeds, preset, settings, environments, study)


def command_of(config: Mapping[str, Any]) -> str:
    """The command that repeats the run of a config as result files hold it.

    A cell of the table is one sweep; a seed of any other cell gives the same numbers when it is trained alone.
    """
    seeds, changed = config.get("seeds", [config.get("seed")]), changed_settings(config)
    method, size, preset = config["method"], config["distractors"], config["preset"]
    if len(seeds) > 1 and not config.get("study"):
        words = ["pisces", "sweep", EXPERIMENT, "--methods", method, "--distractors", size]
        return shlex.join(map(str, [*words, "--seeds", format_seeds(seeds), "--preset", preset]))
    words = ["pisces", "train", EXPERIMENT, "--method", method, "--distractors", size]
    words += ["--seed", config.get("seed", seeds[0]), "--preset", preset]
    if config.get("environments", ENVIRONMENTS) != ENVIRONMENTS:
        words += ["--environments", config["environments"]]
    return shlex.join(map(str, [*words, *(["--set", *changed] if changed else [])]))
