"""Entry point of the command `pisces`."""

from __future__ import annotations

import sys

from pisces.errors import EXTRAS


def main() -> int:
    """Runs the command line; a missing extra gives one line that names it."""
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


if __name__ == "__main__":
    sys.exit(main())
