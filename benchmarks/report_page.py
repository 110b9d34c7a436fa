"""How soon the report's page can be used: writes a report of many made-up runs and opens it in headless Chromium.

python benchmarks/report_page.py [runs]
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from pisces.experiments.registry import all_experiments
from pisces.reports.report import write_report

RESULTS = Path(__file__).parents[1] / "results" / "jumping"
METHODS = ("dropout+l2", "pse", "randconv", "randconv+pse", "randconv+pi-bisimulation")
OPENINGS = 3


def write_runs(root: Path, count: int) -> None:
    """Copies committed results into many run folders that differ in method, changed setting and seed."""
    originals = [json.loads(next((RESULTS / method).glob("*/result.json")).read_text()) for method in METHODS]
    for number in range(count):
        result = originals[number % len(METHODS)]
        result["config"]["seed"] = number // (2 * len(METHODS))
        result["config"]["settings"]["weighted"] = bool(number // len(METHODS) % 2)
        folder = root / "jumping" / result["config"]["method"] / f"{number:012d}"
        folder.mkdir(parents=True)
        (folder / "result.json").write_text(json.dumps(result))


def open_page(page: Path) -> tuple[float, float, float]:
    """Seconds from the request until the load event, until everything is drawn, and for a first bisimulation matrix."""
    with sync_playwright() as driver:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 1200, "height": 900})
        started = time.perf_counter()
        view.goto(page.as_uri(), wait_until="load")
        loaded = time.perf_counter() - started
        view.wait_for_selector("html[data-ready=yes]")
        view.wait_for_selector("#results-table tbody tr")
        ready = time.perf_counter() - started
        matrix = view.evaluate(
            "() => { const s = document.getElementById('metric-name'); s.value = 'bisimulation';"
            " const t = performance.now(); s.dispatchEvent(new Event('change')); return performance.now() - t; }"
        )
        browser.close()
    return loaded, ready, matrix / 1000


def main() -> None:
    """Prints size and times."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write_runs(root / "runs", count)
        started = time.perf_counter()
        page = write_report([root / "runs"], root / "report", all_experiments(), projection="none").page
        print(
            f"{count} runs: report written in {time.perf_counter() - started:.1f} s, {page.stat().st_size / 1e6:.2f} MB"
        )
        times = [open_page(page) for _ in range(OPENINGS)]
        loaded, ready, matrix = (min(column) for column in zip(*times, strict=True))
        print(f"load event after {loaded:.2f} s, tables and grids drawn after {ready:.2f} s (best of {OPENINGS})")
        print(f"bisimulation between two tasks: {1000 * matrix:.0f} ms")


if __name__ == "__main__":
    main()
