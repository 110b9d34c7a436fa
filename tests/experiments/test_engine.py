"""Sweeps survive what happens to processes. The runs are short; what is slow is starting processes."""

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from pisces.experiments.engine import sweep
from pisces.experiments.lists import parse_names, parse_seeds
from pisces.experiments.store import LockedError, RunFolder, non_defaults
from pisces.experiments.sweeps import jumping_jobs


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
    jobs = fake([0], behaviour="raise") + fake([1], behaviour="die") + fake([2], behaviour="die once") + fake([3, 4])
    state = sweep(jobs, tmp_path / "runs", workers=2)
    assert sorted(state.done) == [2, 3, 4]
    assert sorted(state.failed) == [0, 1]
    assert "no luck" in state.failed[0].read_text()
    assert "died" in state.failed[1].read_text()
    assert sorted(starts_of(tmp_path / "runs")) == [1, 1, 2, 2, 2]


def test_progress_is_reported(fake, tmp_path):
    seen = []
    sweep(fake([0], iterations=12), tmp_path / "runs", 1, lambda state: seen.append(dict(state.running)))
    iterations = [state[0].iteration for state in seen if state.get(0) is not None]
    assert iterations
    assert iterations == sorted(iterations)


def test_two_sweeps_at_once_share_the_work(fake, tmp_path):
    out = tmp_path / "runs"
    script = (
        "from fake_experiment import FakeConfig\n"
        "from pisces.experiments.engine import Job, sweep\n"
        "from pisces.experiments.registry import experiment\n"
        f"state = sweep([Job(experiment('fake'), FakeConfig(s)) for s in range(8)], {str(out)!r}, 1)\n"
        "assert sorted(state.done) == list(range(8)), state\n"
        "print(len(state.ran))\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    counts = [int(process.communicate(timeout=120)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sum(counts) == 8
    assert starts_of(out) == [1] * 8


def test_lock_keeps_others_out_and_ends_with_the_process(fake, tmp_path):
    folder = fake([0])[0].experiment.folder(fake([0])[0].config, tmp_path)
    assert not folder.locked()
    with folder.lock():
        assert folder.locked()
        with pytest.raises(LockedError, match="under way elsewhere"), folder.lock():
            pass
    assert not folder.locked()


SWEEP = (
    "from fake_experiment import FakeConfig\n"
    "from pisces.experiments.engine import Job, sweep\n"
    "from pisces.experiments.registry import experiment\n"
    "sweep([Job(experiment('fake'), FakeConfig(s, iterations=6)) for s in range(6)], {out!r}, 2)\n"
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


@pytest.mark.parametrize(
    ("text", "seeds"), [("0-3", [0, 1, 2, 3]), ("5", [5]), ("0,2,4-5", [0, 2, 4, 5]), (" 1 - 2 , 2", [1, 2])]
)
def test_seeds_are_read(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize(
    ("text", "message"), [("9-3", "write 3-9"), ("a", "such as 0-9"), ("", "such as"), ("-1", "such as")]
)
def test_bad_seeds_are_explained(text, message):
    with pytest.raises(ValueError, match=message):
        parse_seeds(text)


def test_bad_sweeps_are_explained(fake, tmp_path):
    with pytest.raises(ValueError, match="at least one worker, got 0"):
        sweep(fake([0]), tmp_path, 0)
    with pytest.raises(ValueError, match="separated by commas"):
        parse_names(" , ")


def test_jumping_jobs_are_all_combinations_seed_by_seed():
    jobs = jumping_jobs(["pse", "randconv"], ["wide", "narrow"], [3, 4], preset="smoke")
    assert len(jobs) == 8
    assert [job.config.seed for job in jobs] == [3] * 4 + [4] * 4
    line = jobs[0].experiment.command_line(jobs[0].config, "runs")
    assert line == "pisces train jumping --method pse --grid wide --seed 3 --preset smoke --out runs"


@dataclass(frozen=True)
class _Config:
    method: str = "m"
    seed: int = 0

    def as_dict(self):
        return {"method": self.method, "seed": self.seed}

    def identity(self):
        return non_defaults(self)


def test_finished_runs_are_not_locked(tmp_path):
    folder = RunFolder.open(tmp_path, "x", "m", _Config())
    folder.write_result({})
    assert folder.finished
    assert not folder.locked()
