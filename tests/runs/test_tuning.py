import json
import math

import pytest
from fake_experiment import FAKE, FakeConfig, FakeExperiment

from pisces.errors import UserError
from pisces.runs.measure import Measure
from pisces.runs.progress import Progress
from pisces.runs.search_space import Choice, Range
from pisces.runs.store import RunFolder
from pisces.runs.study import ATTEMPTS
from pisces.runs.tuning import Study, TuningConfig, tune
from pisces.runs.tuning_config import score_settings


class Trials:
    """Stands in for the runs of a trial; the score is known: the higher x, the better."""

    def __init__(self):
        self.tried = []

    def score(self, config, settings, runs, report):
        self.tried.append(settings["x"])
        for step in range(3):
            report(step, settings["x"])
        return settings["x"]


CONFIG = {"experiment": FAKE, "method": "fake", "preset": "smoke", "seeds": (0,), "fixed": {}, "options": {}}


@pytest.fixture
def trials(monkeypatch):
    made = Trials()
    monkeypatch.setattr("pisces.runs.study.score_settings", lambda *arguments: made.score(*arguments))
    return made


X = Range("x", 0, 1)


def config_of(space=(X,), **changes):
    return TuningConfig(**{**CONFIG, "space": space, "pruner": "none", **changes})


def test_goes_on_and_finds_the_best(trials, tmp_path):
    Study(config_of(), tmp_path).work(4)
    study = Study(config_of(), tmp_path)
    study.work(6)
    study.work(6)
    assert len(trials.tried) == 6
    state = study.state()
    assert [trial.settings["x"] for trial in state.trials] == trials.tried
    assert state.best.score == max(trials.tried)
    written = json.loads(study.folder.file("tuning.json").read_text())
    assert written["best"]["settings"] == {"x": max(trials.tried)}
    assert len(written["trials"]) == 6


def test_the_draws_do_not_depend_on_who_draws(trials, tmp_path, monkeypatch):
    monkeypatch.setattr("pisces.runs.study.STARTUP_TRIALS", 3)
    Study(config_of(), tmp_path / "one").work(6)
    for number in (2, 5, 6):
        Study(config_of(), tmp_path / "many").work(number)
    assert trials.tried[:6] == trials.tried[6:]


def test_tpe_learns_where_the_score_is_high(trials, tmp_path):
    Study(config_of(), tmp_path).work(18)
    assert sum(trials.tried[10:]) / 8 > sum(trials.tried[:10]) / 10


def test_another_direction(trials, tmp_path, monkeypatch):
    monkeypatch.setattr(FakeExperiment, "score", Measure("error", "validation error", "lower"))
    study = Study(config_of(), tmp_path)
    study.work(4)
    assert study.state().best.score == min(trials.tried)


def test_failed_trials_are_recorded_and_the_study_goes_on(trials, tmp_path, monkeypatch):
    def score(config, settings, runs, report):
        trials.tried.append(settings["x"])
        if len(trials.tried) == 2:
            raise RuntimeError("no luck")
        return settings["x"]

    monkeypatch.setattr(trials, "score", score)
    study = Study(config_of(), tmp_path)
    study.work(4)
    states = [trial.state for trial in study.state().trials]
    assert states == ["complete", "failed", "complete", "complete"]
    assert study.state().trials[1].error == "RuntimeError: no luck"
    assert "no luck" in study.folder.file("error_1.txt").read_text()
    assert json.loads(study.folder.file("tuning.json").read_text())["trials"][1]["error"] == "RuntimeError: no luck"


def test_pruning_goes_by_the_reported_scores(trials, tmp_path, monkeypatch):
    def score(config, settings, runs, report):
        trials.tried.append(settings["x"])
        bad = len(trials.tried) > 6
        for step in range(4):
            report(step, 0.0 if bad else 50.0 + step)
        return 90.0

    monkeypatch.setattr(trials, "score", score)
    study = Study(config_of(pruner="median"), tmp_path)
    study.work(8)
    assert [trial.state for trial in study.state().trials] == ["complete"] * 6 + ["pruned"] * 2
    assert study.state().trials[-1].score == 0


def test_a_stopped_trial_is_taken_up_with_its_settings(trials, tmp_path, monkeypatch):
    def interrupted(config, settings, runs, report):
        trials.tried.append(settings["x"])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(trials, "score", interrupted)
        for _ in range(ATTEMPTS + 1):
            with pytest.raises(KeyboardInterrupt):
                Study(config_of(), tmp_path).work(3)
    study = Study(config_of(), tmp_path)
    study.work(3)
    assert len(set(trials.tried)) == 3
    assert trials.tried[: ATTEMPTS + 2] == [trials.tried[0]] * (ATTEMPTS + 2)
    assert [trial.state for trial in study.state().trials] == ["complete"] * 3


