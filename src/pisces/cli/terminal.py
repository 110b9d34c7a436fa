"""Where commands print."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console

import pisces

# Without markup: paths and values from files may contain brackets.
console = Console(highlight=False, markup=False)
errors = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)

CACHE_VARIABLE = "NUMBA_CACHE_DIR"


def note_compilation() -> None:
    """Says that the first use compiles, unless compiled code is stored already."""
    folder = Path(os.environ.get(CACHE_VARIABLE) or Path(pisces.__file__).parent)
    if next(folder.rglob("*.nbi"), None) is None:
        console.print("the first use compiles numerical code, which takes about 15 s")
