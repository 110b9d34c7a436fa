"""Distracting Control: SAC + DrQ with and without policy similarity embeddings (Sec. 6.2, arXiv:2101.05265)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from pisces.agents.drq.settings import DrQSettings
from pisces.envs.distracting.tasks import action_repeat, check_task, find_variant
from pisces.errors import UserError
from pisces.experiments.config import Config
from pisces.validation import Count, NonNegativeInt, check_settings

Init = Literal["random", "pretrained"]
Unseen = Literal["test", "validation"]
EPISODE_STEPS = 1000
"""Simulator steps of an episode."""

SIMILARITY = "+pse"
"""What the name of a method with the policy similarity loss ends with."""
POLICY_SIMILARITY: Mapping[str, Any] = {"auxiliary": True, "auxiliary_optimizer": "own"}
METHODS: Mapping[str, Mapping[str, Any]] = {
    "sac": {"padding": 0, "views": 1},
    "drq": {},
    "drq+randconv": {"strong_share": 0.5},
    "drq+pse": POLICY_SIMILARITY,
    "drq+randconv+pse": {"strong_share": 0.5, **POLICY_SIMILARITY},
    **{
        f"drq+{name}": {"auxiliary": True, "auxiliary_loss": name}
        for name in ("dbc", "mico", "simsr", "deepmdp", "curl", "spr")
    },
    "drqv2": {"policy": "deterministic"},
    "drqv2+pse": {"policy": "deterministic", **POLICY_SIMILARITY},
}
"""The methods, and the settings in which they differ from DrQ."""
OF_METHOD = ("auxiliary", "auxiliary_loss", "policy")
"""Settings that the method alone decides."""
SIMILARITY_SETTINGS = ("temperature", "scale", "metric_discount", "anchors", "candidates", "embedding_size", "pairs")
"""Settings of the policy similarity loss."""
AUXILIARY_SETTINGS = ("coefficient", "auxiliary_frequency", "auxiliary_optimizer")
"""Settings of any auxiliary loss."""


def unused_settings(method: str) -> tuple[str, ...]:
    """Returns the settings that do nothing in a method: those of losses that it does not have."""
    if method.endswith(SIMILARITY):
        return ()
    return SIMILARITY_SETTINGS if METHODS[method].get("auxiliary") else SIMILARITY_SETTINGS + AUXILIARY_SETTINGS


@dataclass(frozen=True)
class Protocol:
    """What is trained on, for how long, and how it is evaluated. The defaults are the paper's."""

    frame_size: Count = 84
    """Height and width of the frames in pixels."""
    supersampling: Count = 2
    """Frames are rendered this many times as high and wide, and averaged."""
    frame_stack: Count = 3
    """Frames stacked into one observation."""
    action_repeat: NonNegativeInt = 0
    """Simulator steps per decision; 0 is the paper's number for the task."""
    steps: Count = 500_000
    """Environment steps of the run, action repeats counted; the pretraining run has as many."""
    evaluations: Count = 20
    """Evaluations per run, evenly spaced."""
    unseen_videos: Unseen = "test"
    """Videos that count as unseen: test, or validation while settings are chosen."""
    evaluation_episodes: Count = 100
    """Episodes on unseen videos per evaluation."""
    train_episodes: Count = 10
    """Episodes on training videos per evaluation."""
    final_episodes: Count = 100
    """Episodes on unseen videos at the end."""
    pairs: Count = 500
    """Pairs of episodes that the policy similarity loss draws from."""

    def __post_init__(self) -> None:
        check_settings(self)


