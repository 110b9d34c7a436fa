import json
from pathlib import Path

import pytest

from pisces.cli import main
from pisces.errors import UserError
from pisces.experiments.grid_transfer import (
    TEST_LEVELS,
    VALIDATION_LEVELS,
    command_line,
    config_from_dict,
    make_config,
)
from pisces.experiments.grid_transfer_run import run
from pisces.experiments.registry import experiment
from pisces.experiments.sweeps import grid_jobs
from pisces.reports.grid import grid_table
from pisces.reports.readme import fill
from pisces.reports.results import read_results


def test_levels_of_training_validation_and_test_do_not_meet():
    seen = [set(make_config("ppo", seed).training_levels()) for seed in (0, 1, 1000)]
    groups = [*seen, set(VALIDATION_LEVELS), set(TEST_LEVELS)]
    assert sum(map(len, groups)) == len(set().union(*groups))
    assert make_config("ppo", 3).training_levels() == make_config("ppo+pse", 3).training_levels()


def test_the_two_methods_share_their_ppo_settings():
    plain, similar = (make_config(method).settings for method in ("ppo", "ppo+pse"))
    assert plain.similarity_rate == 0 < similar.similarity_rate
    for name in ("steps", "training_levels", "contrast", "learning_rate"):
        assert getattr(plain, name) == getattr(similar, name)


def test_same_config_same_result_and_finished_runs_stay(tmp_path):
    config = make_config("ppo+pse", preset="smoke")
    first, second = (run(config, tmp_path / name).file("result.json").read_text() for name in ("a", "b"))
    assert first == second
    result = json.loads(first)
    assert set(result) == {
        "config",
        "curve",
        "train_levels_percent",
        "validation_levels_percent",
        "test_levels_percent",
    }
    assert [row["iteration"] for row in result["curve"]] == sorted(row["iteration"] for row in result["curve"])
    other = json.loads(run(make_config("ppo", preset="smoke"), tmp_path / "a").file("result.json").read_text())
    assert other["config"]["method"] == "ppo"
    before = (tmp_path / "a").rglob("result.json")
    times = {path: path.stat().st_mtime_ns for path in before}
    run(config, tmp_path / "a")
    assert {path: path.stat().st_mtime_ns for path in times} == times


def test_configs_go_through_files_and_commands():
    config = make_config("ppo+pse", 4, "smoke", {"training_levels": 4})
    assert config_from_dict(json.loads(json.dumps(config.as_dict()))) == config
    command = command_line(config, "runs")
    assert command == ("pisces train grid --method ppo+pse --seed 4 --preset smoke --set training_levels=4 --out runs")
    jobs = grid_jobs(["ppo", "ppo+pse"], [0, 1])
    assert [(job.config.seed, job.config.method) for job in jobs] == [
        (seed, method) for seed in (0, 1) for method in ("ppo", "ppo+pse")
    ]
    assert jobs[0].experiment is experiment("grid")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pppo",), "did you mean 'ppo'"),
        (("ppo", -1), "seed in 0"),
        (("ppo", 0, "paper"), "expected preset to be one of smoke, standard"),
        (("ppo", 0, "smoke", {"rate": 1}), "expected setting to be one of"),
        (("ppo", 0, "smoke", {"training_levels": 1}), "2 to 32 training levels"),
        (("ppo", 0, "smoke", {"discount": 1.0}), "discount in"),
    ],
)
def test_bad_configs_are_explained(arguments, message):
    with pytest.raises(UserError, match=message):
        make_config(*arguments)


def test_the_table_pairs_the_seeds():
    def result(method, seed, percent):
        config = make_config(method, seed).as_dict()
        shares = {f"{part}_levels_percent": percent for part in ("train", "validation", "test")}
        return {"config": config, **shares}

    rows = (result("ppo", 0, 40.0), result("ppo", 1, 50.0), result("ppo+pse", 0, 50.0), result("ppo+pse", 1, 64.0))
    changed = {**result("ppo", 2, 0.0)}
    changed["config"]["study"] = "steps=1"
    table = grid_table([*rows, changed])
    assert "| `ppo` | **45.0** (7.1), n=2 |" in table
    assert "| gain, same seeds | +12.0 [-13.4, +37.4], better in 2 of 2 |" in table
    assert table in fill("<!-- table: grid -->\n<!-- end -->\n", rows)


def test_commands_train_and_list(tmp_path, capsys):
    assert main(["train", "grid", "--method", "ppo", "--preset", "smoke", "--out", str(tmp_path)]) == 0
    assert "% of training levels solved" in capsys.readouterr().out
    assert main(["sweep", "grid", "--seeds", "0-1", "--list", "--out", "runs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "pisces train grid --method ppo+pse --seed 0 --preset standard --out runs"
    assert len(lines) == 4


def test_the_page_agrees_with_the_committed_results():
    root = Path(__file__).parents[2]
    page = (root / "docs" / "howto_sb3.md").read_text()
    assert fill(page, read_results(root / "results").rows) == page
