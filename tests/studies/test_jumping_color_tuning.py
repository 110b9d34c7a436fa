import json

import pytest
from stored_runs import jumping_run

import jumping_color_tuning as tuning
from pisces.cli import main as command


def test_found_settings_are_stored_and_trained_with_other_seeds(tmp_path, monkeypatch):
    searched, swept = [], []

    def find(method, trials, workers, studies):
        searched.append(method)
        return {"settings": {"learning_rate": 0.002}, "validation_solved_percent": 40.0, "trials": trials}

    monkeypatch.setattr(tuning, "find_settings", find)
    monkeypatch.setattr(tuning, "run_sweep", lambda experiment, configs, options: swept.extend(configs))
    tuning.main(3, 1, tmp_path / "tuning", tmp_path)
    tuning.main(3, 1, tmp_path / "tuning", tmp_path)
    assert searched == list(tuning.METHODS)
    assert len(set(swept)) == 40
    assert {(c.colors, c.settings.learning_rate, c.settings.schedule) for c in swept} == {(True, 0.002, "cosine")}
    assert all(config.seed < tuning.TUNING_SEED for config in swept)


def test_searches_share_budget_and_schedule_and_score_validation_tasks():
    configs = [tuning.tuning_config(method) for method in tuning.METHODS]
    assert all(config.options["colors"] and config.pruner == "median" for config in configs)
    assert {config.seeds for config in configs} == {(1000,)}
    assert {name for config in configs for name in config.fixed} == set(tuning.SHORT)


def test_table_shows_the_runs_with_the_found_settings(tmp_path, monkeypatch):
    assert "Not tuned yet" in tuning.tuned_table(tmp_path)
    found = {"pse": {"settings": {"learning_rate": 0.002}, "validation_solved_percent": 41.0, "trials": 3}}
    (tmp_path / "jumping").mkdir()
    (tmp_path / "jumping" / tuning.FILE).write_text(json.dumps(found))
    values = {"red_test_solved_percent": 20.0, "green_test_solved_percent": 90.0}
    runs = [
        jumping_run("pse", 0, values=values, colors=True, changes={**tuning.SHORT, "learning_rate": rate})
        for rate in (0.002, 0.009)
    ]
    monkeypatch.setattr(tuning, "read_runs", lambda *options: type("Found", (), {"of": lambda self, name: runs})())
    assert "| PSEs | 41.0 | **20.0**, n=1 | **90.0**, n=1 |" in tuning.tuned_table(tmp_path)


@pytest.mark.slow
def test_the_command_tunes_with_colors_and_prunes(tmp_path, capsys):
    words = "tune jumping --method pse --colors --preset smoke --seeds 1000 --trials 2 --epochs 1 --evaluations 1"
    assert command([*words.split(), "--out", str(tmp_path)]) == 0
    assert "--colors" in capsys.readouterr().out
