"""How long people wait for commands that show something: the report of many runs, its page, doctor and --help.

python benchmarks/report_page.py [runs ...]

Times are those of the processor. A loop of additions in Python, timed at the start and at the end, says how fast the
machine was meanwhile. Runs are committed results with random changes: outcomes, actions and curves of no two runs are
the same, so that the page does not compress better than real ones do. Without playwright or Chromium, the page is not
opened.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pisces.runs.store import RESULT

RESULTS = Path(__file__).parents[1] / "results" / "jumping"
METHODS = ("dropout+l2", "pse", "randconv", "randconv+pse", "randconv+pi-bisimulation")
COUNTS = (1000, 5000)
COMMANDS = (
    "doctor", "--help", "train --help", "train jumping --help", "train distracting --help", "sweep --help",
    "sweep jumping --help", "tune --help", "tune lqr --help", "report --help", "metric --help", "evaluate --help",
)  # fmt: skip
OPENINGS = 3


def write_runs(root: Path, count: int) -> None:
    """Writes results that differ in method, changed setting, seed, outcomes, actions and curves."""
    rng = random.Random(0)
    originals = [next((RESULTS / method).glob("*/result.json")).read_text() for method in METHODS]
    for number in range(count):
        result = varied(json.loads(originals[number % len(METHODS)]), rng)
        result["config"]["seed"] = number // (2 * len(METHODS))
        result["config"]["settings"]["weighted"] = bool(number // len(METHODS) % 2)
        folder = root / "jumping" / result["config"]["method"] / f"{number:012d}"
        folder.mkdir(parents=True)
        (folder / RESULT).write_text(json.dumps(result))


def varied(result: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Changes a tenth of the outcomes, the actions in those tasks, and all percentages."""
    changed = [rng.random() < 0.1 for _ in result["solved"]]
    result["solved"] = "".join(
        str(int(flag) ^ new) for flag, new in zip(map(int, result["solved"]), changed, strict=True)
    )
    for place, new in enumerate(changed):
        if new:
            actions = result["actions"][place]
            jump = rng.randrange(len(actions))
            result["actions"][place] = "0" * jump + "1" + "0" * (len(actions) - jump - 1)
    for row in result["curve"]:
        row |= {name: rng.uniform(0.9, 1) * value for name, value in row.items() if name.endswith("_percent")}
    result["test_solved_percent"] *= rng.uniform(0.9, 1)
    return result


def run(*words: str) -> tuple[float, float]:
    """Runs ``pisces``; returns seconds of processor and the largest memory in MB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    program = (
        "import sys, resource; from pisces.cli import main; code = main();"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, file=sys.stderr); sys.exit(code)"
    )
    command = [sys.executable, "-c", program, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    last = done.stderr.strip().splitlines()[-1:]
    return seconds, float(last[0]) if last and last[0].replace(".", "").isdigit() else float("nan")


def loop() -> float:
    """Seconds of processor of ten million additions, half a second on a free core of 2024."""
    started, total = time.process_time(), 0
    for number in range(10_000_000):
        total += number
    return time.process_time() - started


def open_page(page: Path) -> tuple[float, float] | None:
    """Seconds from the request until the load event and until everything is drawn; None without a browser."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if path is None:
        return None
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 1200, "height": 900})
        started = time.perf_counter()
        view.goto(page.as_uri(), wait_until="load")
        loaded = time.perf_counter() - started
        view.wait_for_selector("html[data-ready=yes]")
        ready = time.perf_counter() - started
        browser.close()
    return loaded, ready


def measure_report(count: int) -> None:
    """Prints what a report of so many runs takes."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write_runs(root / "runs", count)
        seconds, memory = run("report", str(root / "runs"), "--out", str(root / "report"))
        page = root / "report" / "report.html"
        size = page.stat().st_size / 1e6
        print(f"report of {count} runs: {seconds:.1f} s, {memory:.0f} MB, page of {size:.2f} MB", flush=True)
        times = [found for _ in range(OPENINGS) if (found := open_page(page)) is not None]
    if times:
        loaded, ready = (min(column) for column in zip(*times, strict=True))
        print(
            f"  load event after {loaded:.2f} s, everything drawn after {ready:.2f} s (best of {OPENINGS})", flush=True
        )


def main() -> None:
    """Prints times and sizes."""
    os.environ["OMP_NUM_THREADS"] = "1"
    counts = [int(word) for word in sys.argv[1:]] or COUNTS
    print(f"ten million additions: {loop():.2f} s")
    for count in counts:
        measure_report(count)
    for command in COMMANDS:
        print(f"pisces {command}: {min(run(*command.split())[0] for _ in range(OPENINGS)):.2f} s", flush=True)
    print(f"ten million additions: {loop():.2f} s")


if __name__ == "__main__":
    main()
