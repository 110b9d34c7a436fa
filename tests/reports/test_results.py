import json
from pathlib import Path

import pytest

from pisces.errors import UserError
from pisces.experiments import distracting, lqr
from pisces.experiments.jumping import command_of, make_config
from pisces.reports.explorer import label_of, settings_of
from pisces.reports.grid import grid_table
from pisces.reports.results import read_runs

RESULTS = Path(__file__).parents[2] / "results"


def test_runs_are_read_once_and_sorted(tmp_path, write_run):
    for seed in (2, 0, 1):
        write_run(tmp_path / "runs", seed=seed)
    write_run(tmp_path / "results", seed=1)
    found = read_runs([tmp_path / "runs", tmp_path / "results", tmp_path / "runs"])
    assert [run.config["seed"] for run in found.runs] == [0, 1, 2]
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
    assert [len(group) for group in settings_of(found)] == [2, 1]


def test_each_setting_of_the_results_has_a_name_of_its_own():
    groups = settings_of(read_runs([RESULTS]))
    names = [(group[0].experiment, label_of(group[0])) for group in groups]
    assert len(set(names)) == len(names)


def test_other_experiments_are_told_by_their_numbers(tmp_path):
    for name, value in (("lqr", "error"), ("distracting", "test_return")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_text(json.dumps({"config": {"method": "m", "seed": 0}, value: 1.5}))
    assert [(run.experiment, run.headline) for run in read_runs([tmp_path]).runs] == [
        ("distracting", "test_return"),
        ("lqr", "error"),
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda r: r.pop("test_solved_percent"), "another version"),
        (lambda r: r.update(test_solved_percent="x"), "a finite number as test_solved_percent"),
        (lambda r: r.update(train_solved_percent=float("nan")), "a finite number as train_solved_percent"),
        (lambda r: r["config"].update(epsilon="x"), "a number as epsilon"),
        (lambda r: r["config"].pop("seed"), "without method and seed"),
        (lambda r: r["config"].pop("grid"), "without grid and settings"),
        (lambda r: r.pop("actions"), "is missing"),
        (lambda r: r["tasks"].pop(), "expected the 286 tasks"),
        (lambda r: r.update(solved="1"), "one solved flag per task"),
        (lambda r: r["actions"].__setitem__(0, "0"), "one action per state"),
        (lambda r: r.update(solved="2" * 286), "strings of 0 and 1"),
        (lambda r: r.update(curve=[1]), "rows of numbers in curve"),
        (lambda r: r["curve"][0].update(iteration=None), "rows of numbers in curve"),
        (lambda r: r["train_tasks"][3].pop("color"), "expected train_tasks with"),
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
    ("arguments", "command"),
    [
        ({}, "pisces train jumping --method pse --grid wide --seed 0 --preset paper"),
        ({"colors": True}, "pisces train jumping --method pse --grid wide --seed 0 --preset paper --colors"),
        (
            {"epsilon": 0.1, "training_tasks": 9, "threads": 2, "changes": {"weighted": False, "epochs": 3}},
            "pisces train jumping --method pse --grid wide --seed 0 --preset paper --epsilon 0.1 --training-tasks 9 "
            "--threads 2 --set epochs=3 weighted=False",
        ),
    ],
)
def test_commands_repeat_their_runs(arguments, command):
    assert command_of(make_config("pse", **arguments).as_dict()) == command


def test_commands_quote_what_a_shell_would_read():
    config = {**make_config("pse").as_dict(), "method": "x; rm -r *"}
    assert "--method 'x; rm -r *'" in command_of(config)


def lqr_result(config, errors):
    rows = [{"seed": seed, "error": error} for seed, error in zip(config.seeds, errors, strict=True)]
    return {"config": config.as_dict(), "runs": rows}


def test_a_cell_of_many_seeds_is_taken_apart(tmp_path):
    cell, single = lqr.make_config("psm", 500, (0, 1, 2)), lqr.make_config("psm", 500, (1,))
    results = {"cell": lqr_result(cell, [0.1, 0.2, None]), "single": lqr_result(single, [0.2]) | {"error": 0.2}}
    for name, result in results.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_text(json.dumps(result))
    found = read_runs([tmp_path])
    assert [(run.config["seed"], run.result["error"]) for run in found.runs] == [(0, 0.1), (1, 0.2)]
    assert len({run.setting for run in found.runs}) == 1
    assert "seed 2 is unstable" in found.skipped[0]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (
            lqr.make_config("psm", 1000, (*range(5), 7)),
            "sweep lqr --methods psm --distractors 1000 --seeds 0-4,7 --preset paper",
        ),
        (
            lqr.make_config("l1", 500, (3,), environments=4, changes={"sparsity": 0.5}),
            "train lqr --method l1 --distractors 500 --seed 3 --preset paper --environments 4 --set sparsity=0.5",
        ),
        (
            distracting.make_config("drq", "walker-walk", 2, "cpu", "pretrained", threads=2, changes={"steps": 9}),
            "train distracting --task walker-walk --method drq --init pretrained --seed 2 --preset cpu --threads 2 "
            "--set steps=9",
        ),
    ],
)
def test_commands_of_other_experiments(config, words):
    module = lqr if "distractors" in config.as_dict() else distracting
    assert module.command_of(json.loads(json.dumps(config.as_dict()))) == f"pisces {words}"


def test_a_seed_of_a_changed_cell_has_its_own_command():
    config = lqr.make_config("psm", 500, (1000, 1001), changes={"aggregation": 100.0}).as_dict() | {"seed": 1001}
    assert lqr.command_of(config) == (
        "pisces train lqr --method psm --distractors 500 --seed 1001 --preset paper --set aggregation=100.0"
    )


def test_grid_results_of_other_versions_are_left_out(tmp_path):
    numbers = {"train_levels_percent": 1.0, "validation_levels_percent": 2.0, "test_levels_percent": 3.0}
    for name, result in (("whole", numbers), ("half", {**numbers, "validation_levels_percent": None})):
        (tmp_path / name).mkdir()
        config = {"method": "sac", "seed": 0, "preset": "standard"}
        (tmp_path / name / "result.json").write_text(json.dumps({"config": config, **result}))
    found = read_runs([tmp_path])
    assert len(found.runs) == 1
    assert "validation_levels_percent" in found.skipped[0]
    assert "`sac`" in grid_table([run.result for run in found.runs])
