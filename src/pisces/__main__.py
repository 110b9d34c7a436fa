"""Entry point of the command `pisces`."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

from pisces.errors import EXTRAS


def main() -> int:
    """Runs the command line; a missing extra gives one line that names it."""
    _open_output()
    try:
        from pisces.cli import main as run

        return run()
    except ModuleNotFoundError as error:
        module = (error.name or "").split(".")[0]
        if module in ("", "pisces"):
            raise
        extra = dict(EXTRAS.values()).get(module, "cli")
        print(f"pisces: {module} is not installed; run: pip install 'pisces-rl[{extra}]'", file=sys.stderr)
        return 2


def _open_output() -> None:
    """Replaces output streams that were closed, and lets the others print names of files in any encoding."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
