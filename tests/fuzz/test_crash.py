"""A few kills; `make crash-test` does a hundred."""

import pytest
from crash import SCENARIOS, content, crash_test

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_killed_commands_lose_nothing(scenario):
    *_, found = crash_test(scenario, kills=2, seed=1)
    assert found["kills"] >= 2
    assert not found["different"]


def test_left_files_are_noticed(tmp_path):
    (tmp_path / "replay").mkdir()
    (tmp_path / "result.json").write_text("{}")
    (tmp_path / "run.json").write_text("{}")
    assert content(tmp_path) == {"replay": b"", "result.json": b"{}"}
