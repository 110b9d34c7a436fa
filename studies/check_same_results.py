"""Checks that a refactoring changes no number: ``python studies/check_same_results.py [--only EXPERIMENT]``.

Short runs of every method are compared, bit for bit, with those recorded in same_results.json. Floating-point results
depend on the CPU and on the versions of the libraries, so record them first on another machine:
``python studies/check_same_results.py --record RUNS`` records the finished runs below a folder.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tyro
from rich.progress import track

from pisces.experiments.registry import experiment
from pisces.files import write_atomically
from pisces.runs.job import Job
from pisces.runs.machine import machine_info
from pisces.runs.store import RESULT, RunFolder

RECORD = Path(__file__).with_name("same_results.json")
NAMES = ("experiment", "schema", "config")
"""Entries of a result that are not compared: they describe the run."""


def digest(values: Mapping[str, Any]) -> str:
    """Returns the SHA-256 of canonical JSON."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def record_runs(runs: Path) -> None:
    """Records the finished runs below a folder."""
    cases = []
    for path in sorted(runs.rglob(RESULT)):
        result = RunFolder(path.parent).read_result()
        values = {name: value for name, value in result.items() if name not in NAMES}
        cases.append({"config": result["config"], "entries": sorted(values), "sha256": digest(values)})
    content = {"machine": machine_info(), "cases": cases}
    write_atomically(RECORD, json.dumps(content, indent=1, sort_keys=True) + "\n")
    print(f"{len(cases)} runs recorded")


def differs(case: Mapping[str, Any], out: Path) -> str | None:
    """Runs a case; returns its command if a number differs from the recorded one."""
    chosen = experiment(case["config"]["experiment"])
    config = chosen.config_class.from_dict(case["config"])
    result = Job(chosen, config).run(out).read_result()
    values = {name: result.get(name) for name in case["entries"]}
    return None if digest(values) == case["sha256"] else config.command()


def main(only: str = "", record: Path | None = None) -> int:
    """Compare short runs with the recorded ones, bit for bit.

    Args:
        only: Name of an experiment; all if empty.
        record: Record the finished runs below this folder instead.
    """
    if record is not None:
        record_runs(record)
        return 0
    stored = json.loads(RECORD.read_text())
    cases = [case for case in stored["cases"] if only in ("", case["config"]["experiment"])]
    with tempfile.TemporaryDirectory() as out:
        found = [differs(case, Path(out)) for case in track(cases, "runs")]
    for command in filter(None, found):
        print(f"differs: {command}")
    print(f"{len(cases)} runs compared, {sum(command is not None for command in found)} differ")
    if any(found) and stored["machine"] != machine_info():
        print("they were recorded on another machine; record them there with the earlier version first")
    return int(any(found))


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
