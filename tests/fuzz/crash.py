"""Kills commands at random moments, runs them again, and compares what they wrote with an undisturbed run.

``python tests/fuzz/crash.py --kills 100 --out results/benchmarks/crash.json`` records a run. Every second kill is of a
command in a PID namespace of its own, where the system allows it, so that process ids repeat as in containers. Of the
others, some end the command alone: its worker processes live on for a few seconds, beside those of the next command.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

import pisces.cli
import pisces.experiments.jumping.run
import pisces.experiments.lqr.run
import pisces.reports.report
from pisces.agents.checkpoint import load_checkpoint
from pisces.errors import UserError
from pisces.files import TEMPORARY, write_atomically

NEW_PID_NAMESPACE, DIE_WITH_PARENT = 0x20000000, 1
"""Arguments of Linux's unshare and prctl."""
IGNORED = (".lock", ".lock.heartbeat", "run.json", "study.db", "study.db-journal", "locks")
"""Files and folders that depend on time, or stay on purpose."""


@dataclass(frozen=True)
class Scenario:
    """Commands that run at the same time; OUT stands for their folder and RUNS for that of finished runs."""

    name: str
    """Its name."""
    commands: tuple[str, ...]
    """The arguments of the commands."""
    locked: bool = True
    """Whether the commands lock what they write, so that the next one may remove what a killed one left."""


SMOKE = "--preset smoke --out OUT"
SMALL = f"--distractors 30 --width 20 --workers 1 {SMOKE}"
SCENARIOS = (
    Scenario("train", (f"train jumping --method randconv+pse {SMOKE}",)),
    Scenario("sweep", (f"sweep lqr --methods psm,l1 {SMALL}",)),
    Scenario("two sweeps", (f"sweep lqr --methods psm,l1 {SMALL}",) * 2),
    Scenario("tune", (f"tune lqr --method psm --trials 6 {SMALL}",)),
    Scenario("report", ("report RUNS --projection none --out OUT",), locked=False),
)


def enter_namespace() -> None:
    """Goes on as the first process of a new PID namespace; raises OSError where that is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_PID_NAMESPACE):
        raise OSError(ctypes.get_errno(), "unshare failed")
    child = os.fork()
    if child:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)
    libc.prctl(DIE_WITH_PARENT, signal.SIGKILL)


def namespaces_allowed() -> bool:
    """Whether commands can be started in PID namespaces."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    try:
        enter_namespace()
        os._exit(0)
    except (OSError, AttributeError):
        os._exit(1)


def start_command(words: list[str], errors: Path, isolated: bool) -> int:
    """Runs ``pisces`` in a process and session of its own; returns its id.

    The process is a copy of this one, so that kills fall into the work and not into the imports before it.
    """
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setsid()
        os.environ["SOURCE_DATE_EPOCH"] = "0"
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(os.open(errors, os.O_WRONLY | os.O_APPEND | os.O_CREAT), 2)
        if isolated:
            enter_namespace()
        code = pisces.cli.main(words)
    finally:
        os._exit(code)


