"""An experiment whose runs take a second, for tests of the engines that run experiments."""

import sys

import pytest

from pisces.experiments.engine import Job
from pisces.experiments.registry import EXPERIMENTS, Experiment

# A run takes a tenth of a second per iteration and its result depends on its config alone, like a real one.
MODULE = """
import os
import time
from dataclasses import asdict, dataclass

from pisces.experiments.progress import Progress
from pisces.experiments.store import RunFolder, non_defaults


@dataclass(frozen=True)
class FakeConfig:
    seed: int
    method: str = "fake"
    behaviour: str = "good"
    iterations: int = 3

    def as_dict(self):
        return asdict(self)

    def identity(self):
        return non_defaults(self)


def config_from_dict(values):
    return FakeConfig(**values)


def command_line(config, out):
    return f"fake {config.seed}"


def run(config, out, listeners=()):
    folder = RunFolder.open(out, "fake", config.method, config)
    with folder.lock():
        if not folder.finished:
            train(config, folder, listeners)
    return folder


def train(config, folder, listeners):
    with folder.file("starts").open("a") as file:
        file.write("x")
    if config.behaviour == "raise":
        raise RuntimeError("no luck")
    if config.behaviour == "die" or (config.behaviour == "die once" and not folder.file("died").exists()):
        folder.file("died").touch()
        os._exit(9)
    state = folder.file("state")
    done = int(state.read_text()) if state.exists() else 0
    for step in range(done, config.iterations):
        time.sleep(0.1)
        folder.file("state.new").write_text(str(step + 1))
        folder.file("state.new").replace(state)
        for listener in listeners:
            listener(Progress(step + 1, config.iterations))
    folder.write_info({})
    folder.write_result({"config": config.as_dict(), "value": config.seed * 7})
"""

# Python imports this at its start, so worker processes know the experiment too.
REGISTRATION = """
from pisces.experiments import registry

registry.EXPERIMENTS = {
    **registry.EXPERIMENTS, "fake": registry.Experiment("fake", "fake_experiment", "fake_experiment")
}
"""


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Makes jobs of the experiment, here and in worker processes."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "fake_experiment.py").write_text(MODULE)
    (code / "sitecustomize.py").write_text(REGISTRATION)
    monkeypatch.setenv("PYTHONPATH", str(code))
    monkeypatch.syspath_prepend(str(code))
    sys.modules.pop("fake_experiment", None)
    import fake_experiment

    experiment = Experiment("fake", "fake_experiment", "fake_experiment")
    monkeypatch.setitem(EXPERIMENTS, "fake", experiment)

    def jobs(seeds, **arguments):
        return [Job(experiment, fake_experiment.FakeConfig(seed, **arguments)) for seed in seeds]

    return jobs
