import json
from pathlib import Path

import pytest

from pisces.errors import UserError
from pisces.experiments.distracting.config import DistractingConfig
from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.lqr.config import LQRConfig
from pisces.experiments.minigrid.config import MiniGridConfig
from pisces.experiments.minigrid.tables import solved_table
from pisces.experiments.registry import all_experiments
from pisces.reports.results import read_runs as read_runs_of
from pisces.runs.store import SCHEMA

RESULTS = Path(__file__).parents[2] / "results"
SCHEMA_1 = Path(__file__).parents[1] / "data" / "schema1"


def read_runs(roots):
    return read_runs_of(roots, all_experiments())


def write_result(folder, config, **values):
    """Writes a result file of the right version, whatever its values."""
    folder.mkdir(parents=True)
    result = {"experiment": config.experiment, "schema": SCHEMA, "config": config.as_dict(), **values}
    (folder / "result.json").write_text(json.dumps(result))


def test_runs_are_read_once_and_sorted(tmp_path, write_run):
    for seed in (2, 0, 1):
        write_run(tmp_path / "runs", seed=seed)
    write_run(tmp_path / "results", seed=1)
    found = read_runs([tmp_path / "runs", tmp_path / "results", tmp_path / "runs"])
    assert [run.config.seed for run in found.runs] == [0, 1, 2]
    assert {run.setting for run in found.runs} == {found.runs[0].setting}
    assert found.versions() == {"0.1.0": 3}
    assert found.of("jumping") == list(found.runs)
    assert found.of("lqr") == []


def test_of_two_copies_the_one_with_a_checkpoint_is_taken(tmp_path, write_run):
    write_run(tmp_path / "a")
    write_run(tmp_path / "b", checkpoint=True)
    write_run(tmp_path / "c")
    (run,) = read_runs([tmp_path]).runs
    assert run.has_checkpoint
    assert run.folder.parts[-4] == "b"


def test_runs_made_before_a_setting_came_count_as_its_default(tmp_path, write_run):
    def older(result):
        del result["config"]["settings"]["restarts"], result["config"]["training_tasks"]

    write_run(tmp_path / "new", seed=0)
    write_run(tmp_path / "old", seed=1, change=older)
    write_run(tmp_path / "copy", seed=0, change=older)
    write_run(tmp_path / "other", seed=0, training_tasks=9)
    found = read_runs([tmp_path])
    assert len(found.runs) == 3
    assert [len(group) for group in found.by_setting()] == [2, 1]


def test_each_setting_of_the_results_has_a_name_of_its_own():
    groups = read_runs([RESULTS]).by_setting()
    names = [(group[0].experiment.name, group[0].config.label) for group in groups]
    assert len(set(names)) == len(names)


def test_runs_of_all_experiments_have_their_headline_measures(tmp_path):
    lqr, control = LQRConfig.make("psm", "paper"), DistractingConfig.make("drq", "cpu")
    write_result(tmp_path / "control", control, test_return=1.5, train_return=2.5)
    write_result(tmp_path / "lqr", lqr, runs=[{"seed": 0, "error": 0.5}])
    runs = read_runs([tmp_path]).runs
    assert [(run.experiment.name, run.config, run.measure.name, run.value) for run in runs] == [
        ("lqr", lqr, "error", 0.5),
        ("distracting", control, "test_return", 1.5),
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda r: r.pop("test_solved_percent"), "it has no test_solved_percent or red_test_solved_percent"),
        (lambda r: r.update(test_solved_percent="x"), "test_solved_percent is not a finite number"),
        (lambda r: r.update(test_solved_percent=10**400), "test_solved_percent is not a finite number"),
        (lambda r: r.update(train_solved_percent=float("nan")), "train_solved_percent is not a finite number"),
        (lambda r: r["config"].update(epsilon="x"), "epsilon must be a finite number, got 'x'"),
        (lambda r: r["config"].update(seed="x"), "seed must be an integer, got 'x'"),
        (lambda r: r["config"].update(method="psse"), "unknown method 'psse'; did you mean"),
        (lambda r: r["config"].update(grid="x"), "unknown grid 'x'"),
        (lambda r: r["config"].update(unknown=1), "not a config of jumping runs"),
        (lambda r: r["config"].pop("method"), "not a config of jumping runs"),
        (lambda r: r["config"].pop("settings"), "not a config of jumping runs"),
        (lambda r: r.pop("actions"), "is missing"),
        (lambda r: r["tasks"].pop(), "it lists other tasks than the 286 of this version"),
        (lambda r: r.update(solved="1"), "one solved flag per task"),
        (lambda r: r["actions"].__setitem__(0, "0"), "one action per state"),
        (lambda r: r.update(solved="2" * 286), "strings of 0 and 1"),
        (lambda r: r.update(curve=[1]), "its curve is not a list of rows of numbers"),
        (lambda r: r["curve"][0].update(iteration=None), "its curve is not a list of rows of numbers"),
        (lambda r: r["train_tasks"][3].pop("color"), "train_tasks need obstacle_position"),
    ],
)
def test_unusable_results_are_named_and_left_alone(change, reason, tmp_path, write_run):
    folder = write_run(tmp_path, seed=1, change=change)
    before = (folder / "result.json").read_text()
    write_run(tmp_path, seed=0)
    found = read_runs([tmp_path])
    assert len(found.runs) == 1
    (line,) = found.skipped
    assert line.startswith(str(folder / "result.json"))
    assert reason in line
    assert (folder / "result.json").read_text() == before


