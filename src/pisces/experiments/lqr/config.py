"""Configs of linear-quadratic control with distractors (arXiv:2101.05265, "LQR with Spurious Correlations")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pisces.agents.linear.settings import LinearSettings
from pisces.envs.lqr import STATES
from pisces.errors import UserError
from pisces.experiments.config import Config, command_line
from pisces.validation import Count, Interval, check_memory

SIZES = (500, 1000, 10_000)
"""The paper's numbers of distractors."""
MOST_SEEDS = 100_000
ENVIRONMENTS = 2
"""The paper's number of training environments."""
FIRST_TUNING_SEED = 1000
"""Seeds from this one on are for choosing settings; the table of results leaves them out."""

METHODS: Mapping[str, LinearSettings] = {
    # Coefficients: lowest mean validation error over seeds 1000-1004 (docs/lqr.md).
    "overparametrized": LinearSettings(),
    "ipo": LinearSettings(policy="ensemble", learning_rate=5e-4),
    "l1": LinearSettings(sparsity=1e-5),
    "psm": LinearSettings(aggregation=1e7),
}

PRESETS: Mapping[str, Mapping[str, Any]] = {"paper": {}, "smoke": {"max_steps": 20, "width": 40}}


@dataclass(frozen=True, kw_only=True)
class LQRConfig(Config):
    """One run, or one cell of the table: `n_seeds` consecutive seeds that are trained together."""

    experiment = "lqr"
    methods = tuple(METHODS)
    presets = tuple(PRESETS)
    seed_fields = ("seed", "n_seeds")
    variations = ("environments",)

    distractors: Annotated[int, Interval(STATES)] = SIZES[0]
    """Number of distractors."""
    n_seeds: Annotated[int, Interval(1, MOST_SEEDS)] = 1
    """Number of consecutive seeds, from `seed` on; each has a system, environments and initial weights of its own."""
    environments: Count = ENVIRONMENTS
    """Number of training environments."""
    settings: LinearSettings = field(default_factory=LinearSettings)
    """How the agents learn."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.settings.aggregation and self.environments < 2:
            raise UserError(f"aggregation requires at least 2 training environments, got {self.environments}")
        size = self.distractors + STATES
        if self.settings.policy == "two-layer" and self.settings.width > size:
            raise UserError(f"width must be at most {size}, the size of the observation, got {self.settings.width}")
        check_memory(f"a run with {self.distractors} distractors", self.seed_bytes)

    @property
    def seed_bytes(self) -> int:
        """The memory that training one seed takes."""
        wide = self.settings.policy == "two-layer"
        width = self.settings.width if wide else STATES * self.environments
        numbers = (self.distractors + STATES) * (5 * width + 40 * self.environments)
        return numbers * (4 if self.settings.precision == "float32" else 8)

    @property
    def where(self) -> str:
        """The number of distractors."""
        return f"{self.distractors} distractors"

    @property
    def seed_group(self) -> str:
        """Whether the seed is one that settings were chosen on."""
        return "tuning seeds" if self.seed >= FIRST_TUNING_SEED else ""

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds."""
        return tuple(range(self.seed, self.seed + self.n_seeds))

    def command(self, out: str | Path | None = None) -> str:
        """Returns the command that does this run; several seeds are a sweep."""
        if self.n_seeds == 1:
            return super().command(out)
        names = {"methods": self.method, "preset": self.preset, "seeds": f"{self.seed}-{self.seeds[-1]}"}
        plain = {name: value for name, value in self.options().items() if name != "n_seeds"}
        return command_line("sweep", self, {**names, **plain, "distractors": self.distractors}, out)

    def method_settings(self) -> dict[str, Any]:
        """The method's settings, shortened by the preset."""
        return {"settings": replace(METHODS[self.method], **PRESETS[self.preset])}
