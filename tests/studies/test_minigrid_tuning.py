import json
from pathlib import Path

import pytest
from stored_runs import stored_run

import minigrid_tuning
from minigrid_figures import agreement_figure
from minigrid_tuning import (
    AUXILIARY,
    FILE,
    NOT_TUNED,
    PLAIN,
    TABLES,
    TRIALS,
    TUNING_SEEDS,
    find_settings,
    search_space,
    settings_table,
    tuned_config,
    tuning_config,
)
from pisces.experiments.minigrid.experiment import MiniGrid
from pisces.reports.results import StoredRuns

FOUND = {
    "bc": {"settings": {"learning_rate": 5e-3}, "score": 60.0, "trials": [{"score": 60.0}, {"score": 30.0}]},
    "bc+pse": {
        "settings": {"learning_rate": 3e-3, "auxiliary_rate": 1e-3},
        "score": 70.0,
        "trials": [{"score": 70.0}, {"score": 65.5}],
    },
    "bc+colors": {"settings": {"learning_rate": 1e-2}, "score": 50.0, "trials": [{"score": 50.0}]},
}


@pytest.fixture
def root(tmp_path):
    (tmp_path / FILE).parent.mkdir()
    (tmp_path / FILE).write_text(json.dumps(FOUND))
    return tmp_path


def make_run(method, seed, solved, agreement=0.5, found=FOUND, family="crossing"):
    return stored_run(
        MiniGrid(),
        tuned_config(method, found, seed, family),
        test_solved_percent=solved,
        test_rank_correlation=agreement / 2,
        test_neighbor_agreement=agreement,
    )


def stored(*runs):
    return StoredRuns(tuple(runs), ())


def test_every_method_has_as_many_trials_on_seeds_that_are_not_reported():
    for method in (*PLAIN, *AUXILIARY):
        sizes = [len(dimension.values) for dimension in search_space(method)]
        assert sizes[0] * (sizes[1] if len(sizes) > 1 else 1) == TRIALS
        assert tuning_config(method).seeds == TUNING_SEEDS
    assert not set(TUNING_SEEDS) & set(minigrid_tuning.SEEDS)


def test_tables_count_runs_with_the_settings_that_were_found(root):
    other = {"bc": {"settings": {"learning_rate": 1e-3}}}
    runs = stored(
        make_run("bc", 0, 50.0),
        make_run("bc", 1, 52.0),
        make_run("bc", 2, 0.0, found=other),
        make_run("bc+pse", 0, 60.0),
        make_run("bc+pse", 1, 66.0),
    )
    solved = TABLES["minigrid-tuned"](runs, root)
    assert "| `bc` | **51.0** (1.4), n=2" in solved
    assert "| `bc+pse` | **63.0** (4.2), n=2" in solved
    assert "| `bc+pse` | **12.0** (2.8), n=2" in TABLES["minigrid-tuned-gains"](runs, root)
    assert "| `bc+pse` | 0.003 | 0.001 | 70.0 | 65.5 |" in settings_table(root)
    assert "| `bc` | 0.005 | – | 60.0 | 30.0 |" in settings_table(root)


def test_correlations_are_across_methods_and_within_them(root):
    runs = [
        make_run(method, seed, base - seed, base / 100 + seed / 100)
        for method, base in (("bc", 20), ("bc+colors", 40), ("bc+pse", 60))
        for seed in range(3)
    ]
    table = TABLES["minigrid-prediction"](stored(*runs), root)
    assert "| crossing | neighbor agreement | 1.00 (3 methods) | -1.00 (3 methods) |" in table
    figure = agreement_figure(stored(*runs), root)
    assert {text.get_text() for text in figure.axes[0].texts} == {"bc", "bc+colors", "bc+pse"}


def test_families_are_apart(root):
    runs = stored(make_run("bc", 0, 50.0), make_run("bc", 0, 20.0, family="doorkey"), make_run("bc", 1, 30.0))
    table = TABLES["minigrid-tuned"](runs, root)
    assert "crossing, appearance, 3 themes | doorkey, appearance, 3 themes" in table
    assert "**40.0** (14.1), n=2" in table
    assert "**20.0**, n=1" in table
    assert [axes.get_title() for axes in agreement_figure(runs, root).axes] == ["crossing", "doorkey"]


def test_without_settings_there_are_no_tables(tmp_path):
    for table in TABLES.values():
        assert table(stored(), tmp_path) == NOT_TUNED
    assert settings_table(tmp_path) == NOT_TUNED
    assert agreement_figure(stored(), tmp_path) is None


def test_the_best_trial_is_found(tmp_path, monkeypatch):
    def smoke(method):
        made = tuning_config(method)
        return type(made)(
            *(
                made.experiment,
                method,
                "smoke",
                (1000,),
                made.space,
                {"steps": 4},
                {"training_levels": 2},
                "grid",
                "none",
            )
        )

    monkeypatch.setattr(minigrid_tuning, "tuning_config", smoke)
    found = find_settings("bc", 1, tmp_path)
    assert len(found["trials"]) == TRIALS
    assert found["score"] == max(trial["score"] for trial in found["trials"])
    assert found["settings"] in [trial["settings"] for trial in found["trials"]]
    assert Path(tmp_path / "minigrid" / "bc").is_dir()