def test_a_trial_that_kills_its_process_is_given_up(trials, tmp_path):
    study = Study(config_of(), tmp_path)
    for _ in range(ATTEMPTS):
        _, lock = study._take(1)
        lock.close()
    assert study._take(1) is None
    (trial,) = study.state().trials
    assert trial.state == "failed"
    assert "died" in trial.error


def test_a_trial_whose_command_ended_with_it_is_not_held_against_it(trials, tmp_path):
    for _ in range(2 * ATTEMPTS):
        study = Study(config_of(), tmp_path)
        study.mark_orphaned_trials()
        _, lock = study._take(1)
        lock.close()  # as if command and worker were killed
    study = Study(config_of(), tmp_path)
    study.mark_orphaned_trials()
    study.work(1)
    assert [trial.state for trial in study.state().trials] == ["complete"]


@pytest.mark.parametrize("name", ["what?", "x%20y", "a#b", "{c}"])
def test_a_study_lies_in_its_folder_whatever_the_name(trials, tmp_path, name):
    study = Study(config_of(), tmp_path / name)
    study.work(1)
    assert study.folder.file("study.db").exists()
    assert len(Study(config_of(), tmp_path / name).state().trials) == 1


def test_trials_of_a_living_process_are_left_alone(trials, tmp_path):
    first, second = Study(config_of(), tmp_path), Study(config_of(), tmp_path)
    _, lock = first._take(2)
    second.work(2)
    assert [trial.state for trial in second.state().trials] == ["running", "complete"]
    lock.close()
    second.work(2)
    assert [trial.state for trial in second.state().trials] == ["complete", "complete"]


def test_grid_tries_every_cell_once(trials, tmp_path):
    space = (Choice("x", (1.0, 2.0, 3.0)), Choice("y", ("a", "b")))
    study = Study(config_of(space, sampler="grid"), tmp_path)
    study.work(2)
    study.work(100)
    tried = [tuple(trial.settings.values()) for trial in study.state().trials]
    assert sorted(tried) == sorted((x, y) for x in (1.0, 2.0, 3.0) for y in "ab")


def test_workers_share_a_study(fake, tmp_path):
    seen = []
    study = tune(config_of(options={"iterations": 1}), tmp_path, 4, 2, seen.append)
    state = study.state()
    assert [trial.state for trial in state.trials] == ["complete"] * 4
    assert seen[-1] == state
    assert len(list(study.folder.file("runs").glob("fake/fake/*/result.json"))) == 4


def test_a_trial_that_kills_its_worker_is_abandoned_and_the_others_run(fake, tmp_path):
    space = (Choice("behavior", ("die", "good")),)
    study = tune(config_of(space, sampler="grid", options={"iterations": 1}), tmp_path, 2, 1)
    assert [(trial.state, trial.settings["behavior"]) for trial in study.state().trials] == [
        ("failed", "die"),
        ("complete", "good"),
    ]
    (starts,) = (path for path in tmp_path.rglob("starts") if len(path.read_text()) > 1)
    assert len(starts.read_text()) == ATTEMPTS


def test_a_grid_that_was_half_queued_is_tried_whole(trials, tmp_path, monkeypatch):
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
    assert sorted(trials.tried) == [1, 2, 3, 4, 5]


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr("fake_experiment.ITERATION_SECONDS", 0)


def reports_of(config, settings, runs):
    told = []
    return score_settings(config, settings, runs, lambda *arguments: told.append(arguments)), told


def test_reports_are_means_with_the_scores_of_finished_seeds(quick, tmp_path):
    config = config_of(seeds=(1, 2), options={"iterations": 2})
    score, told = reports_of(config, {"x": 0.5}, tmp_path)
    assert score == 20.5
    assert told == [(1, 11.5), (2, 12.5), (3, 18.5), (4, 19.0)]
    # Runs that are finished report their scores only.
    assert reports_of(config, {"x": 0.5}, tmp_path) == (20.5, [(2, 15.5), (4, 20.5)])


