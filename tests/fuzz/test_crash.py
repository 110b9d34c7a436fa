"""A few kills; `make crash-test` does a hundred."""

import pytest
from crash import content, crash_test

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("scenario", ["train", "sweep", "two sweeps", "tune", "report"])
def test_killed_commands_lose_nothing(scenario):
    found = crash_test(2, seed=1, only=scenario)
    assert found["kills"] >= 2
    assert not found["scenarios"][scenario]["different"]


def test_left_files_are_noticed(tmp_path):
    (tmp_path / "replay").mkdir()
    (tmp_path / "result.json").write_text("{}")
    (tmp_path / "run.json").write_text("{}")
    assert content(tmp_path) == {"replay": b"", "result.json": b"{}"}