class Crasher:
    """Runs one scenario in folders of its own."""

    def __init__(self, scenario: Scenario, folder: Path, runs: Path, namespaces: bool) -> None:
        self.scenario, self.folder, self.runs, self.namespaces = scenario, folder, runs, namespaces
        self.errors = folder / "errors.txt"
        folder.mkdir()
        started = time.monotonic()
        assert self.finish(folder / "undisturbed") == "", scenario.name
        self.seconds = time.monotonic() - started
        self.expected = self.content(folder / "undisturbed")

    def start(self, out: Path, isolated: bool) -> list[int]:
        """Starts the commands; returns the ids of their processes."""
        lines = [text.replace("OUT", str(out)).replace("RUNS", str(self.runs)) for text in self.scenario.commands]
        return [start_command(line.split(), self.errors, isolated and self.namespaces) for line in lines]

    def finish(self, out: Path) -> str:
        """Runs the commands to their end; returns what they printed if one failed."""
        self.errors.write_bytes(b"")
        statuses = [os.waitpid(process, 0)[1] for process in self.start(out, isolated=True)]
        return f"{statuses} {self.errors.read_text()}" if any(statuses) else ""

    def kill(self, out: Path, rng: random.Random, isolated: bool) -> int:
        """Starts the commands and kills them at a random moment; returns how many were still running."""
        started = self.start(out, isolated)
        time.sleep(rng.uniform(0.02, 1) * self.seconds)
        kill = rng.choice((os.killpg, os.kill))  # with or without worker processes
        running = [process for process in started if os.waitpid(process, os.WNOHANG) == (0, 0)]
        for process in running:
            kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        return len(running)

    def content(self, out: Path) -> dict[str, bytes]:
        """What the commands wrote."""
        return {
            name: text
            for name, text in content(out).items()
            if self.scenario.locked or not Path(name).name.startswith(TEMPORARY)
        }

    def crash(self, kills: int, rng: random.Random) -> Iterator[dict[str, Any]]:
        """Kills the commands that often; yields, folder by folder, the numbers so far and what came out different."""
        done, isolated, rounds = 0, 0, 0
        different: list[str] = []
        while done < kills:
            out = self.folder / f"killed-{rounds}"
            for attempt in range(rng.randrange(2, 7)):
                count = self.kill(out, rng, isolated=attempt % 2 == 0)
                done, isolated = done + count, isolated + count * (self.namespaces and attempt % 2 == 0)
                if not count:  # the commands have ended: nothing is left to kill here, and they are faster than thought
                    self.seconds *= 0.8
                    break
            errors = self.finish(out)
            found = self.content(out)
            wrong = sorted(
                name for name in found.keys() | self.expected.keys() if found.get(name) != self.expected.get(name)
            )
            different += [f"{self.scenario.name}: {name}" for name in wrong] + ([errors] if errors else [])
            rounds += 1
            yield {"kills": done, "in_namespaces": isolated, "folders": rounds, "different": different}


def content(folder: Path) -> dict[str, bytes]:
    """The files of a folder that must not depend on kills, by name; what killed processes left counts too."""
    return {
        str(path.relative_to(folder)): file_content(path) if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
        if not set(path.relative_to(folder).parts) & set(IGNORED)
    }


def file_content(path: Path) -> bytes:
    """The bytes of a file; of a checkpoint, what does not depend on time."""
    if path.suffix != ".safetensors":
        return path.read_bytes()
    tensors, numbers = load_checkpoint(path)
    arrays = b"".join(name.encode() + tensor.numpy().tobytes() for name, tensor in sorted(tensors.items()))
    return arrays + json.dumps({name: value for name, value in numbers.items() if name != "seconds"}).encode()


def crash_test(scenario: Scenario, kills: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Kills one scenario and yields its figures so far."""
    namespaces = namespaces_allowed()
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        if any("RUNS" in command for command in scenario.commands):
            Crasher(SCENARIOS[0], runs, runs, namespaces)
        crasher = Crasher(scenario, Path(folder) / "killed", runs / "undisturbed", namespaces)
        yield from crasher.crash(kills, random.Random(f"{scenario.name} {seed}"))


def main(kills: int = 100, seed: int = 0, only: str = "", out: Path | None = None) -> int:
    """Kill commands and compare what they wrote with undisturbed runs.

    Args:
        kills: Number of kills, at least.
        seed: Seed of the moments.
        only: Name of one scenario; all if empty.
        out: File for the figures, replaced again and again; with `only`, other scenarios in it are kept.
    """
    chosen = [scenario for scenario in SCENARIOS if only in ("", scenario.name)]
    if not chosen:
        raise UserError(f"no scenario has the name {only!r}")
    rows: dict[str, Any] = json.loads(out.read_text()) if out is not None and out.exists() and only else {}
    for scenario in chosen:
        for found in crash_test(scenario, -(-kills // len(chosen)), seed):
            rows[scenario.name] = found
            print(scenario.name, found, flush=True)
            if out is not None:
                write_atomically(out, json.dumps(rows, indent=1) + "\n")
    return int(any(rows[scenario.name]["different"] for scenario in chosen))


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
