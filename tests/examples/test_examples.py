"""The examples run, at a small size."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_tested():
    named = Path(__file__).read_text()
    assert [path.stem for path in EXAMPLES.glob("*.py") if f'load("{path.stem}")' not in named] == []


def test_cleanrl_ppo():
    losses = load("cleanrl_ppo_pse").train(512)
    assert len(losses) == 2
    assert np.isfinite(losses).all()


def test_minigrid_cloning():
    pytest.importorskip("minigrid")
    losses = load("minigrid_cloning").train(40, levels=4)
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize("loss", ["mico", "deepmdp"])
def test_torchrl_loss(loss):
    pytest.importorskip("torchrl", reason="torchrl is not installed: pip install torchrl")
    losses = load("torchrl_loss").train(150, loss)
    assert np.mean(losses[-20:]) < 0.8 * np.mean(losses[:20])


def test_tensorboard_callback(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    load("tensorboard_callback").train(tmp_path, 1200, updates=2)
    (folder,) = tmp_path.iterdir()
    events = accumulator.EventAccumulator(str(folder))
    events.Reload()
    assert {"similarity/updates", "similarity/overhead"} <= set(events.Tags()["scalars"])
