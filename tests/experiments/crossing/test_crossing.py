import json

import pytest
from stored_runs import stored_run

from pisces.cli import main
from pisces.errors import UserError
from pisces.experiments import load
from pisces.experiments.crossing.config import TEST_LEVELS, VALIDATION_LEVELS, CrossingConfig
from pisces.experiments.crossing.experiment import Crossing
from pisces.experiments.crossing.tables import crossing_table
from pisces.runs.job import Job


def make(method, seed=0, preset="standard", changes=None, **options):
    return CrossingConfig.make(method, preset, seed=seed, changes=changes, **options)


def run(config, out):
    return Job(Crossing(), config).run(out)


def test_levels_of_training_validation_and_test_do_not_meet():
    seen = [set(make("ppo", seed).training_levels()) for seed in (0, 1, 1000)]
    groups = [*seen, set(VALIDATION_LEVELS), set(TEST_LEVELS)]
    assert sum(map(len, groups)) == len(set().union(*groups))
    assert make("ppo", 3).training_levels() == make("ppo+pse", 3).training_levels()


def test_the_two_methods_share_their_ppo_settings():
    plain, similar = (make(method).settings for method in ("ppo", "ppo+pse"))
    assert plain.similarity_rate == 0 < similar.similarity_rate
    for name in ("steps", "training_levels", "contrast", "learning_rate"):
        assert getattr(plain, name) == getattr(similar, name)


def test_same_config_same_result_and_finished_runs_stay(tmp_path):
    config = make("ppo+pse", preset="smoke")
    first, second = (run(config, tmp_path / name).file("result.json").read_text() for name in ("a", "b"))
    assert first == second
    result = json.loads(first)
    assert set(result) == {
        "experiment",
        "schema",
        "config",
        "curve",
        "train_levels_percent",
        "validation_levels_percent",
        "test_levels_percent",
    }
    assert [row["iteration"] for row in result["curve"]] == sorted(row["iteration"] for row in result["curve"])
    other = run(make("ppo", preset="smoke"), tmp_path / "a")
    assert other.read_result()["config"]["method"] == "ppo"
    with pytest.raises(UserError, match="runs of crossing keep no checkpoint, so there is no agent to load"):
        load(other.path)
    before = (tmp_path / "a").rglob("result.json")
    times = {path: path.stat().st_mtime_ns for path in before}
    run(config, tmp_path / "a")
    assert {path: path.stat().st_mtime_ns for path in times} == times


def test_configs_go_through_files_and_commands():
    config = make("ppo+pse", 4, "smoke", {"training_levels": 4})
    assert CrossingConfig.from_dict(json.loads(json.dumps(config.as_dict()))) == config
    command = "pisces train crossing --method ppo+pse --preset smoke --seed 4 --training-levels 4 --out runs"
    assert config.command("runs") == command
    configs = Crossing().sweep_configs(["ppo", "ppo+pse"], [0, 1], "standard", {}, {})
    assert [(config.seed, config.method) for config in configs] == [
        (seed, method) for seed in (0, 1) for method in ("ppo", "ppo+pse")
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pppo",), "did you mean 'ppo'"),
        (("ppo", -1), "seed must be in"),
        (("ppo", 0, "paper"), "unknown preset 'paper'.* standard"),
        (("ppo", 0, "smoke", {"rate": 1}), "unknown setting 'rate'"),
        (("ppo", 0, "smoke", {"training_levels": 1}), r"training_levels must be in \[2, 32\], got 1"),
        (("ppo", 0, "smoke", {"discount": 1.0}), r"discount must be in \[0, 1\), got 1.0"),
        (("ppo", 0, "smoke", {"contrast": 256}), r"contrast must be in \[0, 255\], got 256"),
        (("ppo", 0, "smoke", {"similarity_start": -1}), "similarity_start must be >= 0, got -1"),
        (("ppo", 0, "smoke", {"match_within": -0.1}), "match_within must be >= 0, got -0.1"),
    ],
)
def test_bad_configs_are_explained(arguments, message):
    with pytest.raises(UserError, match=message):
        make(*arguments)


def test_other_devices_are_refused(tmp_path):
    with pytest.raises(UserError, match="crossing runs on the CPU only, got device 'cuda'"):
        Job(Crossing(), make("ppo", preset="smoke"), device="cuda").run(tmp_path)


def test_the_table_pairs_the_seeds():
    def run_of(method, seed, percent, **arguments):
        shares = {f"{part}_levels_percent": percent for part in ("train", "validation", "test")}
        return stored_run(Crossing(), make(method, seed, **arguments), **shares)

    runs = [run_of("ppo", 0, 40.0), run_of("ppo", 1, 50.0), run_of("ppo+pse", 0, 50.0), run_of("ppo+pse", 1, 64.0)]
    runs += [run_of("ppo", 2, 0.0, changes={"steps": 100}), run_of("ppo", 2, 0.0, preset="smoke")]
    table = crossing_table(runs)
    plain, _, gain = table.rows
    assert [cell.values for cell in plain[1:]] == [(40.0, 50.0)] * 3
    assert [cell.values for cell in gain[1:]] == [(10.0, 14.0)] * 3
    assert "| `ppo` | **45.0** (7.1), n=2 [0.0, 100.0] |" in table.body()
    assert "| gain, same seeds | **12.0** (2.8), n=2 [-13.4, 37.4] |" in table.body()


def test_commands_train_and_list(tmp_path, capsys):
    assert main(["train", "crossing", "--method", "ppo", "--preset", "smoke", "--out", str(tmp_path)]) == 0
    assert "% of training levels solved" in capsys.readouterr().out
    assert main(["sweep", "crossing", "--seeds", "0-1", "--list", "--out", "runs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "pisces train crossing --method ppo+pse --preset standard --seed 0 --out runs"
    assert len(lines) == 4
