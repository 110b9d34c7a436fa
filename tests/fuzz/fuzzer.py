"""Mutates every kind of file that the software reads, and command lines.

A case passes if the answer is the one before, or if the input is refused with one line (the command line then exits
with code 2). ``python tests/fuzz/fuzzer.py --cases 20000 --out results/benchmarks/fuzz.json`` records a long run.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]

import tyro
from command_cases import run_command
from mutations import mutate_bytes, mutate_json, mutate_words
from targets import TARGETS, Target

from pisces.errors import UserError
from pisces.files import write_atomically

SECONDS = 30
"""A case that takes longer counts as a hang."""
LINE = 4000
"""The longest line that a refusal may be."""
COMMANDS = "command line"


@dataclass
class Count:
    """What happened in the cases of one kind."""

    same: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)


class HangError(Exception):
    """A case took too long."""


@contextlib.contextmanager
def time_limit() -> Iterator[None]:
    def stop(number: int, frame: Any) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(read: Callable[[], Any], agrees: Callable[[Any], bool]) -> str:
    """Returns "same", "refused", or what is wrong."""
    try:
        with time_limit(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = read()
    except UserError as error:
        line = str(error)
        return "refused" if line and "\n" not in line and len(line) < LINE else f"not one line: {line!r}"
    except HangError:
        return "hangs"
    except Exception:
        return traceback.format_exc()
    return "same" if agrees(answer) else f"another answer: {str(answer)[:300]}"


class FileFuzzer:
    """The files of one target, as they were made, and the answer that they give."""

    def __init__(self, target: Target, folder: Path) -> None:
        self.target, self.folder = target, folder
        folder.mkdir(parents=True)
        target.make(folder)
        found = sorted({path for pattern in target.files for path in folder.glob(pattern)})
        self.files = {path: path.read_bytes() for path in found}
        assert self.files, target.name
        self.answer = target.read(folder)

    def case(self, rng: random.Random) -> str:
        """Mutates one file, reads it, and puts it back."""
        path = rng.choice(list(self.files))
        self._spoil(rng, path)
        try:
            return outcome(lambda: self.target.read(self.folder), lambda new: self.target.agrees(new, self.answer))
        finally:
            for one, content in self.files.items():
                if not one.is_file() or one.is_symlink() or one.read_bytes() != content:
                    if one.is_dir():
                        one.rmdir()
                    one.unlink(missing_ok=True)
                    one.write_bytes(content)

    def _spoil(self, rng: random.Random, path: Path) -> None:
        content = self.files[path]
        kind = rng.random()
        if kind < 0.98:
            structured = path.suffix == ".json" and kind < 0.5
            path.write_bytes((mutate_json if structured else mutate_bytes)(rng, content))
            return
        path.unlink()
        if kind < 0.985:
            os.mkfifo(path)
        elif kind < 0.99:
            path.mkdir()
        elif kind < 0.995:
            path.symlink_to(path.name)
        else:
            path.write_bytes(b"")


def fuzz(cases: int, commands: int, seed: int, report: Callable[[int], None] = lambda done: None) -> dict[str, Count]:
    """Runs cases and counts what happened, by kind.

    Args:
        cases: number of mutated files.
        commands: number of mutated command lines.
        seed: seed of the mutations.
        report: called with the number of cases done.
    """
    counts: dict[str, Count] = {}
    with tempfile.TemporaryDirectory() as folder:
        fuzzers = [FileFuzzer(target, Path(folder) / str(number)) for number, target in enumerate(TARGETS)]
        weights = [target.weight for target in TARGETS]
        for number in range(cases):
            rng = random.Random(f"{seed} {number}")  # so that a case can be repeated alone
            one = rng.choices(fuzzers, weights)[0]
            _count(counts, one.target.name, one.case(rng), f"case {number} of seed {seed}")
            report(number + 1)
        for number in range(commands):
            rng = random.Random(f"{seed} command {number}")
            words = mutate_words(rng, rng.choice(command_lines(Path(folder))))
            _count(counts, COMMANDS, outcome(lambda w=words: run_command(w, Path(folder)), bool), f"pisces {words!r}")
            report(cases + number + 1)
    return counts


def command_lines(folder: Path) -> list[list[str]]:
    """Command lines that are right."""
    text = Path(__file__).with_name("command_lines.txt").read_text()
    return [line.replace("FOLDER", str(folder)).split() for line in text.splitlines() if line]


def _count(counts: dict[str, Count], name: str, found: str, where: str) -> None:
    count = counts.setdefault(name, Count())
    if found in ("same", "refused"):
        setattr(count, found, getattr(count, found) + 1)
    else:
        count.failures.append(f"{name}, {where}: {found}")


def summary(counts: dict[str, Count]) -> dict[str, Any]:
    """The numbers of a run."""
    rows = {
        name: {"same": one.same, "refused": one.refused, "failures": len(one.failures)}
        for name, one in sorted(counts.items())
    }
    total = Counter[str]()
    for row in rows.values():
        total.update(row)
    return {
        "cases": sum(total.values()),
        **{name: total[name] for name in ("same", "refused", "failures")},
        "kinds": rows,
    }


def main(cases: int = 19_800, commands: int = 200, seed: int = 0, out: Path | None = None) -> int:
    """Run many cases and print what happened.

    Args:
        cases: Number of mutated files.
        commands: Number of mutated command lines.
        seed: Seed of the mutations.
        out: File for the numbers; runs of several seeds add up there.
    """
    counts = fuzz(cases, commands, seed, lambda done: print(done, end="\r") if done % 100 == 0 else None)
    found = {"seed": seed, **summary(counts)}
    for one in counts.values():
        for failure in one.failures[:20]:
            print(failure)
    print(json.dumps(found, indent=1))
    if out is not None:
        before = json.loads(out.read_text()) if out.exists() else []
        write_atomically(out, json.dumps([*before, found], indent=1) + "\n")
    return int(found["failures"] > 0)


if __name__ == "__main__":
    with contextlib.redirect_stderr(io.StringIO()) if os.environ.get("QUIET") else contextlib.nullcontext():
        sys.exit(tyro.cli(main))
