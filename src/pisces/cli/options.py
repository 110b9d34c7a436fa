"""Command-line options of experiments, made from their configs."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections.abc import Iterable
from dataclasses import MISSING, Field, field, fields, is_dataclass, make_dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import tyro

from pisces.experiments.config import Config
from pisces.experiments.experiment import Experiment

Option = tuple[str, Any, Any]
"""Name, annotation and default of a field of a dataclass to be made."""


@cache
def field_docs(kind: type) -> dict[str, str]:
    """Returns the docstrings under a dataclass's fields, inherited ones included."""
    docs: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        if not is_dataclass(base):
            continue
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        body = getattr(definition, "body", [])
        for entry, after in itertools.pairwise(body):
            if isinstance(entry, ast.AnnAssign) and isinstance(after, ast.Expr):
                name, text = ast.unparse(entry.target), ast.literal_eval(after.value)
                docs[name] = " ".join(str(text).split())
    return docs


def plain_options(experiment: Experiment[Any]) -> list[Field[Any]]:
    """Returns the fields of an experiment's config that are options, except method, preset and seed."""
    known = ("method", "preset", *experiment.config_class.seed_fields)
    return [entry for entry in _plain(experiment.config_class) if entry.name not in known]


def _plain(kind: type[Config]) -> list[Field[Any]]:
    return [entry for entry in fields(kind) if entry.default is not MISSING or entry.name in ("method", "preset")]


def setting_options(experiment: Experiment[Any]) -> list[Option]:
    """Returns one option per setting of the experiment's agents; None leaves a setting as the method has it."""
    found: dict[str, Option] = {}
    for kind, owners in _setting_kinds(experiment.config_class).items():
        docs = field_docs(kind)
        for name, hint in get_type_hints(kind).items():
            if name not in found:
                kind_name = getattr(_parsed(hint), "__name__", "value").upper()
                text = f"{_help(docs.get(name, ''), hint)}{owners}"
                words = tyro.conf.arg(help=text, help_behavior_hint="(default: the method's)", metavar=kind_name)
                found[name] = (name, Annotated[_parsed(hint) | None, words], None)
    return list(found.values())


def _setting_kinds(kind: type[Config]) -> dict[type, str]:
    """The dataclasses of settings of all methods, the usual ones first; of others, a note which methods have them."""
    usual = [entry.default_factory().__class__ for entry in fields(kind) if entry.default_factory is not MISSING]
    owners: dict[type, list[str]] = {own: [] for own in usual}
    for method in kind.methods:
        for own in kind.group_types({"method": method}).values():
            owners.setdefault(own, []).append(method)
    return {own: "" if own in usual else f" Methods: {', '.join(names)}." for own, names in owners.items()}


def option(kind: type, name: str, default: Any, *, hint: Any = None, text: str = "") -> Option:
    """Returns the option of a config's field, with the field's docstring as help."""
    hint = get_type_hints(kind)[name] if hint is None else hint
    words = tyro.conf.arg(help=text or _help(field_docs(kind).get(name, ""), hint))
    return name, Annotated[_parsed(hint), words], default


def _parsed(hint: Any) -> Any:
    """Choices are parsed as strings: the config names the nearest one when a choice is unknown."""
    return str if get_origin(hint) is Literal else hint


def _help(text: str, hint: Any) -> str:
    return f"{text} One of: {', '.join(get_args(hint))}." if get_origin(hint) is Literal else text


def make_options(name: str, experiment: Experiment[Any], own: Iterable[Option], common: type) -> type:
    """Makes the dataclass that tyro turns into a command's options.

    Args:
        name: name of the class.
        experiment: the experiment.
        own: the experiment's options for this command.
        common: a dataclass of options that the command has for every experiment.
    """
    settings = make_dataclass(
        "Settings", [(n, hint, field(default=default)) for n, hint, default in setting_options(experiment)], frozen=True
    )
    settings.__doc__ = "Overrides of the method's settings."
    defaults = dict(experiment.defaults.get(name, {}))
    known = {entry.name: defaults[entry.name] for entry in fields(common) if entry.name in defaults}
    parts: list[Any] = [(n, hint, field(default=defaults.get(n, value))) for n, hint, value in own]
    flat = tyro.conf.arg(name="")
    parts.append(("common", Annotated[common, flat], field(default=common(**known))))
    parts.append(("settings", Annotated[settings, flat], field(default=settings())))
    made = make_dataclass(f"{name}-{experiment.name}", parts, frozen=True)
    made.__doc__ = experiment.summary
    return made


def given_settings(options: Any) -> dict[str, Any]:
    """Returns the settings that were given on the command line."""
    return {name: value for name, value in vars(options.settings).items() if value is not None}


def given_options(options: Any, experiment: Experiment[Any], names: Iterable[str] | None = None) -> dict[str, Any]:
    """Returns the values of an experiment's plain options."""
    chosen = [entry.name for entry in plain_options(experiment)] if names is None else names
    return {name: getattr(options, name) for name in chosen}
