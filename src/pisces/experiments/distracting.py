"""Distracting Control: SAC + DrQ with and without policy similarity embeddings (Sec. 6.2, arXiv:2101.05265)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from pisces.agents.drq_settings import DrQSettings
from pisces.envs.distracting_tasks import action_repeat, check_task, find_variant
from pisces.errors import UserError, unknown_name
from pisces.experiments.store import changed_settings, non_defaults
from pisces.validation import check_kinds, check_seed

Init = Literal["random", "pretrained"]
Stage = Literal["all", "pretrain", "pairs", "train"]

EXPERIMENT = "distracting"
THREADS = 1
"""Threads of the computation unless a config says otherwise."""
METHODS: Mapping[str, bool] = {"drq": False, "drq+pse": True}
"""The methods, and whether they use the policy similarity loss."""
AUXILIARY_SETTINGS = (
    *("coefficient", "temperature", "scale", "metric_discount"),
    *("anchors", "auxiliary_frequency", "embedding_size", "pairs"),
)
"""Settings that the pretraining run does not have."""


@dataclass(frozen=True)
class Protocol:
    """What is trained on, for how long, and how it is judged. The defaults are the paper's."""

    frame_size: int = 84
    """Height and width of the frames."""
    frame_stack: int = 3
    """Frames per observation."""
    action_repeat: int = 0
    """Simulator steps per decision; 0 is the paper's number for the task."""
    steps: int = 500_000
    """Environment steps, action repeats counted; pretraining takes as many."""
    evaluations: int = 20
    """Evaluations per run, evenly spaced."""
    evaluation_episodes: int = 100
    """Episodes on unseen videos per evaluation."""
    train_episodes: int = 10
    """Episodes on training videos per evaluation."""
    final_episodes: int = 100
    """Episodes on unseen videos at the end."""
    pairs: int = 500
    """Pairs of episodes that the policy similarity loss draws from."""

    def __post_init__(self) -> None:
        check_kinds(self)
        for field in fields(self):
            if getattr(self, field.name) < (field.name != "action_repeat"):
                raise UserError(f"expected {field.name} of at least 1, got {getattr(self, field.name)}")

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of all settings."""
        return tuple(field.name for field in fields(cls))


PRESETS: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    "cpu": {
        "frame_size": 48,
        "steps": 100_000,
        "evaluations": 10,
        "evaluation_episodes": 10,
        "train_episodes": 5,
        "final_episodes": 30,
        "pairs": 50,
        "batch_size": 64,
        "seed_steps": 250,
        "steps_per_update": 8,
        "return_steps": 3,
        "target_rate": 0.05,
        "channels": 16,
        "second_stride": 2,
        "hidden_size": 256,
        "padding": 2,
        "auxiliary_frequency": 2,
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
        "capacity": 1000,
        "seed_steps": 20,
        "channels": 4,
        "hidden_size": 16,
        "feature_size": 8,
        "padding": 2,
    },
}


@dataclass(frozen=True)
class DistractingConfig:
    """One run, fully resolved: two equal configs give equal results on one machine."""

    method: str
    """"drq" or "drq+pse"."""
    task: str
    """Domain and task, e.g. "cartpole-swingup"."""
    seed: int
    """Decides the weights, the episodes and all draws."""
    preset: str
    """The preset that the settings come from."""
    settings: DrQSettings
    """How the agent learns."""
    protocol: Protocol
    """What it is trained on, and how it is judged."""
    init: Init = "random"
    """Random weights, or the actor and convolutions of the seed's pretraining run."""
    variant: str = "paper"
    """The distractions; "plain" has none."""
    davis: str = ""
    """A DAVIS 2017 folder; empty uses the built-in clips."""
    threads: int = THREADS
    """Threads of the computation; results may differ in the last digits between numbers of threads."""
    study: str = ""
    """Names what was changed against the method's preset; empty for the method itself."""

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise unknown_name("method", self.method, METHODS)
        if self.init not in get_args(Init):
            raise unknown_name("init", self.init, get_args(Init))
        check_task(self.task)
        find_variant(self.variant)
        check_seed(self.seed)
        if self.threads < 1:
            raise UserError(f"expected threads of at least 1, got {self.threads}")

    @property
    def action_repeat(self) -> int:
        """Simulator steps per decision."""
        return self.protocol.action_repeat or action_repeat(self.task)

    @property
    def needs_pretraining(self) -> bool:
        """Whether another run comes first."""
        return self.method == "drq+pse" or self.init == "pretrained"

    def as_dict(self) -> dict[str, Any]:
        """Returns the config as nested JSON values."""
        return asdict(self)

    def identity(self) -> dict[str, Any]:
        """Returns the entries that differ from their defaults, which name the run."""
        return non_defaults(self)


