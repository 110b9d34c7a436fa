"""What sweeping costs beside the runs: two workers against one, seconds per run, and reading 10,000 results."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.jumping.experiment import Jumping
from pisces.experiments.registry import all_experiments
from pisces.reports.results import read_runs
from pisces.runs.job import Job
from pisces.runs.sweep import SweepState, sweep

RUNS = 6
RESULTS = 10_000
CHANGES = {"epochs": 8, "evaluations": 1}


def make_jobs(seeds: range) -> list[Job]:
    return [Job(Jumping(), JumpingConfig.make("randconv", "smoke", seed=seed, changes=CHANGES)) for seed in seeds]


def sweep_seconds(workers: int, runs: int) -> float:
    """Time of so many runs, once every worker has done one and so loaded its compiled kernels."""
    jobs = make_jobs(range(runs + workers))
    finished: list[float] = []

    def note(state: SweepState) -> None:
        finished.extend([time.perf_counter()] * (len(state.ran) - len(finished)))

    with tempfile.TemporaryDirectory() as out:
        sweep(jobs, out, workers, note)
    return finished[-1] - finished[workers - 1]


def plain_seconds(seeds: range) -> float:
    """Time of the same runs one after the other in this process, without an engine."""
    jobs = make_jobs(seeds)
    with tempfile.TemporaryDirectory() as out:
        jobs[0].run(out)  # compiled kernels are loaded
        start = time.perf_counter()
        for job in jobs[1:]:
            job.run(out)
        return (time.perf_counter() - start) / (len(jobs) - 1)


def reading_seconds() -> float:
    """Time to list and read many finished runs."""
    with tempfile.TemporaryDirectory() as out:
        result = make_jobs(range(1))[0].run(out).read_result()
        result["curve"] = result["curve"] * 20
        for k in range(RESULTS):
            result["config"]["seed"] = k
            folder = Path(out) / "many" / f"{k:05d}"
            folder.mkdir(parents=True)
            (folder / "result.json").write_text(json.dumps(result, sort_keys=True))
        start = time.perf_counter()
        found = read_runs([Path(out) / "many"], all_experiments())
        assert len(found.runs) == RESULTS
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
