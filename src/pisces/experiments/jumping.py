"""The jumping task's study: its methods and their published settings (Sec. 5 and App. F, arXiv:2101.05265)."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from pisces.agents.settings import ImitationSettings
from pisces.envs.grids import TRAINING_TASKS, Grid
from pisces.errors import UserError, unknown_name
from pisces.experiments.store import changed_settings, non_defaults
from pisces.validation import check_seed

Preset = Literal["paper", "quick", "smoke"]

EXPERIMENT = "jumping"
_RANDCONV_PSE = ImitationSettings(
    learning_rate=2.6e-3, augmentation="randconv", auxiliary="contrastive", temperature=0.5, coefficient=5.0
)
_RANDCONV_L2 = ImitationSettings(augmentation="randconv", auxiliary="l2")
_PISCES_PLAIN = ImitationSettings(
    learning_rate=4.2e-3,
    schedule="cosine",
    epochs=400,
    evaluations=8,
    l2_coefficient=1.6e-4,
    dropout=0.25,
    auxiliary="contrastive",
    temperature=0.84,
    coefficient=3.2,
)

METHODS: Mapping[str, ImitationSettings] = {
    # Hyperparameters of Table 1 (App. F, Table 5).
    "dropout+l2": ImitationSettings(learning_rate=4e-3, l2_coefficient=4.3e-4, dropout=0.3),
    "pse": ImitationSettings(
        learning_rate=3.2e-3, l2_coefficient=1e-5, auxiliary="contrastive", temperature=1.0, coefficient=10.0
    ),
    "randconv": ImitationSettings(learning_rate=7e-3, augmentation="randconv"),
    "randconv+pse": _RANDCONV_PSE,
    # Hyperparameters of Table 2, the ablation (App. F, Table 7).
    "randconv+bisimulation": replace(_RANDCONV_L2, learning_rate=1e-4, metric="bisimulation", coefficient=1e-6),
    "randconv+psm-l2": replace(_RANDCONV_L2, learning_rate=5e-4, coefficient=0.1),
    "randconv+bisimulation-cme": replace(
        _RANDCONV_PSE, learning_rate=4.7e-4, metric="bisimulation", temperature=0.5, coefficient=0.1
    ),
    "randconv+psm-cme": replace(_RANDCONV_PSE, learning_rate=4e-3, temperature=1.0, coefficient=5.0),
    # Our own: shifts as wide as the grids reach beyond their training tasks, inside the screen's border, and a step
    # size that ends at zero. Chosen on the wide grid's validation tasks, where embeddings on top of the shifts cost
    # more than they gave; docs/reproduction.md tells how.
    "pisces": ImitationSettings(
        learning_rate=3e-3,
        schedule="cosine",
        epochs=500,
        evaluations=10,
        augmentation="randconv",
        shift=10,
        shift_border=1,
    ),
    # Our own without augmentation: PSEs with a step size that ends at zero before the agent overfits, and settings that
    # `pisces tune jumping` found on the wide grid's validation tasks.
    "pisces-plain": _PISCES_PLAIN,
    # The same, trained five times, with as many iterations in all as the published methods have: one training in a few
    # generalises no better than without PSEs, and the validation tasks tell which one to keep.
    "pisces-plain-5": replace(_PISCES_PLAIN, restarts=5, evaluations=40),
    # The upper bound: positives by the true distance to the obstacle, with Table 1's settings.
    "randconv+true": replace(_RANDCONV_PSE, metric="true"),
}

COLOR_METHODS: Mapping[str, ImitationSettings] = {
    # Hyperparameters of the task with colours (App. F, Table 6); other methods keep those above.
    **METHODS,
    "pse": replace(METHODS["pse"], learning_rate=6e-3, l2_coefficient=7e-5, temperature=0.5, coefficient=5.0),
    "randconv": replace(METHODS["randconv"], learning_rate=5e-3),
}

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    "quick": {"epochs": 900, "evaluations": 12},
    "smoke": {"epochs": 5, "evaluations": 2, "evaluation_draws": 2},
}


@dataclass(frozen=True)
class JumpingConfig:
    """One run, fully resolved: two equal configs give equal results on one machine."""

    method: str
    """The method's name."""
    grid: Grid
    """Which tasks train: "wide", "narrow" or "random"."""
    seed: int
    """Decides the initial weights, all draws, and the random grid."""
    preset: str
    """The preset that the settings come from."""
    settings: ImitationSettings
    """How the agent learns."""
    colors: bool = False
    """Red and green obstacles instead of white ones."""
    epsilon: float = 0.0
    """The metric's policies take the other action with this probability; the agent imitates optimal actions still."""
    training_tasks: int = TRAINING_TASKS
    """Number of training tasks."""
    threads: int = 1
    """Threads of the computation; results may differ in the last digits between numbers of threads."""
    study: str = ""
    """Names what was changed against the method's preset; empty for the method itself."""

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise unknown_name("method", self.method, METHODS)
        if self.grid not in get_args(Grid):
            raise unknown_name("grid", self.grid, get_args(Grid))
        for name in ("kernels", "network"):
            if getattr(self.settings, name) == "rows" and not self.colors:
                raise UserError(f"expected {name}=images without colours, got {name}=rows; add --colors")
        if not 0 <= self.epsilon <= 0.5:
            raise UserError(f"expected epsilon in [0, 0.5], got {self.epsilon}")
        check_seed(self.seed)
        if self.threads < 1:
            raise UserError(f"expected threads of at least 1, got {self.threads}")
        if not 2 <= self.training_tasks <= TRAINING_TASKS:
            raise UserError(f"expected 2 to {TRAINING_TASKS} training tasks, got {self.training_tasks}")

    def as_dict(self) -> dict[str, Any]:
        """Returns the config as nested JSON values."""
        return asdict(self)

    def identity(self) -> dict[str, Any]:
        """Returns the entries that differ from their defaults, which name the run.

        A setting that is added later, with a default that changes nothing, leaves the names of earlier runs alone.
        """
        return non_defaults(self)