def test_a_missing_folder_is_explained(tmp_path):
    with pytest.raises(UserError, match="not a folder"):
        read_runs([tmp_path / "nowhere"])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"schema": 1}, "was written by an earlier version (schema 1); run: python studies/migrate_results.py"),
        ({"schema": SCHEMA + 1}, f"was written by a newer version (schema {SCHEMA + 1}); update pisces"),
        ({"schema": None}, "was written by an earlier version"),
        ({"experiment": "grid"}, "unknown experiment 'grid'"),
        ({"experiment": ["jumping"]}, "unknown experiment ['jumping']"),
        ({"experiment": None}, "unknown experiment None"),
        ({"config": []}, "not a readable result"),
        ({"config": {"method": {}}}, "not a config of jumping runs"),
        ({"config": {"method": ["randconv"]}}, "not a config of jumping runs"),
        ({"tasks": {}}, "tasks, solved, actions or train_tasks is missing"),
        ({"actions": [1] * 286}, "actions must be strings of 0 and 1"),
        ({"curve": {}}, "its curve is not a list of rows of numbers"),
        ({"train_tasks": [{"obstacle_position": [], "floor_height": 10, "color": "white"}]}, "train_tasks need"),
    ],
)
def test_results_of_other_versions_and_wrong_types_are_named(content, reason, tmp_path, write_run):
    folder = write_run(tmp_path, seed=1, change=lambda result: result.update(content))
    write_run(tmp_path, seed=0)
    found = read_runs([tmp_path])
    assert [run.config.seed for run in found.runs] == [0]
    (line,) = found.skipped
    assert line.startswith(str(folder / "result.json"))
    assert reason in line
    assert "\n" not in line


def test_results_without_a_version_have_the_first(tmp_path):
    found = read_runs([SCHEMA_1])
    assert not found.runs
    assert len(found.skipped) == len(list(SCHEMA_1.rglob("result.json"))) > 3
    assert all("(schema 1); run: python studies/migrate_results.py" in line for line in found.skipped)


@pytest.mark.parametrize(
    "runs", ["none", "", [], [1], [{}], [{"seed": []}], {"a": 1}, 3, None, [{"seed": 0, "error": []}]]
)
def test_cells_of_wrong_types_are_named(runs, tmp_path):
    write_result(tmp_path / "cell", LQRConfig.make("psm", "paper"), runs=runs)
    found = read_runs([tmp_path])
    assert not found.runs
    (line,) = found.skipped
    assert line.startswith(str(tmp_path / "cell" / "result.json"))


@pytest.mark.parametrize("text", ["{", "[]", "3", "", "[" * 2000, '{"config": ' * 2000, "9" * 5000, "\x00"])
def test_files_that_are_no_results_are_named(text, tmp_path, write_run):
    write_run(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "result.json").write_text(text)
    found = read_runs([tmp_path])
    assert len(found.runs) == 1
    assert found.skipped == (f"{tmp_path / 'other' / 'result.json'}: not a readable result",)


def test_nested_values_and_huge_numbers_do_not_end_the_report(tmp_path, write_run):
    good = (write_run(tmp_path, seed=0) / "result.json").read_text()
    for number, value in enumerate(("[" * 2000 + "]" * 2000, "9" * 400, "9" * 5000)):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "result.json").write_text(good.replace('"seed": 0', f'"seed": {value}'))
    found = read_runs([tmp_path])
    assert len(found.runs) == 1
    assert len(found.skipped) == 3


