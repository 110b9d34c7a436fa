import json
from pathlib import Path

import numpy as np
import pytest

import jumping_random_grid
from fill_docs import fill
from jumping_random_grid import main, measure, random_grid_table, sample_scheme, solved_percent, transfer_solves
from pisces.envs.jumping import all_tasks, split_tasks
from pisces.reports.results import StoredRuns

COMMITTED = Path(__file__).parents[2] / "results" / "jumping" / jumping_random_grid.FILE


@pytest.mark.parametrize("seed", [0, 7])
def test_solved_percentage_is_that_of_counting_unseen_tasks(seed):
    split = split_tasks("random", seed)
    trained = {task.obstacle_position for task in split.train}
    unseen = [task for task in all_tasks() if task not in split.train]
    expected = 100 * np.mean([task.obstacle_position in trained for task in unseen])
    assert solved_percent([task.obstacle_position for task in split.train], len(split.train)) == pytest.approx(expected)


def test_transfer_solves_trained_positions():
    assert transfer_solves([22, 40], 0.99) == [22, 40]


def test_committed_draws_can_be_measured_again():
    content = json.loads(COMMITTED.read_text())
    assert len(content["draws"]) == 100
    assert all(draw["solves_trained_positions_only"] for draw in content["draws"])
    found = measure(3) | {"solves_trained_positions_only": True}
    assert found == pytest.approx(content["draws"][3])


def test_samples_have_the_expected_number_of_distinct_positions(monkeypatch):
    monkeypatch.setattr(jumping_random_grid, "SAMPLES", 2000)
    positions = sample_scheme(18, 26, np.random.default_rng(1))[:, 0]
    assert positions.mean() == pytest.approx(26 * (1 - (25 / 26) ** 18), abs=0.15)


def test_command_writes_what_the_table_shows(tmp_path, monkeypatch):
    monkeypatch.setattr(jumping_random_grid, "SAMPLES", 10)
    monkeypatch.setattr(jumping_random_grid, "transfer_solves", lambda train, discount: list(train))
    document = "<!-- table: jumping_random_grid -->\n<!-- end -->\n"
    assert "Not measured yet" in fill(document, StoredRuns(()), tmp_path)
    main("0-1", tmp_path)
    table = random_grid_table(tmp_path)
    assert "| 2 seeds of our grid |" in table
    assert table in fill(document, StoredRuns(()), tmp_path)
