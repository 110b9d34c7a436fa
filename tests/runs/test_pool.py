import subprocess
import sys
import time
from pathlib import Path

import pool_tasks
import pytest

from pisces.errors import UserError
from pisces.runs.pool import Died, Pool, Raised, Reported, Returned

pytestmark = pytest.mark.usefixtures("fake")


def collect(pool):
    found = []
    while pool.busy:
        found += pool.events(0.5)
    return found


def test_tasks_report_and_return():
    with Pool(2) as pool:
        for number in (3, 4):
            pool.submit(number, pool_tasks.Square(number))
        assert pool.idle == 0
        found = collect(pool)
        assert pool.idle == 2
    for number in (3, 4):
        events = [event for key, event in found if key == number]
        assert events == [Reported(f"squaring {number}"), Returned(number**2)]


def test_errors_and_deaths_are_told_and_the_worker_goes_on():
    with Pool(1) as pool:
        events = []
        for key, task in enumerate((pool_tasks.fail, pool_tasks.die, pool_tasks.Unreadable(), pool_tasks.Square(2))):
            pool.submit(key, task)
            events.append(collect(pool)[-1])
    (_, failed), (_, died), (_, unreadable), (_, done) = events
    assert isinstance(failed, Raised)
    assert "no luck" in failed.traceback
    assert died == Died()
    assert isinstance(unreadable, Raised)
    assert done == Returned(4)


def test_workers_save_before_they_end():
    with Pool(1) as pool:
        pool.submit(0, pool_tasks.save_when_interrupted)
        ((_, started),) = pool.events(60)
        connection = pool._workers[0].connection
        begin = time.monotonic()
    assert time.monotonic() - begin < 10
    assert connection.recv() == Reported("saved")
    assert not Path(f"/proc/{started.message}").exists()


SCRIPT = """
import os, signal
import pool_tasks
from pisces.runs.pool import Pool

pool = Pool(2)
for key in range(2):
    pool.submit(key, pool_tasks.save_when_interrupted)
found = []
while len(found) < 2:
    found += pool.events(0.5)
print(*(event.message for _, event in found), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_workers_end_with_their_parent():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False)
    deadline = time.monotonic() + 5
    workers = [int(pid) for pid in done.stdout.split()]
    assert len(workers) == 2
    while any(_alive(pid) for pid in workers):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_pool_needs_workers():
    with pytest.raises(UserError, match="at least one worker, got 0"):
        Pool(0)
