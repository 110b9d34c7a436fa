"""Stored results of MiniGrid that are damaged: one of them costs one line, never the report."""

import json
import random
from pathlib import Path

import pytest
from hostile import mutate

from pisces.experiments.minigrid.experiment import MiniGrid
from pisces.experiments.minigrid.results import problem
from pisces.experiments.registry import all_experiments
from pisces.reports.results import read_runs

STORED = Path(__file__).parents[3] / "results" / "minigrid" / "bc+pse"
EPISODES = {"tasks": [[0, 1], [5, 2]], "actions": ["012", ""], "solved": "10"}


def stored_result():
    """A committed result with episodes."""
    for path in sorted(STORED.glob("*/result.json")):
        result = json.loads(path.read_text())
        if "episodes" in result and not result["config"]["changes"]:
            return result
    raise AssertionError("no stored result has episodes")


@pytest.mark.parametrize("seed", range(40))
def test_a_mutated_result_costs_at_most_one_line(seed, tmp_path):
    result = stored_result()
    result["curve"] = result["curve"][:2]
    for name in ("tasks", "actions"):
        result["episodes"][name] = result["episodes"][name][:2]
    result["episodes"]["solved"] = result["episodes"]["solved"][:2]
    mutate(result, random.Random(seed))
    (tmp_path / "result.json").write_text(json.dumps(result))
    found = read_runs([tmp_path], all_experiments())
    assert len(found.runs) + len(found.skipped) == 1
    for table in MiniGrid().tables(found.runs):
        assert not table.rows or table.csv()
        assert table.title in table.markdown()
    json.dumps(MiniGrid().page_section(found.runs, "none").data, allow_nan=False)


@pytest.mark.parametrize(
    "change",
    [
        {"tasks": [[0, 1]]},
        {"tasks": [[0, 1], [5]]},
        {"tasks": [[0, 1], [5, -2]]},
        {"tasks": [[0, 1], [5, 2.5]]},
        {"tasks": [[0, 1], [2**40, 1]]},
        {"actions": ["012", 3]},
        {"actions": ["019", "0"]},
        {"actions": ["0²", "0"]},
        {"solved": "1x"},
        {"solved": None},
        {"tasks": None},
    ],
)
def test_other_episodes_are_refused(change):
    assert problem({"episodes": EPISODES}, "crossing") is None
    assert "its episodes are not" in problem({"episodes": {**EPISODES, **change}}, "crossing")


def test_shares_are_numbers():
    assert problem({"test_matched_share": 0.5}, "crossing") is None
    assert problem({"test_matched_share": None}, "crossing") == "test_matched_share is not a finite number"
