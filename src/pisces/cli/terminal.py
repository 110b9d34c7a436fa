"""Where commands print."""

from __future__ import annotations

from rich.console import Console

# Without markup: paths and values from files may contain brackets.
console = Console(highlight=False, markup=False)
errors = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
