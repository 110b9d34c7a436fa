"""The command `pisces`: parses arguments and hands over; slow imports wait for the command that needs them."""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence

import tyro

import pisces
from pisces.cli.show import demo, doctor, evaluate, metric, report
from pisces.cli.sweep import sweep
from pisces.cli.terminal import console, errors
from pisces.cli.train import train
from pisces.errors import UserError

DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO)

app = tyro.extras.SubcommandApp()
app.command(train, name="train", help="Run one experiment.")
app.command(sweep, name="sweep", help="Run many experiments; the same command again does what is missing.")
for command in (demo, metric, report, evaluate, doctor):
    app.command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments in (["--version"], ["-V"]):
        console.print(f"pisces {pisces.__version__}")
        return 0
    try:
        app.cli(prog="pisces", description="Behavioural similarity for reinforcement learning.", args=arguments)
    except UserError as error:
        errors.print(f"pisces: {error}", markup=False)
        return 2
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