def test_evaluations_that_come_late_keep_their_numbers(tmp_path, monkeypatch):
    def run(self, config, folder, listeners, device):
        for iteration in (7, 14, 20):
            for listener in listeners:
                listener(Progress(iteration, 20, evaluation={"validation": iteration}))
        folder.write_result(config, {"validation": 20})

    monkeypatch.setattr(FakeExperiment, "run", run)
    monkeypatch.setattr(FakeExperiment, "evaluations", lambda self, config: 3)
    _, told = reports_of(config_of(seeds=(1,)), {"x": 0.0}, tmp_path)
    assert told == [(1, 7), (2, 14), (3, 20)]


def test_requirements_are_run_but_not_scored(quick, tmp_path):
    score, told = reports_of(config_of(seeds=(1,), options={"iterations": 2, "needs": 7}), {"x": 0.0}, tmp_path)
    assert score == 15
    assert told == [(1, 11), (2, 12)]
    assert RunFolder.of(tmp_path, FakeConfig(7)).finished


def test_a_trial_waits_for_the_process_that_has_its_run(quick, tmp_path, monkeypatch):
    config, sleeps = config_of(options={"needs": 7}), []
    needed, run = FakeConfig(7), config.run_config({"x": 0.0}, 0)
    locks = [RunFolder.of(tmp_path, one).create(one).lock() for one in (needed, run)]
    for lock in locks:
        lock.__enter__()

    def release_one(seconds):
        if seconds:
            sleeps.append(seconds)
            locks.pop(0).__exit__(None, None, None)

    monkeypatch.setattr("pisces.runs.lock.time.sleep", release_one)
    score, _ = reports_of(config, {"x": 0.0}, tmp_path)
    assert score == 5
    assert len(sleeps) == 2


@pytest.mark.parametrize(("better", "worst"), [("higher", -math.inf), ("lower", math.inf)])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_scores_that_are_no_numbers_count_as_the_worst(quick, tmp_path, monkeypatch, better, worst, value):
    monkeypatch.setattr(FakeExperiment, "score", Measure("error", "validation error", better))
    monkeypatch.setattr(
        FakeExperiment, "validation_score", lambda self, config, folder, row: value if config.seed else 1.0
    )
    score, told = reports_of(config_of(seeds=(0, 1), options={"iterations": 1}), {"x": 0.0}, tmp_path)
    assert score == worst
    assert told == [(1, 1.0), (2, worst)]


def test_a_worst_score_can_be_stored(trials, tmp_path, monkeypatch):
    monkeypatch.setattr(trials, "score", lambda *_: -math.inf)
    study = Study(config_of(), tmp_path)
    study.work(1)
    assert study.state().best.score == -math.inf
    assert json.loads(study.folder.file("tuning.json").read_text())["best"]["score"] is None


def test_studies_are_stored_like_runs(trials, tmp_path):
    config = config_of()
    study = Study(config, tmp_path)
    study.work(1)
    assert study.folder == RunFolder.of(tmp_path, config)
    assert study.folder.path.parent == tmp_path / "fake" / "fake"
    stored = study.folder.read_config()
    assert (stored["experiment"], stored["schema"], stored["method"]) == ("fake", 2, "fake")
    written = study.folder.read_json("tuning.json")
    assert (written["experiment"], written["schema"], written["score"]) == ("fake", 2, "validation score")
    study.folder.file("config.json").write_text("{}")
    with pytest.raises(UserError, match="earlier version"):
        Study(config, tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sampler": "tpee"}, "did you mean 'tpe'"),
        ({"pruner": "mean"}, "unknown pruner"),
        ({"space": ()}, "no settings to search"),
        ({"seeds": ()}, "at least one seed"),
        ({"fixed": {"x": 1.0}}, "x is given both"),
    ],
)
def test_bad_configs_are_refused_before_anything_runs(changes, message):
    with pytest.raises(UserError, match=message):
        config_of(**changes)


def test_a_tried_value_is_checked_before_anything_runs(monkeypatch):
    def refuse(self, method, *, preset, seed, changes, **options):
        if changes["x"] > 1:
            raise UserError("x is too large")

    monkeypatch.setattr(FakeExperiment, "make_config", refuse)
    with pytest.raises(UserError, match="too large"):
        config_of((Choice("x", (1, 2)),))


@pytest.mark.parametrize(("trials", "workers"), [(0, 1), (1, 0)])
def test_bad_numbers_are_refused(tmp_path, trials, workers):
    with pytest.raises(UserError, match="at least 1"):
        tune(config_of(), tmp_path, trials, workers)
    assert not list(tmp_path.iterdir())
