"""PPO of Stable-Baselines3 with and without policy similarity embeddings, on levels of a grid that it has not seen.

A benchmark of our own, which no paper reports. Free of torch.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from pisces.errors import UserError, unknown_name
from pisces.experiments.store import non_defaults
from pisces.validation import check_kinds, check_seed

EXPERIMENT = "grid"
VALIDATION_LEVELS = range(200)
"""Levels that settings were chosen on."""
TEST_LEVELS = range(1000, 1500)
"""Levels that results are told of; nothing was chosen on them."""
FIRST_TRAINING_LEVEL = 10_000
MOST_TRAINING_LEVELS = 32
"""As many environments run at once; the training levels share them."""
EVALUATIONS = 4
"""Parts of a run; the agent is evaluated after each on its training levels and the validation levels."""


@dataclass(frozen=True)
class GridSettings:
    """How the agent learns."""

    steps: int = 16_000
    """Environment steps."""
    training_levels: int = 12
    """Levels to train on; every seed has its own."""
    contrast: int = 60
    """Brightest value of the background."""
    learning_rate: float = 1e-3
    """Adam's step size in PPO."""
    similarity_rate: float = 0.0
    """Adam's step size in the policy similarity loss; 0 is PPO alone."""
    similarity_start: int = 4000
    """Environment steps before the first update of that loss."""
    updates: int = 6
    """Updates of that loss per pause between rollouts."""
    pairs: int = 8
    """Pairs of episodes per update."""
    refresh: int = 48
    """Pairs drawn before the agent's greedy episodes are played anew."""
    match_within: float = 0.01
    """States whose nearest one is further than this are left out of that loss."""
    discount: float = 0.9
    """Discount of the metric."""
    temperature: float = 0.5
    """Contrastive temperature (1 / lambda)."""
    scale: float = 1.0
    """Scale of the metric's Gaussian kernel (beta)."""

    def __post_init__(self) -> None:
        check_kinds(self)
        for name in ("steps", "updates", "pairs", "refresh"):
            if getattr(self, name) < 1:
                raise UserError(f"expected {name} of at least 1, got {getattr(self, name)}")
        if not 2 <= self.training_levels <= MOST_TRAINING_LEVELS:
            raise UserError(f"expected 2 to {MOST_TRAINING_LEVELS} training levels, got {self.training_levels}")
        for name in ("learning_rate", "temperature", "scale"):
            if not getattr(self, name) > 0:
                raise UserError(f"expected a positive {name}, got {getattr(self, name)}")
        if self.similarity_rate < 0 or not 0 <= self.discount < 1:
            values = f"{self.similarity_rate} and {self.discount}"
            raise UserError(f"expected similarity_rate >= 0 and discount in [0, 1), got {values}")

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of all settings."""
        return tuple(field.name for field in fields(cls))


METHODS: Mapping[str, GridSettings] = {
    "ppo": GridSettings(),
    "ppo+pse": GridSettings(similarity_rate=1e-3),
}
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "standard": {},
    "smoke": {"steps": 2048, "similarity_start": 1024, "updates": 2},
}


@dataclass(frozen=True)
class GridConfig:
    """One run, fully resolved: two equal configs give equal results on one machine."""

    method: str
    """The method's name."""
    seed: int
    """Decides the training levels, the initial weights and all draws."""
    preset: str
    """The preset that the settings come from."""
    settings: GridSettings
    """How the agent learns."""
    study: str = ""
    """Names what was changed against the method's preset; empty for the method itself."""

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise unknown_name("method", self.method, METHODS)
        check_seed(self.seed)

    def training_levels(self) -> list[int]:
        """The numbers of the levels to train on."""
        first = FIRST_TRAINING_LEVEL + MOST_TRAINING_LEVELS * self.seed
        return list(range(first, first + self.settings.training_levels))

    def as_dict(self) -> dict[str, Any]:
        """Returns the config as nested JSON values."""
        return asdict(self)

    def identity(self) -> dict[str, Any]:
        """Returns the entries that differ from their defaults, which name the run."""
        return non_defaults(self)


def make_config(
    method: str, seed: int = 0, preset: str = "standard", changes: Mapping[str, Any] | None = None
) -> GridConfig:
    """Resolves a method's settings, a preset and further changes into a config.

    Args:
        method: "ppo" or "ppo+pse".
        seed: the seed.
        preset: "standard" or "smoke".
        changes: settings that differ from the method's; they are named in the config's `study`.
    """
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    if preset not in PRESETS:
        raise unknown_name("preset", preset, PRESETS)
    unknown = set(changes or {}) - set(GridSettings.names())
    if unknown:
        raise unknown_name("setting", min(unknown), GridSettings.names())
    standard = replace(METHODS[method], **PRESETS[preset])
    settings = replace(standard, **(changes or {}))
    changed = {name: value for name, value in asdict(settings).items() if value != getattr(standard, name)}
    study = ",".join(f"{name}={value}" for name, value in sorted(changed.items()))
    return GridConfig(method, seed, preset, settings, study)


def config_from_dict(values: Mapping[str, Any]) -> GridConfig:
    """Reads a config that `GridConfig.as_dict` wrote."""
    try:
        return GridConfig(**{**values, "settings": GridSettings(**values["settings"])})
    except (TypeError, KeyError) as error:
        raise UserError(f"expected the config of a grid run, got one of another version or kind ({error})") from error


def command_line(config: GridConfig, out: str | Path) -> str:
    """The command that runs one config."""
    return f"{command_of(config.as_dict())} --out {shlex.quote(str(out))}"


def command_of(config: Mapping[str, Any]) -> str:
    """The command that repeats the run of a config as result files hold it."""
    words = ["pisces", "train", EXPERIMENT, "--method", config["method"], "--seed", config["seed"]]
    words += ["--preset", config["preset"]]
    words += ["--set", *config["study"].split(",")] if config.get("study") else []
    return shlex.join(map(str, words))