def make_config(
    method: str,
    grid: Grid = "wide",
    seed: int = 0,
    preset: str = "paper",
    colors: bool = False,
    epsilon: float = 0.0,
    training_tasks: int = TRAINING_TASKS,
    threads: int = 1,
    changes: Mapping[str, Any] | None = None,
) -> JumpingConfig:
    """Resolves a method's published settings, a preset and further changes into a config.

    Args:
        method: a key of `METHODS`.
        grid: the training tasks.
        seed: the seed.
        preset: "paper", "quick" or "smoke".
        colors: the task with red and green obstacles.
        epsilon: suboptimality of the metric's policies.
        training_tasks: number of training tasks.
        threads: threads of the computation.
        changes: settings that differ from the method's; they are named in the config's `study`.
    """
    methods = COLOR_METHODS if colors else METHODS
    if method not in methods:
        raise unknown_name("method", method, methods)
    if preset not in PRESETS:
        raise unknown_name("preset", preset, PRESETS)
    unknown = set(changes or {}) - set(ImitationSettings.names())
    if unknown:
        raise unknown_name("setting", min(unknown), ImitationSettings.names())
    published = _shortened(methods[method], PRESETS[preset])
    settings = replace(published, **(changes or {}))
    changed = {name: value for name, value in asdict(settings).items() if value != getattr(published, name)}
    if epsilon:
        changed["epsilon"] = epsilon
    if training_tasks != TRAINING_TASKS:
        changed["training_tasks"] = training_tasks
    study = ",".join(f"{name}={value}" for name, value in sorted(changed.items()))
    return JumpingConfig(method, grid, seed, preset, settings, colors, epsilon, training_tasks, threads, study)


def _shortened(settings: ImitationSettings, preset: Mapping[str, Any]) -> ImitationSettings:
    """Applies a preset, which never trains longer than the method itself does; several starts share its epochs."""
    epochs = min(settings.epochs, max(preset.get("epochs", math.inf) // settings.restarts, 1))
    return replace(settings, **{**preset, "epochs": int(epochs)})


def validation_solved(row: Mapping[str, Any], colors: bool) -> float:
    """The share of the validation tasks that an evaluation found solved; nothing else of it is read."""
    names = ("red_", "green_") if colors else ("",)
    return sum(float(row[f"{name}validation_solved_percent"]) for name in names) / len(names)


def config_from_dict(values: Mapping[str, Any]) -> JumpingConfig:
    """Reads a config that `JumpingConfig.as_dict` wrote."""
    try:
        return JumpingConfig(**{**values, "settings": ImitationSettings(**values["settings"])})
    except (TypeError, KeyError) as error:
        raise UserError(
            f"expected the config of a jumping run, got one of another version or kind ({error})"
        ) from error


def command_line(config: JumpingConfig, out: str | Path) -> str:
    """The command that runs one config."""
    return f"{command_of(config.as_dict())} --out {shlex.quote(str(out))}"


def command_of(config: Mapping[str, Any]) -> str:
    """The command that repeats the run of a config as result files hold it, perhaps of another version."""
    if "settings" not in config:
        return f"python -m pisces.experiments.{str(config['method']).replace('-', '_')}"
    changed = [item.partition("=")[0] for item in str(config.get("study") or "").split(",") if item]
    words = ["pisces", "train", EXPERIMENT, "--method", config["method"], "--grid", config["grid"]]
    words += ["--seed", config["seed"], "--preset", config["preset"]]
    if config.get("colors"):
        words.append("--colors")
    for name in ("epsilon", "training_tasks", "threads"):
        if name in changed or (name == "threads" and config.get(name, 1) != 1):
            words += [f"--{name.replace('_', '-')}", config[name]]
    settings = changed_settings(config)
    words += ["--set", *settings] if settings else []
    return shlex.join(map(str, words))
