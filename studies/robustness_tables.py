"""The table of the fuzzer's figures, which `make fuzz` records."""

from __future__ import annotations

import json
from pathlib import Path

FUZZ = Path("benchmarks/fuzz.json")


def fuzz_table(root: Path) -> str:
    """Cases of the fuzzer by kind of file, all seeds together."""
    sums: dict[str, list[int]] = {}
    for run in json.loads((root / FUZZ).read_text()):
        for kind, row in run["kinds"].items():
            values = [row["same"], row["refused"], row["failures"]]
            sums[kind] = [a + b for a, b in zip(sums.get(kind, [0, 0, 0]), values, strict=True)]
    sums["all"] = [sum(column) for column in zip(*sums.values(), strict=True)]
    lines = ["| kind | cases | same answer | refused with one line | failures |", "|---|---:|---:|---:|---:|"]
    lines += [f"| {kind} | {sum(row)} | {row[0]} | {row[1]} | {row[2]} |" for kind, row in sums.items()]
    return "\n".join(lines) + "\n"
