"""Kills commands at random moments, runs them again, and compares what they wrote with an undisturbed run.

``python tests/fuzz/crash.py --kills 100 --out results/benchmarks/crash.json`` records a run. Every second kill is of a
command in a PID namespace of its own, where the system allows it, so that process ids repeat as in containers.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from pisces.agents.checkpoint import load_checkpoint
from pisces.files import write_atomically

UNSHARE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
IGNORED = (".lock", ".lock.heartbeat", "run.json", "study.db", "study.db-journal")
"""Files that depend on time, or stay on purpose."""


@dataclass(frozen=True)
class Scenario:
    """Commands that run at the same time; OUT stands for their folder and RUNS for that of finished runs."""

    name: str
    """Its name."""
    commands: tuple[str, ...]
    """The arguments of the commands."""


SMOKE = "--preset smoke --out OUT"
SCENARIOS = (
    Scenario("train", (f"train jumping --method randconv+pse {SMOKE}",)),
    Scenario("sweep", (f"sweep jumping --methods randconv --seeds 0-1 --workers 1 {SMOKE}",)),
    Scenario("two sweeps", (f"sweep jumping --methods randconv --seeds 0-2 --workers 1 {SMOKE}",) * 2),
    Scenario("tune", (f"tune lqr --method psm --distractors 30 --width 20 --trials 6 --workers 1 {SMOKE}",)),
    Scenario("report", ("report RUNS --projection none --out OUT",)),
)


def namespaces_allowed() -> bool:
    """Whether commands can be started in PID namespaces."""
    if shutil.which(UNSHARE[0]) is None:
        return False
    return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0


class Crasher:
    """Runs one scenario in folders of its own."""

    def __init__(self, scenario: Scenario, folder: Path, runs: Path, namespaces: bool) -> None:
        self.scenario, self.folder, self.runs, self.namespaces = scenario, folder, runs, namespaces
        started = time.monotonic()
        assert self.finish(folder / "undisturbed") == "", scenario.name
        self.seconds = time.monotonic() - started
        self.expected = content(folder / "undisturbed")

    def start(self, out: Path, isolated: bool) -> list[subprocess.Popen[str]]:
        """Starts the commands."""
        prefix = UNSHARE if isolated and self.namespaces else []
        return [
            subprocess.Popen(
                [*prefix, sys.executable, "-m", "pisces", *line.split()],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
                env={**os.environ, "SOURCE_DATE_EPOCH": "0"},
            )
            for line in (
                text.replace("OUT", str(out)).replace("RUNS", str(self.runs)) for text in self.scenario.commands
            )
        ]

    def finish(self, out: Path) -> str:
        """Runs the commands to their end; returns their errors."""
        started = self.start(out, isolated=True)
        errors = [process.communicate()[1] for process in started]
        return "".join(error for error, process in zip(errors, started, strict=True) if process.returncode)

    def kill(self, out: Path, rng: random.Random, isolated: bool) -> int:
        """Starts the commands and kills them at a random moment; returns how many were still running."""
        started = self.start(out, isolated)
        time.sleep(rng.uniform(0.1, 1) * self.seconds)
        running = [process for process in started if process.poll() is None]
        for process in started:
            if process in running:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        return len(running)

    def crash(self, kills: int, rng: random.Random) -> dict[str, Any]:
        """Kills the commands that often; returns the numbers of kills and of folders that came out different."""
        done = rounds = 0
        different: list[str] = []
        while done < kills:
            out = self.folder / f"killed-{rounds}"
            for attempt in range(rng.randrange(2, 7)):
                done += self.kill(out, rng, isolated=attempt % 2 == 0)
            errors = self.finish(out)
            found = content(out)
            wrong = sorted(
                name for name in found.keys() | self.expected.keys() if found.get(name) != self.expected.get(name)
            )
            different += [f"{self.scenario.name}: {name}" for name in wrong] + ([errors] if errors else [])
            rounds += 1
        return {"kills": done, "folders": rounds, "different": different}


def content(folder: Path) -> dict[str, bytes]:
    """The files of a folder that must not depend on kills, by name; folders that killed processes left count too."""
    ignored = (*IGNORED, "locks")
    return {
        str(path.relative_to(folder)): file_content(path) if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
        if not set(path.relative_to(folder).parts) & set(ignored)
        and not path.name.startswith(".tmp-")  # a report, which takes no lock, leaves them
    }


def file_content(path: Path) -> bytes:
    """The bytes of a file; of a checkpoint, what does not depend on time."""
    if path.suffix != ".safetensors":
        return path.read_bytes()
    tensors, numbers = load_checkpoint(path)
    arrays = b"".join(name.encode() + tensor.numpy().tobytes() for name, tensor in sorted(tensors.items()))
    return arrays + json.dumps({name: value for name, value in numbers.items() if name != "seconds"}).encode()


def crash_test(kills: int, seed: int = 0, only: str = "") -> dict[str, Any]:
    """Kills every scenario and returns the figures."""
    rng, namespaces = random.Random(seed), namespaces_allowed()
    chosen = [scenario for scenario in SCENARIOS if only in ("", scenario.name)]
    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        if any("RUNS" in command for scenario in chosen for command in scenario.commands):
            Crasher(SCENARIOS[1], runs, runs, namespaces)
        for number, scenario in enumerate(chosen):
            crasher = Crasher(scenario, Path(folder) / str(number), runs / "undisturbed", namespaces)
            rows[scenario.name] = crasher.crash(-(-kills // len(chosen)), rng)
            print(scenario.name, rows[scenario.name], flush=True)
    total = sum(row["kills"] for row in rows.values())
    lost = sum(len(row["different"]) for row in rows.values())
    return {"kills": total, "different": lost, "namespaces": namespaces, "seed": seed, "scenarios": rows}


def main(kills: int = 100, seed: int = 0, only: str = "", out: Path | None = None) -> int:
    """Kill commands and compare what they wrote with undisturbed runs.

    Args:
        kills: Number of kills, at least.
        seed: Seed of the moments.
        only: Name of one scenario; all if empty.
        out: File for the figures; an existing one keeps its other scenarios.
    """
    found = crash_test(kills, seed, only)
    if out is not None:
        before = json.loads(out.read_text()) if out.exists() and only else {"kills": 0, "different": 0, "scenarios": {}}
        merged = {**found, "scenarios": {**before["scenarios"], **found["scenarios"]}}
        merged["kills"] = sum(row["kills"] for row in merged["scenarios"].values())
        merged["different"] = sum(len(row["different"]) for row in merged["scenarios"].values())
        write_atomically(out, json.dumps(merged, indent=1) + "\n")
    return int(found["different"] > 0)


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
