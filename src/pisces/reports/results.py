"""Results of finished runs, wherever they lie below a folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pisces.experiments.store import RESULT


@dataclass(frozen=True)
class Results:
    """What a folder holds."""

    rows: tuple[dict[str, Any], ...]
    """The results, in the order of their paths."""
    damaged: tuple[Path, ...]
    """Result files that could not be read; they are left alone."""


def read_results(*roots: Path) -> Results:
    """Reads all result files below the given folders."""
    rows, damaged = [], []
    for path in sorted(path for root in roots for path in root.rglob(RESULT)):
        try:
            content = json.loads(path.read_text())
        except (OSError, ValueError):
            damaged.append(path)
            continue
        if isinstance(content, dict) and isinstance(content.get("config"), dict):
            rows.append(content)
        else:
            damaged.append(path)
    return Results(tuple(rows), tuple(damaged))
