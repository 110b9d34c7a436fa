"""Sweeps survive what happens to processes. The runs are short; what is slow is starting processes."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pisces.runs.sweep import sweep


def starts_of(out):
    return [len(path.read_text()) for path in out.rglob("starts")]


def test_runs_everything_once_and_again_nothing(fake, tmp_path):
    jobs, out = fake(range(5)), tmp_path / "runs"
    state = sweep(jobs, out, workers=2)
    assert sorted(state.done) == sorted(state.ran) == list(range(5))
    assert not state.failed
    assert starts_of(out) == [1] * 5
    again = sweep(jobs, out, workers=2)
    assert sorted(again.done) == list(range(5))
    assert again.ran == []
    assert starts_of(out) == [1] * 5


def test_failures_are_tried_twice_and_listed_while_others_go_on(fake, tmp_path):
    jobs = fake([0], behavior="raise") + fake([1], behavior="die") + fake([2], behavior="die once") + fake([3, 4])
    state = sweep(jobs, tmp_path / "runs", workers=2)
    assert sorted(state.done) == [2, 3, 4]
    assert sorted(state.failed) == [0, 1]
    assert "no luck" in state.failed[0].read_text()
    assert "run the same command again" in state.failed[1].read_text()
    assert sorted(starts_of(tmp_path / "runs")) == [1, 1, 2, 2, 2]


def test_progress_is_reported(fake, tmp_path):
    seen = []
    sweep(fake([0], iterations=12), tmp_path / "runs", 1, lambda state: seen.append(dict(state.running)))
    iterations = [state[0].iteration for state in seen if state.get(0) is not None]
    assert iterations
    assert iterations == sorted(iterations)


def test_requirements_are_shared_between_workers(fake, tmp_path):
    jobs = fake([1, 2], needs=7)
    state = sweep(jobs, tmp_path, workers=2)
    assert sorted(state.done) == sorted(state.ran) == [0, 1]
    assert not list(tmp_path.rglob("error.txt"))
    assert starts_of(tmp_path) == [1] * 3


def test_a_run_that_waited_for_its_requirement_comes_next(fake, tmp_path):
    jobs = fake([1, 2], needs=7) + fake(range(10, 18))
    state = sweep(jobs, tmp_path, workers=2)
    assert sorted(state.ran) == list(range(10))
    assert state.ran.index(1) <= 4


def test_a_run_is_taken_over_from_a_process_that_ends(fake, tmp_path):
    (job,) = fake([0])
    lock = job.folder(tmp_path).create(job.config).lock()
    lock.__enter__()
    reports = []

    def report(state):
        reports.append(dict(state.running))
        if len(reports) == 6:
            assert not state.done
            lock.__exit__(None, None, None)

    state = sweep([job], tmp_path, 1, report)
    assert state.ran == [0]
    assert starts_of(tmp_path) == [1]
    assert not list(tmp_path.rglob("error.txt"))


def test_two_sweeps_at_once_share_the_work(fake, tmp_path):
    out = tmp_path / "runs"
    script = (
        "from fake_experiment import fake_jobs\n"
        "from pisces.runs.sweep import sweep\n"
        f"state = sweep(fake_jobs(range(8)), {str(out)!r}, 1)\n"
        "assert sorted(state.done) == list(range(8)), state\n"
        "print(len(state.ran))\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    counts = [int(process.communicate(timeout=120)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sum(counts) == 8
    assert starts_of(out) == [1] * 8


SWEEP = (
    "from fake_experiment import fake_jobs\n"
    "from pisces.runs.sweep import sweep\n"
    "sweep(fake_jobs(range(6), iterations=6), {out!r}, 2)\n"
)


def alive(group):
    found = subprocess.run(["pgrep", "-g", str(group)], capture_output=True, text=True, check=False).stdout
    return [int(pid) for pid in found.split() if not _is_zombie(int(pid))]


def _is_zombie(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_until_gone(group):
    deadline = time.monotonic() + 5
    while alive(group):
        assert time.monotonic() < deadline, "workers outlived their parent by more than five seconds"
        time.sleep(0.1)


def test_killed_ten_times_a_sweep_ends_as_if_undisturbed(fake, tmp_path):
    rng = random.Random(0)
    calm, rough = tmp_path / "calm", tmp_path / "rough"
    subprocess.run([sys.executable, "-c", SWEEP.format(out=str(calm))], check=True, timeout=120)
    for _ in range(10):
        process = subprocess.Popen([sys.executable, "-c", SWEEP.format(out=str(rough))], start_new_session=True)
        time.sleep(rng.uniform(0.3, 1.5))
        victims = alive(process.pid) if rng.random() < 0.5 else [process.pid]
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
        process.wait()
        wait_until_gone(process.pid)
    subprocess.run([sys.executable, "-c", SWEEP.format(out=str(rough))], check=True, timeout=120)
    results = {path.relative_to(calm): path.read_bytes() for path in calm.rglob("result.json")}
    assert len(results) == 6
    assert {path.relative_to(rough): path.read_bytes() for path in rough.rglob("result.json")} == results


def test_interrupt_stops_cleanly(fake, tmp_path):
    out = tmp_path / "runs"
    process = subprocess.Popen(
        [sys.executable, "-c", SWEEP.format(out=str(out))], start_new_session=True, stderr=subprocess.DEVNULL
    )
    while not list(out.rglob("state")):
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=20) != 0
    wait_until_gone(process.pid)


def test_bad_sweeps_are_explained(fake, tmp_path):
    with pytest.raises(ValueError, match="at least one worker, got 0"):
        sweep(fake([0]), tmp_path, 0)
    with pytest.raises(ValueError, match="did you mean 'ray'"):
        sweep([], tmp_path, 1, engine="rya")
    with pytest.raises(ValueError, match="needs --engine ray"):
        sweep([], tmp_path, 1, address="127.0.0.1:1")
