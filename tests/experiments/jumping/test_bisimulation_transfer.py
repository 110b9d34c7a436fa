import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pisces.envs.jumping import JumpingTask, split_tasks
from pisces.experiments.jumping import bisimulation_transfer, results
from pisces.experiments.jumping.bisimulation_transfer import transferred_actions
from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.jumping.experiment import Jumping
from pisces.runs.job import Job

RESULTS = Path(__file__).parents[3] / "results"


def test_only_trained_positions_are_solved():
    train = [JumpingTask(25, 10), JumpingTask(30, 20)]
    seen = transferred_actions(JumpingTask(30, 13), train, 0.99)
    unseen = transferred_actions(JumpingTask(27, 13), train, 0.99)
    assert np.flatnonzero(seen[:17]).tolist() == [16]
    assert np.flatnonzero(unseen[:14]).tolist() != [13]


def transfer_job(**arguments):
    return Job(Jumping(), JumpingConfig.make("bisimulation-transfer", "paper", **arguments))


def test_a_run_is_written_once(tmp_path, monkeypatch):
    small = split_tasks("wide")
    tiny = type(small)(small.train[:1], (), small.test[:1])
    monkeypatch.setattr(bisimulation_transfer, "all_tasks", lambda: [*small.train[:1], *small.test[:1]])
    for module in (bisimulation_transfer, results):
        monkeypatch.setattr(module, "run_split", lambda config, color: tiny)
    result = transfer_job().run(tmp_path).read_result()
    assert result["train_solved_percent"] == 100
    assert result["solved"] == "11"  # the unseen task differs in its floor alone
    monkeypatch.setattr("pisces.experiments.jumping.run.transfer_result", lambda config: pytest.fail("ran twice"))
    assert transfer_job().run(tmp_path).read_result() == result


def test_the_narrow_grid_is_the_committed_result(tmp_path):
    """Deterministic, and the paper's 17.9 %."""
    job = transfer_job(grid="narrow")
    result = job.run(tmp_path).read_result()
    assert result == job.folder(RESULTS).read_result()
    assert result["test_solved_percent"] == pytest.approx(17.9, abs=0.05)
    assert result["train_solved_percent"] == 100


def test_no_torch():
    script = "import sys, pisces.experiments.jumping.bisimulation_transfer; print('torch' in sys.modules)"
    run_script = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run_script.stdout == "False\n"
