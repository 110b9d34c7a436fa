"""Results of schema 1, as earlier versions stored them, are refused with a remedy, and the remedy works."""

import json
from pathlib import Path

import pytest
from stored_parts import is_part

from migrate_results import main, migrated_config
from pisces.errors import UserError
from pisces.experiments.registry import all_experiments
from pisces.reports.results import read_runs
from pisces.runs.store import RESULT, RunFolder

ROOT = Path(__file__).parents[2]
STORED = ROOT / "tests" / "data" / "schema1"
# Name of the fixture: its experiment then, its experiment and method now, and what the run changes.
CASES = {
    "jumping": ("jumping", "jumping", "randconv+pi-bisimulation", {}),
    "jumping-colors": ("jumping", "jumping", "randconv+shift", {"augmentation": "none"}),
    "bisimulation-transfer": ("jumping", "jumping", "bisimulation-transfer", {}),
    "lqr": ("lqr", "lqr", "psm", {"aggregation": 0.0, "environments": 4}),
}
RENAMED = {
    "passthrough_per": "coin",
    "passthrough_probability": "pass_probability",
    "buffer_size": "capacity",
    "learning_starts": "seed_steps",
    "tau": "target_rate",
    "initial_alpha": "initial_temperature",
    "regularization_loss": "regularisation_loss",
}


def old_result(name):
    return json.loads((STORED / name / RESULT).read_text())


def old_folder(name, root):
    """Puts a fixture where the earlier version had it, with another file of the run."""
    result = old_result(name)
    folder = root / CASES[name][0] / result["config"]["method"] / "0123456789ab"
    folder.mkdir(parents=True)
    (folder / RESULT).write_text(json.dumps(result))
    (folder / "config.json").write_text(json.dumps(result["config"]))
    (folder / "run.json").write_text('{"pisces": "0.0.9"}')
    return folder


def earlier_names(values):
    """Settings or losses under their names of schema 1."""
    values = {RENAMED.get(name, name): value for name, value in values.items()}
    if values.get("metric") == "pi-bisimulation":
        values["metric"] = "bisimulation"
    return values


def files_of(root):
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", CASES)
def test_earlier_results_are_refused_with_the_command_that_migrates_them(name, tmp_path):
    folder = RunFolder(old_folder(name, tmp_path))
    message = (
        r"was written by an earlier version \(schema 1\); run: python studies/migrate_results\.py <folder of runs>"
    )
    for read in (folder.read_result, folder.read_config):
        with pytest.raises(UserError, match=message) as error:
            read()
        assert "\n" not in str(error.value)
    found = read_runs([tmp_path], all_experiments())
    assert found.runs == ()
    assert len(found.skipped) == 1
    assert "an earlier version (schema 1); run: python studies/migrate_results.py" in found.skipped[0]


@pytest.mark.parametrize("name", CASES)
def test_migrated_results_are_readable_with_equal_values(name, tmp_path, capsys):
    before, old = old_folder(name, tmp_path), old_result(name)
    main(tmp_path, tmp_path)
    assert capsys.readouterr().out == "1 runs migrated\n"
    assert not before.exists()
    (path,) = tmp_path.rglob(RESULT)
    folder, (_, experiment, method, changes) = RunFolder(path.parent), CASES[name]
    assert folder.path.relative_to(tmp_path).parts[:2] == (experiment, method)
    assert folder.read_json("run.json") == {"pisces": "0.0.9"}
    result = folder.read_result()
    assert result["config"] == folder.read_config()
    assert result["config"]["changes"] == changes
    values = {key: value for key, value in result.items() if key not in ("experiment", "schema", "config", "curve")}
    assert values == {key: value for key, value in old.items() if key not in ("config", "curve")}
    assert [earlier_names(row) for row in result.get("curve", [])] == old.get("curve", [])

    found = read_runs([tmp_path], all_experiments())
    assert found.skipped == ()
    assert {(run.experiment.name, run.config.method) for run in found.runs} == {(experiment, method)}
    assert len(found.runs) == len(old.get("runs", [1]))


@pytest.mark.parametrize("name", CASES)
def test_migrated_configs_keep_their_settings(name):
    old = old_result(name)["config"]
    new = migrated_config(CASES[name][1], old).as_dict()
    if name == "bisimulation-transfer":
        assert new["settings"] == {"discount": old["discount"]}
    else:
        settings = earlier_names(new["settings"])
        assert {key: settings[key] for key in old["settings"]} == old["settings"]
    if "seeds" in old:
        assert list(range(new["seed"], new["seed"] + new["n_seeds"])) == old["seeds"]
    same = set(old) & set(new) - {"method", "settings"}
    assert {"preset"} <= same
    assert {key: new[key] for key in same} == {key: old[key] for key in same}


@pytest.mark.parametrize("name", CASES)
def test_the_committed_results_are_the_migrated_ones(name, tmp_path):
    old_folder(name, tmp_path)
    main(tmp_path, tmp_path)
    (path,) = tmp_path.rglob(RESULT)
    committed, migrated = (
        json.loads(file.read_text()) for file in (ROOT / "results" / path.relative_to(tmp_path), path)
    )
    assert is_part(committed.pop("config"), migrated.pop("config"))
    assert committed == migrated


def test_results_of_changed_environments_are_left_alone(tmp_path, capsys):
    folder = tmp_path / "distracting" / "drq" / "0123456789ab"
    folder.mkdir(parents=True)
    (folder / RESULT).write_text('{"config": {"method": "drq"}, "test_return": 200.0}')
    before = files_of(tmp_path)
    main(tmp_path, tmp_path)
    printed = capsys.readouterr()
    assert printed.out == "0 runs migrated\n"
    assert "the environments of distracting were changed or removed since" in printed.err
    assert files_of(tmp_path) == before


def test_migrating_again_changes_nothing(tmp_path, capsys):
    for name in CASES:
        old_folder(name, tmp_path / name)
        main(tmp_path / name, tmp_path / "all")
        assert not list((tmp_path / name).rglob(RESULT))
    before = files_of(tmp_path / "all")
    assert len(list((tmp_path / "all").rglob(RESULT))) == len(CASES)
    capsys.readouterr()
    main(tmp_path / "all", tmp_path / "all")
    assert capsys.readouterr().out == "0 runs migrated\n"
    assert files_of(tmp_path / "all") == before


def test_a_result_that_is_there_is_not_replaced(tmp_path, capsys):
    main(old_folder("lqr", tmp_path / "first").parents[2], tmp_path / "target")
    before = files_of(tmp_path / "target")
    later = old_folder("lqr", tmp_path / "later")
    main(later.parents[2], tmp_path / "target")
    assert files_of(tmp_path / "target") == before
    assert (later / "result.json").exists()
    assert "left alone" in capsys.readouterr().err


def test_seeds_with_gaps_are_refused():
    config = {**old_result("lqr")["config"], "seeds": [0, 2]}
    with pytest.raises(ValueError, match="seeds are not consecutive"):
        migrated_config("lqr", config)
