"""The command `pisces`: parses arguments and hands over; slow imports wait for the command that needs them."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Sequence

import tyro

import pisces
from pisces.cli.about import citation, completion
from pisces.cli.show import demo, doctor, evaluate, metric, report
from pisces.cli.sweep import sweep
from pisces.cli.terminal import console, errors
from pisces.cli.train import train
from pisces.cli.tune import tune
from pisces.errors import UserError

# Lines that start with a sign keep their place in tyro's help.
DESCRIPTION = """Behavioural similarity for reinforcement learning: metrics, losses, and experiments with them.

First steps:
$ pisces demo                       # train without and with policy similarity embeddings; writes a page
$ pisces doctor                     # what works on this machine, and how to mend the rest
$ pisces metric x.npz y.npz         # distances between the states of two trajectories or MDPs

Experiments; a command that was stopped goes on when it is given again:
$ pisces train jumping --method randconv+pse --preset quick
$ pisces sweep jumping --methods randconv,randconv+pse --seeds 0-9 --workers 2
$ pisces tune jumping --method pse --trials 30 --workers 2
$ pisces report runs --out report

Every command explains its options, e.g. pisces train jumping --help; pisces --version tells the version."""
BROKEN_PIPE = 128 + signal.SIGPIPE
"""What a shell says of a program whose reader has gone."""
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO)

app = tyro.extras.SubcommandApp()
app.command(train, name="train", help="Run one experiment.")
app.command(sweep, name="sweep", help="Run many experiments; the same command again does what is missing.")
app.command(tune, name="tune", help="Search for settings on validation data; the same command again goes on.")
for command in (demo, metric, report, evaluate, doctor):
    app.command(command)
app.command(help="Print a script that completes commands and options in a shell.")(completion)
app.command(help="Print BibTeX entries of the paper and of this software.")(citation)


def _output_is_closed() -> bool:
    """Whether the reader of the output, `head` say, has gone; if so, Python shall not try once more at its end."""
    try:
        print(flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments in (["--version"], ["-V"]):
        console.print(f"pisces {pisces.__version__}")
        return 0
    try:
        app.cli(prog="pisces", description=DESCRIPTION, args=arguments)
        sys.stdout.flush()
    except UserError as error:
        errors.print(f"pisces: {error}", markup=False)
        return 2
    except BrokenPipeError:
        if not _output_is_closed():
            raise
        return BROKEN_PIPE
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        errors.print(
            f"pisces: expected a disk that can be written to, got: {error}; results so far are safe", markup=False
        )
        return 2
    except KeyboardInterrupt:
        errors.print("pisces: stopped; the same command goes on from here")
        return 130
    return 0
