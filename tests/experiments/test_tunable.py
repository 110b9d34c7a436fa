"""Scores come from validation data alone: whatever else stands in a result or an evaluation must not be read."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from pisces.envs.grids import split_tasks
from pisces.envs.videos import find_videos
from pisces.errors import UserError
from pisces.experiments import distracting_data, distracting_run, grid_transfer_run, jumping_run, lqr_run
from pisces.experiments.progress import Progress
from pisces.experiments.search_space import Choice, Range
from pisces.experiments.store import LockedError
from pisces.experiments.tunable import TUNABLES, TuningConfig, score_lqr, tunable


class Guarded(dict):
    """A row of which only some entries may be read."""

    allowed: tuple = ()

    def __getitem__(self, name):
        assert name in self.allowed, f"{name} was read"
        return super().__getitem__(name)

    def _refuse(self, *_):
        raise AssertionError("the row was read as a whole")

    get = items = values = keys = __iter__ = _refuse


class ValidationRow(Guarded):
    allowed = ("validation_solved_percent", "red_validation_solved_percent", "green_validation_solved_percent")


class LQRResult(Guarded):
    allowed = ("runs", "validation_error")


class GridRow(Guarded):
    allowed = ("validation_levels_percent",)


def config_of(name, method, options=None, seeds=(1, 2), **changes):
    space = tunable(name).space(method)
    config = TuningConfig(name, method, "smoke", seeds, space, {}, options or {}, "random")
    return replace(config, **changes)


def settings_of(config):
    return {dimension.name: dimension.examples[0] for dimension in config.space}


def jumping_row(value):
    names = ("train", "validation", "test", "heldout")
    return ValidationRow({f"{name}_solved_percent": value if name == "validation" else -1 for name in names})


def test_jumping_reads_the_validation_tasks_only(monkeypatch, tmp_path):
    def run(config, out, listeners):
        for step in (1, 2):
            listeners[0](Progress(step * 9, 18, evaluation=jumping_row(config.seed * 10 + step)))
        return SimpleNamespace(read_json=lambda name: jumping_row(config.seed * 10 + 5))

    monkeypatch.setattr(jumping_run, "run", run)
    told = []
    config = config_of("jumping", "randconv+pse")
    score = tunable("jumping").score(config, settings_of(config), tmp_path, lambda *args: told.append(args))
    assert score == 20
    # The second seed's reports are means with the first one's score.
    assert told == [(1, 11), (2, 12), (3, 18), (4, 18.5)]


def test_jumping_with_colors_averages_both(monkeypatch, tmp_path):
    row = ValidationRow({"red_validation_solved_percent": 10, "green_validation_solved_percent": 30})
    monkeypatch.setattr(jumping_run, "run", lambda *_, **__: SimpleNamespace(read_json=lambda name: row))
    config = config_of("jumping", "pse", {"colors": True})
    assert tunable("jumping").score(config, settings_of(config), tmp_path, None) == 20


def test_jumping_validation_tasks_are_the_54_of_the_wide_grid():
    split = split_tasks("wide")
    assert len(split.validation) == 54
    assert not set(split.validation) & (set(split.train) | set(split.heldout))


def test_lqr_reads_validation_errors_only(monkeypatch, tmp_path):
    def run(config, out, threads):
        rows = [LQRResult(validation_error=seed or None, error=-1, cost=-1) for seed in config.seeds]
        return SimpleNamespace(read_json=lambda name: LQRResult(runs=rows, error=-1))

    monkeypatch.setattr(lqr_run, "run", run)
    told = []
    config = config_of("lqr", "psm", seeds=tuple(range(1, 8)))
    score = tunable("lqr").score(config, settings_of(config), tmp_path, lambda *args: told.append(args))
    assert score == 4
    assert told == [(0, 3), (1, 4)]
    unstable = replace(config, seeds=(0, 1))
    assert tunable("lqr").score(unstable, settings_of(config), tmp_path, lambda *_: None) == float("inf")


def test_distracting_reads_nothing_of_an_evaluation(monkeypatch, tmp_path):
    stages = []

    def run(config, out, listeners=(), stage="all"):
        stages.append(stage)
        if stages.count("pairs") == 1 and stage == "pairs":
            raise LockedError("busy")
        for listener in listeners:
            listener(Progress(5, 10, evaluation=Guarded(train_return=-1, test_return=-1)))

    scores = iter([1.0, 3.0])
    monkeypatch.setattr(distracting_run, "run", run)
    monkeypatch.setattr(distracting_data, "validation_return", lambda config, folder: next(scores))
    monkeypatch.setattr("pisces.experiments.tunable.WAIT_SECONDS", 0)
    told = []
    config = config_of("distracting", "drq+pse", seeds=(1,))
    score = tunable("distracting").score(config, settings_of(config), tmp_path, lambda *args: told.append(args))
    assert score == 3
    assert told == [(1, 1.0)]
    assert stages == ["pretrain", "pairs", "pairs", "train"]


def grid_row(value):
    return GridRow(train_levels_percent=-1, validation_levels_percent=value, test_levels_percent=-1)


def test_grid_reads_the_validation_levels_only(monkeypatch, tmp_path):
    tried = []

    def run(config, out, listeners):
        tried.append(config.settings)
        if len(tried) == 1:
            raise LockedError("busy")
        for step in (1, 2):
            listeners[0](Progress(step * 9, 36, evaluation=grid_row(config.seed * 10 + step)))
        return SimpleNamespace(read_json=lambda name: grid_row(config.seed * 10 + 5))

    monkeypatch.setattr(grid_transfer_run, "run", run)
    monkeypatch.setattr("pisces.experiments.tunable.WAIT_SECONDS", 0)
    told = []
    config = config_of("grid", "ppo+pse", fixed={"steps": 600})
    score = tunable("grid").score(config, settings_of(config), tmp_path, lambda *args: told.append(args))
    assert score == 20
    assert told == [(1, 11), (2, 12), (5, 18), (6, 18.5)]
    assert {(one.steps, one.learning_rate, one.updates) for one in tried} == {(600, 2e-4, 1)}


def test_grid_searches_the_callback_only_where_there_is_one():
    assert [dimension.name for dimension in tunable("grid").space("ppo")] == ["learning_rate"]
    names = {dimension.name for dimension in tunable("grid").space("ppo+pse")}
    assert {"learning_rate", "similarity_rate", "temperature", "scale"} <= names


def test_validation_videos_neither_train_nor_test(tmp_path):
    assert not set(find_videos("validation").sources) & {*find_videos("train", count=60).sources}
    assert not set(find_videos("validation").sources) & {*find_videos("test").sources}


def test_distracting_grid_is_the_papers():
    values = {dimension.name: dimension.values for dimension in tunable("distracting").space("drq+pse")}
    assert values == {"temperature": (0.01, 0.1, 1.0), "coefficient": (1.0, 3.0, 10.0)}


@pytest.mark.parametrize("name", TUNABLES)
def test_every_method_has_a_space_of_its_own_settings(name):
    from pisces.experiments import distracting, grid_transfer, jumping, lqr

    modules = {"jumping": jumping, "lqr": lqr, "distracting": distracting, "grid": grid_transfer}
    methods = modules[name].METHODS
    for method in methods:
        config = config_of(name, method)
        assert {dimension.name for dimension in config.space} <= set(tunable(name).settings)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sampler": "tpee"}, "did you mean 'tpe'"),
        ({"pruner": "mean"}, "expected pruner"),
        ({"space": ()}, "expected a space"),
        ({"fixed": {"learning_rate": 1.0}}, "either --search or --set"),
        ({"fixed": {"epoch": 1}}, "did you mean 'epochs'"),
        ({"space": (Choice("temperature", (1.0, -1.0)),)}, "positive temperature"),
        ({"method": "psee"}, "did you mean 'pse'"),
    ],
)
def test_bad_configs_are_refused_before_anything_runs(changes, message):
    with pytest.raises(UserError, match=message):
        replace(config_of("jumping", "randconv+pse"), **changes)


def test_lqr_waits_for_the_process_that_has_the_run(tmp_path, monkeypatch):
    tries = iter([LockedError("busy"), LockedError("busy")])

    def run_or_busy(config, *arguments, usual=lqr_run.run):
        for error in tries:
            raise error
        return usual(config, *arguments)

    monkeypatch.setattr(lqr_run, "run", run_or_busy)
    monkeypatch.setattr("pisces.experiments.tunable.WAIT_SECONDS", 0.0)
    config = TuningConfig(
        "lqr", "psm", "smoke", (0,), (Range("aggregation", 1, 10),), {"max_steps": 2}, {"distractors": 60}
    )
    assert score_lqr(config, {"aggregation": 1.0}, tmp_path, lambda step, score: None) > 0
