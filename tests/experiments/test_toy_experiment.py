"""A new experiment needs its own module and one line in the registry: every command then works with it."""

import json
import os
import textwrap

import pytest
from page_data import page_data

from pisces.cli import main
from pisces.experiments import load, registry

# What a newcomer writes: a config, a run, and the object that the commands ask.
MODULE = '''
from dataclasses import dataclass, field

import numpy as np

from pisces.experiments.config import Config
from pisces.experiments.experiment import Evaluation, Experiment
from pisces.reports.tables import Cell, Table
from pisces.runs.measure import Measure
from pisces.runs.progress import Progress
from pisces.runs.search_space import Range
from pisces.validation import Count, Positive, check_settings


@dataclass(frozen=True)
class ToySettings:
    """How the toy learns."""

    rate: Positive = 0.5
    """Learning rate of the toy."""
    steps: Count = 4
    """Number of steps."""

    def __post_init__(self):
        check_settings(self)


@dataclass(frozen=True, kw_only=True)
class ToyConfig(Config):
    """One run of the toy."""

    experiment = "toy"
    methods = ("slow", "fast")
    presets = ("full", "smoke")

    size: Count = 3
    """Number of weights."""
    settings: ToySettings = field(default_factory=ToySettings)
    """How it learns."""

    @property
    def where(self):
        return f"size {self.size}"

    def method_settings(self):
        rate = {"slow": 0.1, "fast": 0.5}[self.method]
        return {"settings": ToySettings(rate=rate, steps=1 if self.preset == "smoke" else 4)}


class ToyPolicy:
    def __init__(self, weights):
        self.weights = weights

    def act(self, observation):
        return self.weights * observation

    def embed(self, observations):
        return np.tile(self.weights, (len(observations), 1))


class Toy(Experiment):
    """Shrinks weights."""

    name = "toy"
    summary = "Shrink some weights."
    config_class = ToyConfig
    measures = (Measure("loss", "remaining weight", "lower"),)
    score = Measure("validation_loss", "validation loss", "lower")
    axes = ("size",)
    defaults = {"sweep": {"methods": "slow,fast", "seeds": "0-1"}, "tune": {"method": "fast", "trials": 2}}
    evaluation_options = ("episodes",)

    def run(self, config, folder, listeners, device):
        import torch

        weights = np.random.default_rng(config.seed).random(config.size)
        for step in range(config.settings.steps):
            weights *= 1 - config.settings.rate
            row = {"step": step + 1, "loss": float(weights.sum()), "validation_loss": float(weights.max())}
            folder.append_metrics(row)
            for listener in listeners:
                listener(Progress(step + 1, config.settings.steps, {}, row))
        folder.save_checkpoint({"weights": torch.from_numpy(weights)}, {})
        folder.write_info({})
        folder.write_result(config, {"loss": row["loss"], "validation_loss": row["validation_loss"]})

    def describe(self, row):
        return f"loss {row['loss']:.3f}"

    def load(self, folder, config):
        return ToyPolicy(folder.read_checkpoint()[0]["weights"].numpy())

    def evaluate(self, folder, config, **options):
        total = float(self.load(folder, config).weights.sum())
        return Evaluation(("episodes", "loss"), ((str(options["episodes"]), f"{total:.3f}"),), {"loss": total})

    def search_space(self, method):
        return (Range("rate", 0.1, 0.9),)

    def evaluations(self, config):
        return config.settings.steps

    def tables(self, runs):
        losses = {method: [run["loss"] for run in runs if run.config.method == method] for method in ("slow", "fast")}
        cells = tuple(Cell(tuple(values), compared=False) for values in losses.values())
        return [Table("toy", "Toy: remaining weight", "Mean over runs.", tuple(losses), (cells,))]
'''


@pytest.fixture(autouse=True)
def toy(tmp_path, monkeypatch):
    code = tmp_path / "code"
    code.mkdir()
    (code / "toy_module.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.syspath_prepend(str(code))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(code), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setitem(registry.EXPERIMENTS, "toy", "toy_module:Toy")
    monkeypatch.chdir(tmp_path)


def test_all_commands_work_with_an_experiment_of_one_registry_line(tmp_path, capsys):
    assert main(["train", "toy", "--method", "fast", "--size", "5", "--rate", "0.25", "--out", "runs"]) == 0
    assert "loss " in capsys.readouterr().out
    (folder,) = (tmp_path / "runs" / "toy" / "fast").iterdir()
    assert json.loads((folder / "config.json").read_text())["changes"] == {"rate": 0.25}
    assert load(folder).embed([None, None]).shape == (2, 5)

    assert main(["sweep", "toy", "--sizes", "3,4", "--workers", "1", "--preset", "smoke", "--out", "runs"]) == 0
    assert "8 of 8 runs done" in capsys.readouterr().out

    assert main(["evaluate", str(folder), "--episodes", "3"]) == 0
    assert "episodes" in capsys.readouterr().out
    assert main(["evaluate", str(folder), "--draws", "3"]) == 2
    assert "--draws does not apply to runs of toy" in capsys.readouterr().err

    assert main(["report", "runs", "--out", "report", "--projection", "none"]) == 0
    assert "Toy: remaining weight" in (tmp_path / "report" / "tables" / "toy.md").read_text()
    shown = json.dumps(page_data((tmp_path / "report" / "report.html").read_text()))
    assert "pisces train toy --method fast" in shown
    assert "remaining weight" in shown


def test_tuning_searches_its_space_and_prints_a_command_that_runs(tmp_path, capsys):
    pytest.importorskip("optuna", reason="optuna is not installed: pip install '.[tune]'")
    assert main(["tune", "toy", "--seeds", "7", "--out", "tuning"]) == 0
    command = capsys.readouterr().out.split("best settings: ")[1].split()
    assert command[:5] == ["pisces", "train", "toy", "--method", "fast"]
    assert "--rate" in command
    assert main([*command[1:], "--out", "runs"]) == 0


def test_help_lists_its_options_and_settings(capsys):
    for command in ("train", "sweep", "tune"):
        with pytest.raises(SystemExit) as stop:
            main([command, "toy", "--help"])
        assert stop.value.code == 0
        text = " ".join(capsys.readouterr().out.replace("│", " ").split())
        assert "Learning rate of the toy." in text
        assert "Number of weights." in text
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    assert "Shrink some weights." in capsys.readouterr().out
