import json
from dataclasses import replace

import pytest

from pisces.cli import main
from pisces.experiments.search_space import Choice, Range
from pisces.experiments.tunable import TUNABLES, Tunable, TuningConfig, tunable
from pisces.experiments.tuning import ATTEMPTS, Study
from pisces.experiments.tuning_workers import tune


class Fake:
    """An experiment whose score is known: the higher x, the better."""

    def __init__(self):
        self.tried = []

    def score(self, config, changes, runs, report):
        self.tried.append(changes["x"])
        for step in range(3):
            report(step, changes["x"])
        return changes["x"]


CONFIG = {"experiment": "fake", "method": "fake", "preset": "smoke", "seeds": (0,), "fixed": {}, "options": {}}


@pytest.fixture
def fake(monkeypatch):
    experiment = Fake()

    def score(*arguments):
        return experiment.score(*arguments)

    entry = Tunable("score", "maximize", {"x": 0.0}, lambda method: (), lambda *_: None, score)
    monkeypatch.setitem(TUNABLES, "fake", entry)
    return experiment


X = Range("x", 0, 1)


def config_of(space=(X,), **changes):
    return TuningConfig(**CONFIG, space=space, **{"pruner": "none", **changes})


def test_goes_on_and_finds_the_best(fake, tmp_path):
    Study(config_of(), tmp_path).work(4)
    study = Study(config_of(), tmp_path)
    study.work(6)
    study.work(6)
    assert len(fake.tried) == 6
    state = study.state()
    assert [trial.settings["x"] for trial in state.trials] == fake.tried
    assert state.best.score == max(fake.tried)
    written = json.loads(study.folder.file("tuning.json").read_text())
    assert written["best"]["settings"] == {"x": max(fake.tried)}
    assert len(written["trials"]) == 6


def test_the_draws_do_not_depend_on_who_draws(fake, tmp_path, monkeypatch):
    monkeypatch.setattr("pisces.experiments.tuning.STARTUP_TRIALS", 3)
    Study(config_of(), tmp_path / "one").work(6)
    for number in (2, 5, 6):
        Study(config_of(), tmp_path / "many").work(number)
    assert fake.tried[:6] == fake.tried[6:]


def test_tpe_learns_where_the_score_is_high(fake, tmp_path):
    Study(config_of(), tmp_path).work(18)
    assert sum(fake.tried[10:]) / 8 > sum(fake.tried[:10]) / 10


def test_another_direction(fake, tmp_path, monkeypatch):
    monkeypatch.setitem(TUNABLES, "fake", replace(tunable("fake"), direction="minimize"))
    study = Study(config_of(), tmp_path)
    study.work(4)
    assert study.state().best.score == min(fake.tried)


def test_failed_trials_are_recorded_and_the_study_goes_on(fake, tmp_path, monkeypatch):
    def score(config, changes, runs, report):
        fake.tried.append(changes["x"])
        if len(fake.tried) == 2:
            raise RuntimeError("no luck")
        return changes["x"]

    monkeypatch.setattr(fake, "score", score)
    study = Study(config_of(), tmp_path)
    study.work(4)
    states = [trial.state for trial in study.state().trials]
    assert states == ["complete", "failed", "complete", "complete"]
    assert study.state().trials[1].error == "RuntimeError: no luck"
    assert "no luck" in study.folder.file("error_1.txt").read_text()
    assert json.loads(study.folder.file("tuning.json").read_text())["trials"][1]["error"] == "RuntimeError: no luck"


def test_pruning_goes_by_the_reported_scores(fake, tmp_path, monkeypatch):
    def score(config, changes, runs, report):
        fake.tried.append(changes["x"])
        bad = len(fake.tried) > 6
        for step in range(4):
            report(step, 0.0 if bad else 50.0 + step)
        return 90.0

    monkeypatch.setattr(fake, "score", score)
    study = Study(config_of(pruner="median"), tmp_path)
    study.work(8)
    assert [trial.state for trial in study.state().trials] == ["complete"] * 6 + ["pruned"] * 2
    assert study.state().trials[-1].score == 0


def test_a_stopped_trial_is_taken_up_with_its_settings(fake, tmp_path, monkeypatch):
    def interrupted(config, changes, runs, report):
        fake.tried.append(changes["x"])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fake, "score", interrupted)
        for _ in range(ATTEMPTS + 1):
            with pytest.raises(KeyboardInterrupt):
                Study(config_of(), tmp_path).work(3)
    study = Study(config_of(), tmp_path)
    study.work(3)
    assert len(set(fake.tried)) == 3
    assert fake.tried[: ATTEMPTS + 2] == [fake.tried[0]] * (ATTEMPTS + 2)
    assert [trial.state for trial in study.state().trials] == ["complete"] * 3


def test_a_trial_that_kills_its_process_is_given_up(fake, tmp_path):
    study = Study(config_of(), tmp_path)
    for _ in range(ATTEMPTS):
        _, lock = study._take(1)
        lock.close()
    assert study._take(1) is None
    (trial,) = study.state().trials
    assert trial.state == "failed"
    assert "died" in trial.error


