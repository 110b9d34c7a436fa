"""Parses command lines without running them."""

import functools
import shlex

from tyro.extras import SubcommandApp

from pisces.cli import make_app


def parse_command(line: str) -> None:
    """Parses a line such as ``pisces train jumping --seed 1  # a comment``; ends like the command if it is none."""
    program, *words = shlex.split(line, comments=True)
    assert program == "pisces", line
    if words not in (["--version"], ["--help"]):
        silent(make_app(words)).cli(prog=program, args=words)


def silent(commands: SubcommandApp) -> SubcommandApp:
    """The same commands, all of which do nothing."""
    copy = SubcommandApp()
    for name, spec in commands._subcommands.items():
        target = spec.target
        copy.command(silent(target) if isinstance(target, SubcommandApp) else idle(target), name=name)
    return copy


def idle(function):
    @functools.wraps(function)
    def replacement(*arguments, **options):
        return None

    return replacement
