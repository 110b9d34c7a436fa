"""Locks keep processes apart; `busy` guesses from the heartbeat and changes nothing."""

import os
import signal
import subprocess
import sys
import time

import pytest

from pisces.runs import lock as lock_module
from pisces.runs.lock import Lock, LockedError, wait_for_lock

HOLD = """
import sys
from pathlib import Path
from pisces.runs.lock import Lock

with Lock(Path(sys.argv[1]), "the run").hold():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def lock(tmp_path):
    return Lock(tmp_path / ".lock", "the run 'x'")


@pytest.fixture
def holder(lock):
    """Another process that holds the lock."""
    command = [sys.executable, "-c", HOLD, str(lock.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_lock_keeps_others_out(lock):
    assert not lock.busy
    with lock.hold():
        assert lock.busy
        with pytest.raises(LockedError, match=r"^the run 'x' is in use by another process$"), lock.hold():
            pass
        assert lock.busy
    assert not lock.busy


def test_lock_is_released_after_an_error(lock):
    with pytest.raises(RuntimeError), lock.hold():
        raise RuntimeError
    with lock.hold():
        pass


def test_a_killed_process_lets_go_at_once_and_is_not_busy_after_a_while(lock, holder, monkeypatch):
    assert lock.busy
    with pytest.raises(LockedError), lock.hold():
        pass
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert lock.busy
    beat = lock.path.with_name(".lock.heartbeat").stat().st_mtime
    monkeypatch.setattr(time, "time", lambda: beat + 10.1)
    assert not lock.busy
    monkeypatch.undo()
    with lock.hold():
        pass
    assert not lock.busy


def test_asking_neither_takes_the_lock_nor_creates_files(lock, monkeypatch):
    monkeypatch.setattr(Lock, "hold", lambda self: pytest.fail("took the lock"))
    assert not lock.busy
    assert not list(lock.path.parent.iterdir())
    assert not Lock(lock.path.parent / "missing" / ".lock", "x").busy
    assert not list(lock.path.parent.iterdir())


def test_heartbeat_goes_on_while_the_lock_is_held(lock, monkeypatch):
    monkeypatch.setattr(lock_module, "HEARTBEAT_SECONDS", 0.05)
    heartbeat = lock.path.with_name(".lock.heartbeat")
    with lock.hold():
        os.utime(heartbeat, (0, 0))
        assert not lock.busy
        deadline = time.monotonic() + 10
        while not lock.busy:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert not heartbeat.exists()


def test_waiting_for_a_lock(lock, holder, monkeypatch):
    monkeypatch.setattr(lock_module, "WAIT_SECONDS", 0.05)
    attempts = []

    def work():
        attempts.append(1)
        if len(attempts) == 3:
            holder.stdin.close()
        with lock.hold():
            return "done"

    assert wait_for_lock(work) == "done"
    assert len(attempts) >= 3


def test_holding_with_patience(lock, holder):
    holder.stdin.close()
    with lock.hold(wait=True):
        assert lock.busy