def test_a_trial_whose_command_ended_with_it_is_not_held_against_it(fake, tmp_path):
    for _ in range(2 * ATTEMPTS):
        study = Study(config_of(), tmp_path)
        study.forgive()
        _, lock = study._take(1)
        lock.close()  # as if command and worker were killed
    study = Study(config_of(), tmp_path)
    study.forgive()
    study.work(1)
    assert [trial.state for trial in study.state().trials] == ["complete"]


@pytest.mark.parametrize("name", ["what?", "x%20y", "a#b", "{c}"])
def test_a_study_lies_in_its_folder_whatever_the_name(fake, tmp_path, name):
    study = Study(config_of(), tmp_path / name)
    study.work(1)
    assert study.folder.file("study.db").exists()
    assert len(Study(config_of(), tmp_path / name).state().trials) == 1


def test_trials_of_a_living_process_are_left_alone(fake, tmp_path):
    first, second = Study(config_of(), tmp_path), Study(config_of(), tmp_path)
    _, lock = first._take(2)
    second.work(2)
    assert [trial.state for trial in second.state().trials] == ["running", "complete"]
    lock.close()
    second.work(2)
    assert [trial.state for trial in second.state().trials] == ["complete", "complete"]


def test_grid_tries_every_cell_once(fake, tmp_path):
    space = (Choice("x", (1.0, 2.0, 3.0)), Choice("y", ("a", "b")))
    study = Study(config_of(space, sampler="grid"), tmp_path)
    study.work(2)
    study.work(100)
    tried = [tuple(trial.settings.values()) for trial in study.state().trials]
    assert sorted(tried) == sorted((x, y) for x in (1.0, 2.0, 3.0) for y in "ab")


def test_workers_share_a_study(tmp_path):
    space = tunable("lqr").space("psm")
    fixed = {"max_steps": 2, "starts": 2}
    config = TuningConfig("lqr", "psm", "smoke", (0,), space, fixed, {"distractors": 40})
    seen = []
    study = tune(config, tmp_path, 4, 2, seen.append)
    state = study.state()
    assert [trial.state for trial in state.trials] == ["complete"] * 4
    assert seen[-1] == state
    assert len(list(study.folder.file("runs").glob("lqr/psm/*/result.json"))) == 4


def test_command_prints_settings_that_can_be_pasted(tmp_path, capsys):
    words = ["--preset", "smoke", "--distractors", "40", "--seeds", "0", "--trials", "1", "--set", "max_steps=2"]
    arguments = ["tune", "lqr", *words, "--search", "aggregation=1e5,1e6", "--out", str(tmp_path)]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    command = printed.split("best settings: ")[1].split()
    assert command[:3] == ["pisces", "train", "lqr"]
    assert main([*command[1:], "--out", str(tmp_path / "runs")]) == 0
    assert main(arguments) == 0
    assert "going on with a study of 1 trials" in capsys.readouterr().out


def test_the_grid_benchmark_is_tuned_on_its_validation_levels(tmp_path, capsys):
    pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed: pip install '.[sb3]'")
    words = ["--preset", "smoke", "--seeds", "1000", "--trials", "1", "--set", "steps=1024", "similarity_start=0"]
    assert main(["tune", "grid", *words, "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "pisces train grid --method ppo+pse --preset smoke --set steps=1024 similarity_start=0" in printed
    (study,) = (json.loads(path.read_text()) for path in tmp_path.rglob("tuning.json"))
    (run,) = (json.loads(path.read_text()) for path in tmp_path.rglob("result.json"))
    assert study["best"]["score"] == run["validation_levels_percent"]
    assert study["best"]["settings"].items() <= run["config"]["settings"].items()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--search", "temprature=0.1:1"], "did you mean 'temperature'"),
        (["--trials", "0"], "expected trials and workers"),
        (["--sampler", "grid"], "for a grid search, got a range"),
        (["--method", "psee"], "did you mean 'pse'"),
    ],
)
def test_bad_words_end_with_one_line(arguments, message, tmp_path, capsys):
    assert main(["tune", "jumping", "--preset", "smoke", *arguments, "--out", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_grid_that_was_half_queued_is_tried_whole(fake, tmp_path, monkeypatch):
    config = config_of((Choice("x", (1, 2, 3, 4, 5)),), sampler="grid")
    study = Study(config, tmp_path)
    queue, left = study._study.enqueue_trial, iter([True, True])

    def stop_after_two(*arguments, **options):
        if not next(left, False):
            raise KeyboardInterrupt
        queue(*arguments, **options)

    monkeypatch.setattr(study._study, "enqueue_trial", stop_after_two)
    with pytest.raises(KeyboardInterrupt):
        study.work(5)
    Study(config, tmp_path).work(9)
    assert sorted(fake.tried) == [1, 2, 3, 4, 5]
