"""Keeps the tables in documents equal to the committed results: `python -m pisces.reports.readme results README.md`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pisces.reports.lqr import lqr_table
from pisces.reports.lqr_ablation import ablation_table, sparsity_table
from pisces.reports.results import read_results
from pisces.reports.tables import jumping_table

TABLES: Mapping[str, Callable[[tuple[dict[str, Any], ...]], str]] = {
    "jumping": jumping_table,
    "lqr": lqr_table,
    "lqr_ablation": ablation_table,
    "lqr_sparsity": sparsity_table,
}


def fill(document: str, results: tuple[dict[str, Any], ...]) -> str:
    """Replaces what stands between ``<!-- table: NAME -->`` and ``<!-- end -->`` by the table of that name."""

    def replace(match: re.Match[str]) -> str:
        return f"<!-- table: {match[1]} -->\n{TABLES[match[1]](results)}<!-- end -->"

    return re.sub(r"<!-- table: (\w+) -->\n.*?<!-- end -->", replace, document, flags=re.DOTALL)


def main(arguments: list[str]) -> None:
    """Fills the tables of the documents (all arguments but the first) from the results in a folder (the first)."""
    results = read_results(Path(arguments[0])).rows
    for name in arguments[1:]:
        path = Path(name)
        path.write_text(fill(path.read_text(), results))


if __name__ == "__main__":
    main(sys.argv[1:])
