"""Base class of run configs: methods and presets by name, overrides by field, JSON in and out."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, get_type_hints

from pisces.errors import UserError, unknown_name
from pisces.runs.store import SCHEMA, non_defaults
from pisces.validation import Interval, Seed, check_settings

MOST_THREADS = 1024


@dataclass(frozen=True, kw_only=True)
class Config(ABC):
    """One run, fully resolved: equal configs give equal results on one machine.

    Fields that are dataclasses are groups of settings. A method and a preset determine them (`method_settings`); what a
    run overrides is in `changes`.
    """

    experiment: ClassVar[str]
    """Name of the experiment."""
    methods: ClassVar[tuple[str, ...]]
    """Names of the methods."""
    presets: ClassVar[tuple[str, ...]]
    """Names of the presets."""
    seed_fields: ClassVar[tuple[str, ...]] = ("seed",)
    """Fields that runs of the same setting differ in."""
    variations: ClassVar[tuple[str, ...]] = ()
    """Fields outside the groups that count as changes when they differ from their defaults."""

    method: str
    """The method's name."""
    preset: str
    """The preset that the settings come from."""
    seed: Seed = 0
    """Seed of the run."""
    threads: Annotated[int, Interval(1, MOST_THREADS)] = 1
    """Number of CPU threads; results may differ in the last digits between numbers of threads."""

    def __post_init__(self) -> None:
        _check_names(type(self), self.method, self.preset)
        check_settings(self)

    @abstractmethod
    def method_settings(self) -> Mapping[str, Any]:
        """Returns the groups of settings that the method has under the preset, by name of the field."""

    @property
    @abstractmethod
    def where(self) -> str:
        """What the run trains on, in a few words."""

    @classmethod
    def make(
        cls, method: str, preset: str, *, seed: int = 0, changes: Mapping[str, Any] | None = None, **options: Any
    ) -> Self:
        """Resolves a method, a preset and overrides into a config.

        Args:
            method: name of the method.
            preset: name of the preset.
            seed: seed of the run.
            changes: settings that differ from the method's.
            **options: other fields of the config.
        """
        unknown = set(options) - {field.name for field in fields(cls)}
        if unknown:
            raise unknown_name("option", min(unknown), [field.name for field in fields(cls)])
        _check_names(cls, method, preset)
        draft = object.__new__(cls)  # not checked: its settings are not complete yet
        usual = {field.name: field.default for field in fields(cls)}
        for name, value in {**usual, **options, "method": method, "preset": preset, "seed": seed}.items():
            object.__setattr__(draft, name, value)
        for name, value in draft.method_settings().items():
            object.__setattr__(draft, name, value)
        return draft.override(changes or {})

    def override(self, changes: Mapping[str, Any]) -> Self:
        """Returns the config with other values of some settings."""
        groups = self.groups
        known = {name: group for group, settings in groups.items() for name in settings.__dataclass_fields__}
        parts: dict[str, dict[str, Any]] = {}
        for name, value in changes.items():
            if name not in known:
                raise unknown_name("setting", name, known)
            parts.setdefault(known[name], {})[name] = value
        return replace(self, **{group: replace(groups[group], **own) for group, own in parts.items()})

    @property
    def groups(self) -> dict[str, Any]:
        """The groups of settings by name of the field."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if is_dataclass(value)}

    @cached_property
    def changes(self) -> dict[str, Any]:
        """What differs from the method under its preset, by name."""
        usual = {field.name: field.default for field in fields(self)}
        changed = {name: getattr(self, name) for name in self.variations if getattr(self, name) != usual[name]}
        for group, standard in self.method_settings().items():
            own = getattr(self, group)
            names = own.__dataclass_fields__
            changed |= {name: getattr(own, name) for name in names if getattr(own, name) != getattr(standard, name)}
        return dict(sorted(changed.items()))

    def as_dict(self) -> dict[str, Any]:
        """Returns the config as JSON values, with the experiment, the schema and the changes."""
        return {"experiment": self.experiment, "schema": SCHEMA, **asdict(self), "changes": self.changes}

    def identity(self) -> dict[str, Any]:
        """Returns the entries that name the run: those that differ from their defaults.

        A setting that is added later, with a default that changes nothing, leaves the names of earlier runs alone.
        """
        return non_defaults(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Reads what `as_dict` wrote; settings that are missing have their defaults."""
        entries = {name: value for name, value in values.items() if name not in ("experiment", "schema", "changes")}
        try:
            for name, kind in cls.group_types(values).items():
                entries[name] = kind(**entries[name])
            return cls(**entries)
        except (TypeError, KeyError) as error:
            raise UserError(f"not a config of {cls.experiment} runs: {error}") from error

    @classmethod
    def group_types(cls, values: Mapping[str, Any]) -> dict[str, type]:
        """Returns the dataclasses of the groups in a stored config."""
        return {
            name: kind for name, kind in get_type_hints(cls).items() if isinstance(kind, type) and is_dataclass(kind)
        }

    def options(self) -> dict[str, Any]:
        """Returns the fields outside the groups that differ from their defaults, except method, preset and seed."""
        plain = [field for field in fields(self) if field.name not in ("method", "preset", "seed")]
        values = {field.name: (getattr(self, field.name), field.default) for field in plain}
        return {name: value for name, (value, usual) in values.items() if value != usual and not is_dataclass(value)}

    def command(self, out: str | Path | None = None) -> str:
        """Returns the command that does this run."""
        return command_line(
            "train", self, {"method": self.method, "preset": self.preset, **self.options(), "seed": self.seed}, out
        )

    @property
    def label(self) -> str:
        """The method, what it trains on and what it overrides, in one line."""
        return ", ".join(part for part in (self.method, self.where, self.changes_text, self.seed_group) if part)

    @property
    def seed_group(self) -> str:
        """What the seed is for, if not for results; statistics are over seeds of one group."""
        return ""

    @property
    def changes_text(self) -> str:
        """What sets the run apart from its method: options, overrides and the preset unless it is the usual one."""
        known = self.where.replace(",", " ").split()
        shown = {k: v for k, v in self.options().items() if (k if v is True else str(v)) not in known}
        parts = [_option_text(name, value) for name, value in {**shown, **self.changes}.items()]
        parts += [f"preset {self.preset}"] if self.preset != self.presets[0] else []
        return ", ".join(parts)


def _check_names(kind: type[Config], method: str, preset: str) -> None:
    for label, name, choices in (("method", method, kind.methods), ("preset", preset, kind.presets)):
        if name not in choices:
            raise unknown_name(label, name, choices)


def _option_text(name: str, value: Any) -> str:
    if value is True:
        return name
    return f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"


def command_line(command: str, config: Config, options: Mapping[str, Any], out: str | Path | None) -> str:
    """Returns a command with some options, the settings that a config overrides, and the root of the run folders."""
    words = ["pisces", command, config.experiment]
    for name, value in options.items():
        words += [_option(name)] if value is True else [_option(name), str(value)]
    for name, value in config.changes.items():
        words += [] if name in config.variations else [_option(name), str(value)]
    words += [] if out is None else ["--out", str(out)]
    return shlex.join(words)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
