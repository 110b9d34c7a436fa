"""What sweeping costs beside the runs: two workers against one, seconds per run, and reading 10,000 results."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

from pisces.experiments.engine import SweepState, sweep
from pisces.experiments.jumping_run import run
from pisces.experiments.sweeps import jumping_jobs
from pisces.reports.results import read_results

RUNS = 6
RESULTS = 10_000
CHANGES = {"epochs": 8, "evaluations": 1}


def sweep_seconds(workers: int, runs: int) -> float:
    """Time of so many runs, once every worker has done one and so loaded its compiled kernels."""
    jobs = jumping_jobs(["randconv"], ["wide"], list(range(runs + workers)), preset="smoke", changes=CHANGES)
    finished: list[float] = []

    def note(state: SweepState) -> None:
        finished.extend([time.perf_counter()] * (len(state.ran) - len(finished)))

    with tempfile.TemporaryDirectory() as out:
        sweep(jobs, out, workers, note)
    return finished[-1] - finished[workers - 1]


def plain_seconds(seeds: range) -> float:
    """Time of the same runs one after the other in this process, without an engine."""
    jobs = jumping_jobs(["randconv"], ["wide"], list(seeds), preset="smoke", changes=CHANGES)
    with tempfile.TemporaryDirectory() as out:
        run(jobs[0].config, out)  # compiled kernels are loaded
        start = time.perf_counter()
        for job in jobs[1:]:
            run(job.config, out)
        return (time.perf_counter() - start) / (len(jobs) - 1)


def reading_seconds() -> float:
    """Time to list and read many finished runs."""
    with tempfile.TemporaryDirectory() as out:
        job = jumping_jobs(["randconv"], ["wide"], [0], preset="smoke", changes=CHANGES)[0]
        result = json.loads(run(job.config, out).file("result.json").read_text())
        result["curve"] = result["curve"] * 20
        text = json.dumps(result, sort_keys=True)
        for k in range(RESULTS):
            folder = Path(out) / "many" / f"{k:05d}"
            folder.mkdir(parents=True)
            (folder / "result.json").write_text(text)
        start = time.perf_counter()
        found = read_results(Path(out) / "many")
        assert len(found.rows) == RESULTS
        return time.perf_counter() - start


def main() -> None:
    plain = plain_seconds(range(4))
    one, two = sweep_seconds(1, RUNS), sweep_seconds(2, 2 * RUNS)
    print(f"one run without an engine: {plain:.2f} s")
    print(f"{RUNS} runs with one worker: {one:.1f} s, {one / RUNS - plain:+.2f} s per run")
    print(f"{2 * RUNS} runs with two workers: {two:.1f} s, {two / one:.2f} times as long")
    print(f"reading {RESULTS} results: {reading_seconds():.2f} s")


if __name__ == "__main__":
    main()
