"""Runs command lines without training."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import Any
from unittest import mock

from pisces.cli import main
from pisces.errors import UserError

STUBS = ("pisces.runs.job.Job.complete", "pisces.runs.sweep.sweep", "pisces.runs.tuning.tune")
"""Where a command would begin to train."""


def stop(*arguments: Any, **options: Any) -> None:
    raise UserError("enough")


def run_command(words: list[str], folder: Path) -> bool:
    """Runs a command that trains nothing; raises UserError with the first line if it ended with code 2."""
    output, errors = io.StringIO(), io.StringIO()
    before = Path.cwd()
    with contextlib.ExitStack() as stack:
        for name in STUBS:
            stack.enter_context(mock.patch(name, stop))
        stack.enter_context(contextlib.redirect_stdout(output))
        stack.enter_context(contextlib.redirect_stderr(errors))
        os.chdir(folder)
        try:
            code = main(words)
        except SystemExit as error:  # of the parser
            code = error.code if isinstance(error.code, int) else 0
        finally:
            os.chdir(before)
    if code == 2:
        line = errors.getvalue().strip() or output.getvalue().strip()
        raise UserError(line.splitlines()[0] if line else "")
    return code == 0