@pytest.mark.parametrize(
    ("config", "label"),
    [
        (JumpingConfig.make("pse", "paper", colors=True), "pse, wide, colors"),
        (JumpingConfig.make("pse", "quick", grid="narrow", epsilon=0.1), "pse, narrow, epsilon=0.1, preset quick"),
        (LQRConfig.make("psm", "paper", threads=5, n_seeds=3), "psm, 500 distractors, threads=5, n_seeds=3"),
        (DistractingConfig.make("drq", "paper", task="walker-walk"), "drq, walker-walk"),
    ],
)
def test_labels_name_each_option_once(config, label):
    assert config.label == label


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ({}, "pisces train jumping --method pse --preset paper --seed 0"),
        ({"colors": True}, "pisces train jumping --method pse --preset paper --colors --seed 0"),
        (
            {"epsilon": 0.1, "training_tasks": 9, "threads": 2, "changes": {"weighted": False, "epochs": 3}},
            "pisces train jumping --method pse --preset paper --threads 2 --epsilon 0.1 --training-tasks 9 --seed 0 "
            "--epochs 3 --weighted False",
        ),
    ],
)
def test_commands_repeat_their_runs(arguments, command):
    assert JumpingConfig.make("pse", "paper", **arguments).command() == command


def test_commands_quote_what_a_shell_would_read():
    assert "--davis 'x; rm -r *'" in DistractingConfig.make("drq", "cpu", davis="x; rm -r *").command()


def test_a_cell_of_many_seeds_is_taken_apart(tmp_path):
    cell = LQRConfig.make("psm", "paper", n_seeds=3)
    rows = [{"seed": seed, "error": error} for seed, error in enumerate((0.1, 0.2, None))]
    write_result(tmp_path / "cell", cell, runs=rows)
    write_result(tmp_path / "single", LQRConfig.make("psm", "paper", seed=1), runs=rows[1:2])
    found = read_runs([tmp_path])
    assert [(run.config.seed, run.value) for run in found.runs] == [(0, 0.1), (1, 0.2)]
    assert len({run.setting for run in found.runs}) == 1
    assert "seed 2 is unstable" in found.skipped[0]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (
            LQRConfig.make("psm", "paper", n_seeds=5, distractors=1000),
            "sweep lqr --methods psm --preset paper --seeds 0-4 --distractors 1000",
        ),
        (
            LQRConfig.make("l1", "paper", seed=3, environments=4, changes={"sparsity": 0.5}),
            "train lqr --method l1 --preset paper --environments 4 --seed 3 --sparsity 0.5",
        ),
        (
            DistractingConfig.make(
                "drq", "cpu", seed=2, task="walker-walk", init="pretrained", threads=2, changes={"steps": 9}
            ),
            "train distracting --method drq --preset cpu --threads 2 --task walker-walk --init pretrained --seed 2 "
            "--steps 9",
        ),
    ],
)
def test_commands_of_other_experiments(config, words):
    stored = json.loads(json.dumps(config.as_dict()))
    assert type(config).from_dict(stored).command() == f"pisces {words}"


def test_a_seed_of_a_changed_cell_has_its_own_command(tmp_path):
    config = LQRConfig.make("psm", "paper", seed=1000, n_seeds=2, changes={"aggregation": 100.0})
    write_result(tmp_path / "cell", config, runs=[{"seed": seed, "error": 0.1} for seed in config.seeds])
    assert [run.config.command() for run in read_runs([tmp_path]).runs] == [
        f"pisces train lqr --method psm --preset paper --seed {seed} --aggregation 100.0" for seed in (1000, 1001)
    ]


def test_minigrid_results_without_their_numbers_are_left_out(tmp_path):
    numbers = {"train_solved_percent": 1.0, "validation_solved_percent": 2.0, "test_solved_percent": 3.0}
    config = MiniGridConfig.make("ppo", "standard")
    write_result(tmp_path / "whole", config, **numbers)
    write_result(tmp_path / "few", config, test_solved_percent=3.0)
    write_result(tmp_path / "half", config, **{**numbers, "validation_solved_percent": None})
    found = read_runs([tmp_path])
    assert len(found.runs) == 1
    assert "it has no train_solved_percent" in found.skipped[0]
    assert "validation_solved_percent is not a finite number" in found.skipped[1]
    assert "`ppo`" in solved_table(found.runs).markdown()
