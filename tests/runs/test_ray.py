"""Sweeps on a Ray cluster of two nodes on this machine."""

import subprocess
import sys

import pytest

from pisces.runs.ray import LOOPBACK_VARIABLE

pytest.importorskip("ray", reason="the extra 'ray' is not installed")

SCRIPT = """
import sys
from pathlib import Path

import ray
from ray.cluster_utils import Cluster
from fake_experiment import fake_jobs
from pisces.runs.sweep import sweep

out = Path(sys.argv[1])
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
second = cluster.add_node(num_cpus=1)
assert cluster.address.startswith("127.0.0.1:"), cluster.address
ray.init(address=cluster.address, log_to_driver=False)
jobs = fake_jobs(range(6), iterations=10)
killed = False

def report(state):
    global killed
    if len(state.done) >= 1 and not killed:
        killed = True
        cluster.remove_node(second, allow_graceful=False)

state = sweep(jobs, out, 2, report, engine="ray")
assert killed
assert sorted(state.done) == list(range(6)), state
assert sorted(state.ran) == list(range(6)), state
assert not state.failed, state.failed
again = sweep(jobs, out, 2, engine="ray")
assert again.ran == [] and len(again.done) == 6
ray.shutdown()
cluster.shutdown()
"""


@pytest.mark.ray
def test_a_killed_node_costs_nothing(fake, tmp_path, monkeypatch):
    monkeypatch.setenv(LOOPBACK_VARIABLE, "0")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "runs")], capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(list((tmp_path / "runs").rglob("result.json"))) == 6