def make_config(
    method: str = "drq+pse",
    task: str = "cartpole-swingup",
    seed: int = 0,
    preset: str = "paper",
    init: Init = "random",
    variant: str = "paper",
    davis: str = "",
    threads: int = THREADS,
    changes: Mapping[str, Any] | None = None,
) -> DistractingConfig:
    """Resolves a method, a preset and further changes into a config.

    Args:
        method: a key of `METHODS`.
        task: domain and task.
        seed: the seed.
        preset: "paper", "cpu" or "smoke".
        init: "random" or "pretrained".
        variant: the distractions.
        davis: a DAVIS 2017 folder, or empty.
        threads: threads of the computation.
        changes: settings of agent or protocol that differ from the preset's; they are named in the config's `study`.
    """
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    if preset not in PRESETS:
        raise unknown_name("preset", preset, PRESETS)
    known = (*DrQSettings.names(), *Protocol.names())
    unknown = set(changes or {}) - set(known)
    if unknown:
        raise unknown_name("setting", min(unknown), known)
    if "auxiliary" in (changes or {}):
        raise UserError(
            f"expected the method to decide about auxiliary, got it as a setting; choose {' or '.join(METHODS)}"
        )
    values = {**PRESETS[preset], **(changes or {})}
    settings = DrQSettings(**{**_only(values, DrQSettings), "auxiliary": METHODS[method]})
    protocol = Protocol(**_only(values, Protocol))
    resolved = {**asdict(settings), **asdict(protocol)}
    study = ",".join(
        f"{name}={resolved[name]}" for name in sorted(changes or {}) if _differs(preset, name, resolved[name])
    )
    return DistractingConfig(method, task, seed, preset, settings, protocol, init, variant, davis, threads, study)


def _only(values: Mapping[str, Any], kind: type[DrQSettings] | type[Protocol]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in kind.names()}


def _default(preset: str, name: str) -> Any:
    usual = getattr(Protocol(), name) if name in Protocol.names() else getattr(DrQSettings(), name)
    return PRESETS[preset].get(name, usual)


def _differs(preset: str, name: str, value: Any) -> bool:
    return bool(value != _default(preset, name))


def config_changes(config: DistractingConfig) -> dict[str, Any]:
    """The settings that differ from the preset's."""
    values = {**asdict(config.protocol), **asdict(config.settings)}
    del values["auxiliary"]
    return {name: value for name, value in values.items() if _differs(config.preset, name, value)}


def pretraining_config(config: DistractingConfig) -> DistractingConfig:
    """The run whose policy a config needs: plain DrQ of the same seed from random weights."""
    changes = {name: value for name, value in config_changes(config).items() if name not in AUXILIARY_SETTINGS}
    plain = make_config(
        "drq", config.task, config.seed, config.preset, "random", config.variant, config.davis, changes=changes
    )
    return replace(plain, threads=config.threads)


def requirements(config: DistractingConfig) -> tuple[DistractingConfig, ...]:
    """The runs that come first."""
    return (pretraining_config(config),) if config.needs_pretraining else ()


def config_from_dict(values: Mapping[str, Any]) -> DistractingConfig:
    """Reads a config that `DistractingConfig.as_dict` wrote."""
    try:
        parts = {"settings": DrQSettings(**values["settings"]), "protocol": Protocol(**values["protocol"])}
        return DistractingConfig(**{**values, **parts})
    except (TypeError, KeyError) as error:
        raise UserError(
            f"expected the config of a distracting run, got one of another version or kind ({error})"
        ) from error


def command_line(config: DistractingConfig, out: str | Path) -> str:
    """The command that runs one config."""
    return f"{command_of(config.as_dict())} --out {shlex.quote(str(out))}"


def command_of(config: Mapping[str, Any]) -> str:
    """The command that repeats the run of a config as result files hold it, perhaps of another version."""
    words = ["pisces", "train", EXPERIMENT, "--task", config["task"], "--method", config["method"]]
    words += ["--init", config["init"], "--seed", str(config["seed"]), "--preset", config["preset"]]
    for name, usual in (("variant", "paper"), ("davis", ""), ("threads", THREADS)):
        if config.get(name, usual) != usual:
            words += [f"--{name}", str(config[name])]
    changes = changed_settings(config, "settings", "protocol")
    return shlex.join([*words, *(["--set", *changes] if changes else [])])
