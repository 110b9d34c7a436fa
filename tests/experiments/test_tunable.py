"""Scores come from validation data alone: whatever else stands in a result or an evaluation must not be read."""

import math
from dataclasses import replace

import pytest

from pisces.cli.options import setting_options
from pisces.envs.distracting.videos import find_videos
from pisces.envs.jumping import split_tasks
from pisces.errors import UserError
from pisces.experiments.distracting.experiment import Distracting
from pisces.experiments.jumping.config import TransferSettings
from pisces.experiments.jumping.experiment import Jumping
from pisces.experiments.lqr.experiment import LQR
from pisces.experiments.minigrid.experiment import MiniGrid
from pisces.experiments.registry import all_experiments
from pisces.runs.search_space import Choice
from pisces.runs.store import RunFolder
from pisces.runs.tuning_config import TuningConfig


class Guarded(dict):
    """A row of which only entries for validation may be read."""

    def __getitem__(self, name):
        assert "validation" in name, f"{name} was read"
        return super().__getitem__(name)

    def _refuse(self, *_):
        raise AssertionError("the row was read as a whole")

    get = items = values = keys = __iter__ = _refuse


def config_of(experiment, method, options=None, seeds=(1, 2), **changes):
    space = experiment.search_space(method)
    config = TuningConfig(experiment, method, "smoke", seeds, space, {}, options or {}, "random")
    return replace(config, **changes)


@pytest.mark.parametrize("experiment", all_experiments().values(), ids=lambda experiment: experiment.name)
def test_what_a_search_finds_are_options_of_the_command_line(experiment):
    known = {name for name, *_ in setting_options(experiment)}
    for method in experiment.config_class.methods:
        try:
            space = experiment.search_space(method)
        except UserError:  # the method has nothing to tune
            continue
        assert {dimension.name for dimension in space} <= known


def run_of(config):
    """The config of the first run of a search."""
    return config.run_config({dimension.name: dimension.examples[0] for dimension in config.space}, config.seeds[0])


def score_of(experiment, method, row, folder=None, **options):
    run = run_of(config_of(experiment, method, options))
    return experiment.validation_score(run, folder, Guarded(row))


def test_jumping_reads_the_validation_tasks_only():
    parts = ("train", "validation", "test", "heldout")
    row = {f"{name}_solved_percent": 20 if name == "validation" else -1 for name in parts}
    assert score_of(Jumping(), "randconv+pse", row) == 20


def test_jumping_with_colors_averages_both():
    row = {"red_validation_solved_percent": 10, "green_validation_solved_percent": 30, "red_test_solved_percent": -1}
    assert score_of(Jumping(), "pse", row, colors=True) == 20


def test_jumping_validation_tasks_are_the_54_of_the_wide_grid():
    split = split_tasks("wide")
    assert len(split.validation) == 54
    assert not set(split.validation) & (set(split.train) | set(split.heldout))


def test_lqr_reads_validation_errors_only():
    row = {"validation_error": 4.0, "error": -1, "cost": -1}
    assert score_of(LQR(), "psm", row) == 4
    assert score_of(LQR(), "psm", {**row, "validation_error": None}) == math.inf


def test_minigrid_reads_the_validation_tasks_only():
    row = {"train_solved_percent": -1, "validation_solved_percent": 20, "test_solved_percent": -1}
    assert score_of(MiniGrid(), "ppo+pse", row) == 20


def test_distracting_plays_validation_episodes_and_reads_nothing_of_an_evaluation(monkeypatch, tmp_path):
    asked = []

    def validation_return(config, folder):
        asked.append((config, folder))
        return 3.0

    monkeypatch.setattr("pisces.experiments.distracting.data.validation_return", validation_return)
    folder = RunFolder(tmp_path)
    row = {"train_return": -1, "test_return": -1}
    assert score_of(Distracting(), "drq+pse", row, folder) == 3
    assert asked == [(run_of(config_of(Distracting(), "drq+pse")), folder)]


def test_minigrid_searches_the_callback_only_where_there_is_one():
    assert [dimension.name for dimension in MiniGrid().search_space("ppo")] == ["learning_rate"]
    names = {dimension.name for dimension in MiniGrid().search_space("ppo+pse")}
    assert {"learning_rate", "similarity_rate", "temperature", "scale"} <= names


def test_validation_videos_neither_train_nor_test():
    assert not set(find_videos("validation").sources) & {*find_videos("train", count=60).sources}
    assert not set(find_videos("validation").sources) & {*find_videos("test").sources}


@pytest.mark.parametrize("method", ["drq+pse", "drqv2+pse"])
def test_distracting_searches_weight_and_metric(method):
    values = {dimension.name: dimension.values for dimension in Distracting().search_space(method)}
    assert values == {
        "coefficient": (0.1, 1.0, 10.0),
        "scale": (0.01, 0.1, 1.0),
        "metric_discount": (0.9, 0.99),
    }


@pytest.mark.parametrize("experiment", all_experiments().values(), ids=lambda experiment: experiment.name)
def test_every_method_that_learns_has_a_space_of_its_own_settings(experiment):
    for method in experiment.config_class.methods:
        if method == "bisimulation-transfer":
            continue
        config = config_of(experiment, method)
        run = run_of(config)
        known = {name for group in run.groups.values() for name in group.__dataclass_fields__}
        assert {dimension.name for dimension in config.space} <= known
        assert experiment.evaluations(run) >= 1
    with pytest.raises(UserError, match="unknown method 'ps'"):
        experiment.search_space("ps")


def test_what_learns_nothing_is_not_tuned():
    assert isinstance(Jumping().make_config("bisimulation-transfer", preset="paper").settings, TransferSettings)
    with pytest.raises(UserError, match="bisimulation-transfer learns nothing, so there is nothing to tune"):
        Jumping().search_space("bisimulation-transfer")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sampler": "tpee"}, "did you mean 'tpe'"),
        ({"pruner": "mean"}, "unknown pruner 'mean'"),
        ({"space": ()}, "no settings to search"),
        ({"fixed": {"learning_rate": 1.0}}, "learning_rate is given both in --search and as an option"),
        ({"fixed": {"epoch": 1}}, "did you mean 'epochs'"),
        ({"space": (Choice("temperature", (1.0, -1.0)),)}, "temperature must be > 0, got -1.0"),
        ({"method": "psee"}, "did you mean 'pse'"),
        ({"options": {"gird": "wide"}}, "did you mean 'grid'"),
    ],
)
def test_bad_configs_are_refused_before_anything_runs(changes, message):
    with pytest.raises(UserError, match=message):
        replace(config_of(Jumping(), "randconv+pse"), **changes)
