import subprocess
import sys

import numpy as np
import pytest

from pisces.envs.grids import split_tasks
from pisces.envs.jumping import JumpingTask
from pisces.experiments.bisimulation_transfer import TransferConfig, run, transferred_actions


def test_only_trained_positions_are_solved():
    train = [JumpingTask(25, 10), JumpingTask(30, 20)]
    seen = transferred_actions(JumpingTask(30, 13), train, 0.99)
    unseen = transferred_actions(JumpingTask(27, 13), train, 0.99)
    assert np.flatnonzero(seen[:17]).tolist() == [16]
    assert np.flatnonzero(unseen[:14]).tolist() != [13]


def test_a_run_is_written_once(tmp_path, monkeypatch):
    from pisces.experiments import bisimulation_transfer as module

    small = split_tasks("wide")
    monkeypatch.setattr(module, "all_tasks", lambda: [*small.train[:1], *small.test[:1]])
    monkeypatch.setattr(module, "split_tasks", lambda grid, seed: type(small)(small.train[:1], (), small.test[:1]))
    result = run(TransferConfig("wide"), tmp_path)
    assert result["train_solved_percent"] == 100
    assert result["solved"] == "11"  # the unseen task differs in its floor alone
    monkeypatch.setattr(module, "evaluate", lambda config: pytest.fail("ran twice"))
    assert run(TransferConfig("wide"), tmp_path) == result


def test_no_torch():
    script = "import sys, pisces.experiments.bisimulation_transfer; print('torch' in sys.modules)"
    run_script = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run_script.stdout == "False\n"
