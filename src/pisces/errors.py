"""The error that users cause and can mend, and the words it is told in."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """Input that can't be used as given.

    The message is one line, says what to do, and is what the command line prints before it exits with code 2.
    """


def unknown_name(kind: str, name: str, choices: Iterable[str]) -> UserError:
    """Returns the error for an unknown name; it lists the choices and names the nearest one."""
    options = sorted(choices)
    nearest = difflib.get_close_matches(str(name), options, n=1, cutoff=0.55)
    nearest = nearest or [option for option in options if name and option.startswith(str(name))]
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return UserError(f"expected {kind} to be one of {', '.join(options)}, got {name!r}{hint}")
