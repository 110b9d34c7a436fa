"""Tables of the figures that `make fuzz` and `make crash-test` record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FUZZ = Path("benchmarks/fuzz.json")
CRASH = Path("benchmarks/crash.json")


def fuzz_table(root: Path) -> str:
    """Cases of the fuzzer by kind of file, all seeds together."""
    sums: dict[str, list[int]] = {}
    for run in _read(root / FUZZ):
        for kind, row in run["kinds"].items():
            values = [row["same"], row["refused"], row["failures"]]
            sums[kind] = [a + b for a, b in zip(sums.get(kind, [0, 0, 0]), values, strict=True)]
    sums["all"] = [sum(column) for column in zip(*sums.values(), strict=True)]
    lines = ["| kind | cases | same answer | refused with one line | failures |", "|---|---:|---:|---:|---:|"]
    lines += [f"| {kind} | {sum(row)} | {row[0]} | {row[1]} | {row[2]} |" for kind, row in sums.items()]
    return "\n".join(lines) + "\n"


def crash_table(root: Path) -> str:
    """Kills by scenario, and the number of files that came out different."""
    columns = ("kills", "in_namespaces", "folders")
    rows = {name: [row[c] for c in columns] + [len(row["different"])] for name, row in _read(root / CRASH).items()}
    rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    lines = ["| commands | kills | in a PID namespace | folders | files that differ |", "|---|---:|---:|---:|---:|"]
    return "\n".join(lines + [f"| {name} | {' | '.join(map(str, row))} |" for name, row in rows.items()]) + "\n"


def _read(path: Path) -> Any:
    return json.loads(path.read_text())