PRESETS: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    "cpu": {
        "frame_size": 48,
        "steps": 300_000,
        "evaluations": 6,
        "evaluation_episodes": 3,
        "train_episodes": 4,
        "final_episodes": 30,
        "pairs": 50,
        "batch_size": 64,
        "learning_starts": 250,
        "steps_per_update": 8,
        "return_steps": 3,
        "actor_frequency": 1,
        "tau": 0.05,
        "channels": 16,
        "second_stride": 2,
        "hidden_size": 256,
        "padding": 2,
        "views": 1,
        "target_convolutions": False,
        "reuse_features": True,
        "critic_norm": True,
        "average_rewards": True,
        "auxiliary_frequency": 2,
        "anchors": 32,
        "candidates": 64,
    },
    "smoke": {
        "frame_size": 24,
        "action_repeat": 25,
        "steps": 2000,
        "evaluations": 1,
        "evaluation_episodes": 1,
        "train_episodes": 1,
        "final_episodes": 1,
        "pairs": 2,
        "batch_size": 8,
        "buffer_size": 1000,
        "learning_starts": 20,
        "channels": 4,
        "hidden_size": 16,
        "feature_size": 8,
        "padding": 2,
    },
}


@dataclass(frozen=True, kw_only=True)
class DistractingConfig(Config):
    """One run of Distracting Control."""

    experiment = "distracting"
    methods = tuple(METHODS)
    presets = tuple(PRESETS)

    task: str = "cartpole-swingup"
    """Domain and task of dm_control's suite, e.g. walker-walk."""
    init: Init = "random"
    """Initialization: random weights, or the actor and convolutions of the seed's pretraining run."""
    variant: str = "paper"
    """Distractions: paper, plain (none), dcs-easy, dcs-medium or dcs-hard."""
    davis: str = ""
    """Folder of DAVIS 2017; the built-in clips are used without it."""
    settings: DrQSettings = field(default_factory=DrQSettings)
    """How the agent learns."""
    protocol: Protocol = field(default_factory=Protocol)
    """What it is trained on, and how it is evaluated."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_task(self.task)
        find_variant(self.variant)
        frames = -(-EPISODE_STEPS // self.action_repeat) + 2
        if self.settings.buffer_size < frames:
            raise UserError(
                f"buffer_size must be at least {frames}, so that an episode of {self.task} fits, got "
                f"{self.settings.buffer_size}"
            )

    @property
    def where(self) -> str:
        """The task."""
        return self.task

    @property
    def action_repeat(self) -> int:
        """Simulator steps per decision."""
        return self.protocol.action_repeat or action_repeat(self.task)

    @property
    def largest_reward(self) -> float:
        """The largest reward of a decision; those of the suite's steps are in [0, 1]."""
        return 1.0 if self.settings.average_rewards else float(self.action_repeat)

    @property
    def needs_pretraining(self) -> bool:
        """Whether another run comes first."""
        return self.has_pairs or self.init == "pretrained"

    @property
    def has_pairs(self) -> bool:
        """Whether the policy similarity loss is used."""
        return self.method.endswith(SIMILARITY)

    def method_settings(self) -> dict[str, Any]:
        """The preset's settings, with or without the policy similarity loss."""
        preset = PRESETS[self.preset] | METHODS[self.method]  # type: ignore[operator]
        own = {name: value for name, value in preset.items() if name in DrQSettings.__dataclass_fields__}
        rest = {name: value for name, value in preset.items() if name not in own}
        return {"settings": DrQSettings(**own), "protocol": Protocol(**rest)}

    def override(self, changes: Mapping[str, Any]) -> Self:
        """Returns the config with other values of some settings; some are decided by the method."""
        for name in OF_METHOD:
            if name in changes:
                raise UserError(f"{name} is decided by the method; choose --method from: {', '.join(METHODS)}")
        return super().override(changes)

    def pretraining(self) -> DistractingConfig:
        """Returns the run whose policy this one needs: the method without PSEs, same seed, from random weights."""
        method = self.method.removesuffix(SIMILARITY)
        unused = unused_settings(method)
        changes = {name: value for name, value in self.changes.items() if name not in unused}
        plain = replace(self, method=method, init="random")
        return replace(plain, **plain.method_settings()).override(changes)
