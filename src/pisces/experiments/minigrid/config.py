"""Configs of runs on MiniGrid: cloning and PPO on a few levels, evaluated under a shift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pisces.agents.cloning.settings import CloningSettings
from pisces.errors import UserError
from pisces.experiments.config import Config
from pisces.experiments.minigrid.ppo_settings import PPOSettings
from pisces.validation import Interval

Family = Literal["crossing", "lava", "rooms", "doorkey", "multiroom"]
Shift = Literal["layout", "appearance", "both"]
MiniGridSettings = CloningSettings | PPOSettings
THEMES = 2
"""Usual number of themes of each training level."""
EVALUATIONS = 4
"""Evaluations per run, on training and validation tasks."""

_BC = CloningSettings()
_PSE = replace(_BC, auxiliary="contrastive")
_PPO = PPOSettings()
METHODS: Mapping[str, MiniGridSettings] = {
    "bc": _BC,
    # The network without LayerNorm, which plain cloning prefers.
    "bc-unnormalized": replace(_BC, layer_norm=False),
    "bc+randconv": replace(_BC, augmentation="randconv"),
    "bc+colors": replace(_BC, augmentation="colors"),
    "bc+pse": _PSE,
    # The metric between all states, not only those of the expert's episodes.
    "bc+pse-states": replace(_PSE, states="all"),
    "bc+l2": replace(_BC, auxiliary="l2"),
    # Contrastive embeddings of the bisimulation metric between all states.
    "bc+bisimulation": replace(_PSE, states="all", metric="bisimulation"),
    "bc+randconv+pse": replace(_PSE, augmentation="randconv"),
    "bc+colors+pse": replace(_PSE, augmentation="colors"),
    "bc+colors+pse-states": replace(_PSE, augmentation="colors", states="all"),
    **{
        f"bc+{name}": replace(_BC, auxiliary=name)
        for name in ("dbc", "dbc-normalized", "deepmdp", "mico", "simsr", "spr", "curl")
    },
    "ppo": _PPO,
    # Pairs of the agent's own greedy episodes, or of the expert's.
    "ppo+pse": replace(_PPO, similarity="greedy"),
    "ppo+pse-expert": replace(_PPO, similarity="expert"),
}
PRESETS: Mapping[str, Mapping[type, Mapping[str, Any]]] = {
    "standard": {CloningSettings: {}, PPOSettings: {}},
    "smoke": {CloningSettings: {"steps": 20}, PPOSettings: {"steps": 1024, "start": 512, "updates": 2}},
}


@dataclass(frozen=True, kw_only=True)
class MiniGridConfig(Config):
    """One run on MiniGrid."""

    experiment = "minigrid"
    methods = tuple(METHODS)
    presets = tuple(PRESETS)
    variations = ("training_levels",)

    family: Family = "crossing"
    """Family of levels."""
    shift: Shift = "appearance"
    """What differs between training and evaluation: the layout of levels, their appearance, or both."""
    training_levels: Annotated[int, Interval(2, 200)] = 12
    """Number of training levels; every seed has its own."""
    training_themes: Annotated[int, Interval(1, 4)] = THEMES
    """Number of themes of each training level, which no other level has, unless only the layout shifts."""
    settings: MiniGridSettings = field(default_factory=CloningSettings)
    """How the agent learns."""

    @property
    def where(self) -> str:
        """The family, the shift, and the number of themes unless it is the usual one."""
        usual = self.shift == "layout" or self.training_themes == THEMES
        return f"{self.family}, {self.shift}" + ("" if usual else f", {self.training_themes} themes")

    @property
    def cloning(self) -> CloningSettings:
        """The settings of a method that clones."""
        if not isinstance(self.settings, CloningSettings):
            raise UserError(f"{self.method} does not clone an expert")
        return self.settings

    def method_settings(self) -> dict[str, Any]:
        """The method's settings, shortened by the preset."""
        settings = METHODS[self.method]
        return {"settings": replace(settings, **PRESETS[self.preset][type(settings)])}

    @classmethod
    def group_types(cls, values: Mapping[str, Any]) -> dict[str, type]:
        """Cloning and PPO have settings of their own; unknown methods are reported by the config."""
        return {"settings": type(METHODS.get(values["method"], _BC))}
