"""The command `pisces`: parses arguments and hands over; slow imports wait for the command that needs them."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import tyro

import pisces
from pisces.cli.about import citation, completion
from pisces.cli.show import demo, doctor, evaluate, metric, report
from pisces.cli.sweep import sweep, sweep_options
from pisces.cli.terminal import console, errors
from pisces.cli.train import train, train_options
from pisces.cli.tune import tune, tune_options
from pisces.errors import UserError
from pisces.experiments import registry
from pisces.files import printable

# Lines that start with a sign keep their place in tyro's help.
DESCRIPTION = """Behavioral similarity for reinforcement learning: metrics, losses, experiments.

First steps:
$ pisces demo                       # train without and with policy similarity embeddings; writes a page
$ pisces doctor                     # check your installation
$ pisces metric x.npz y.npz         # distances between the states of two trajectories or MDPs
$ pisces metric agent_a agent_b     # compare two agents by their episodes, folders of trajectories; writes a page

Experiments; rerun a command to resume it:
$ pisces train jumping --method randconv+pse --preset quick
$ pisces sweep jumping --methods randconv,randconv+pse --seeds 0-9 --workers 2
$ pisces tune jumping --method pse --trials 30 --workers 2
$ pisces report runs --out report

Every command explains its options, e.g. pisces train jumping --help; pisces --version prints the version."""
BROKEN_PIPE = 128 + getattr(signal, "SIGPIPE", 13)  # which Windows does not have
"""Exit code of a program whose reader has gone."""
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO)
MEMORY_WORDS = ("allocat", "not enough memory", "overflow", "negative dimension")
"""What torch says when a tensor is too large."""

PER_EXPERIMENT: dict[str, tuple[str, Callable[[Any], type], Callable[[Any, Any], None]]] = {
    "train": ("Run one experiment.", train_options, train),
    "sweep": ("Run many experiments; rerun to fill gaps.", sweep_options, sweep),
    "tune": ("Search for settings on validation data; rerun to resume.", tune_options, tune),
}
"""The commands that every experiment has: help, options, and what they do."""


def make_app(arguments: Sequence[str] | None = None) -> tyro.extras.SubcommandApp:
    """Returns the commands.

    Args:
        arguments: the arguments to parse; options of commands and experiments that they do not name are left out,
            because making them takes a while. None for all options.
    """
    app = tyro.extras.SubcommandApp()
    for name, (text, make_options, run) in PER_EXPERIMENT.items():
        if arguments is None or list(arguments[:1]) == [name]:
            app.command(_experiments_app(make_options, run, arguments), name=name, help=text)
        else:
            app.command(name=name, help=text)(lambda: None)
    for command in (demo, metric, report, evaluate, doctor):
        app.command(command)
    app.command(help="Print a script that completes commands and options in a shell.")(completion)
    app.command(help="Print BibTeX entries of the paper and of this software.")(citation)
    return app


def _experiments_app(
    make_options: Callable[[Any], type], run: Callable[[Any, Any], None], arguments: Sequence[str] | None
) -> tyro.extras.SubcommandApp:
    """Returns one command for every experiment."""
    named = [name for name in registry.EXPERIMENTS if arguments is not None and name in arguments[1:2]]
    group = tyro.extras.SubcommandApp()
    for name in registry.EXPERIMENTS:
        experiment = registry.experiment(name)
        command = (lambda: None) if named and name not in named else _command(experiment, make_options(experiment), run)
        group.command(name=name, help=experiment.summary)(command)
    return group


def _command(experiment: Any, options: type, run: Callable[[Any, Any], None]) -> Callable[..., None]:
    def command(options: Any = None) -> None:
        run(experiment, options)

    command.__annotations__ = {"options": Annotated[options, tyro.conf.arg(name="")], "return": None}
    command.__defaults__ = (options(),)
    return command


def _output_is_closed() -> bool:
    """Whether the reader of the output, `head` say, has gone; then Python must not write again when it ends."""
    try:
        print(flush=True)
    except BrokenPipeError:
        _silence()
        return True
    return False


def _flush() -> None:
    """Flushes the output, or drops what a full disk does not take, so that Python does not try again at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        _silence()


def _silence() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explain(error: Exception) -> str | None:
    """Returns the line for an error that the machine or extreme numbers cause; None if it is a bug."""
    if isinstance(error, FileNotFoundError):
        return f"{error.filename!r} is missing; was the folder deleted while the command ran?"
    if isinstance(error, OSError) and error.errno in DISK_ERRORS:
        return f"the disk cannot be written to: {error}; finished results are safe"
    if isinstance(error, OSError):
        return str(error)
    words = " ".join(str(error).split())
    if isinstance(error, OverflowError):
        return f"a number is too large: {words}"
    if isinstance(error, MemoryError) or any(word in words.lower() for word in MEMORY_WORDS):
        return f"not enough memory: {printable(words)}; choose smaller sizes".replace(": ;", ";")
    return None


def _run(arguments: Sequence[str]) -> int:
    try:
        if any("\0" in argument for argument in arguments):
            raise UserError("an argument contains a NUL character")
        make_app(arguments).cli(prog="pisces", description=DESCRIPTION, args=arguments)
        sys.stdout.flush()
    except UserError as error:
        errors.print(f"pisces: {error}")
        return 2
    except BrokenPipeError:
        if not _output_is_closed():
            raise
        return BROKEN_PIPE
    except (OSError, MemoryError, OverflowError, RuntimeError) as error:
        line = _explain(error)
        if line is None:
            raise
        errors.print(f"pisces: {line}")
        _flush()
        return 2
    except KeyboardInterrupt:
        errors.print("pisces: interrupted; rerun the command to resume")
        return 130
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments in (["--version"], ["-V"]):
        console.print(f"pisces {pisces.__version__}")
        return 0
    return _run(arguments)
