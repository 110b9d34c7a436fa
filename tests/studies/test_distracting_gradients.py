"""Tests of the measured gradients of Distracting Control."""

import numpy as np
import pytest
import torch

from distracting_gradients import gradient_norms, gradient_table, main
from pisces.agents.drq.agent import DrQAgent
from pisces.agents.drq.replay import TransitionBatch
from pisces.agents.drq.settings import DrQSettings
from pisces.errors import missing_text
from pisces.experiments.distracting.config import DistractingConfig
from pisces.experiments.distracting.experiment import Distracting
from pisces.pairs import Pair
from pisces.runs.job import Job

pytest.importorskip("dm_control", reason=missing_text("dm_control", "control"))

SETTINGS = DrQSettings(batch_size=6, channels=3, feature_size=5, hidden_size=12, embedding_size=7, auxiliary=True)


def test_norms_agree_with_finite_differences():
    agent, rng = DrQAgent(20, 6, 2, SETTINGS, seed=0), np.random.default_rng(0)
    images = rng.integers(0, 256, (4, 6, 20, 20, 6), dtype=np.uint8)
    ones = np.ones((6, 1), np.float32)
    batch = TransitionBatch(images[0], np.zeros((6, 2), np.float32), ones, images[1], ones)
    pair = Pair(*torch.from_numpy(images[2:]), torch.from_numpy(rng.random((6, 6))))
    weights = list(agent.convolutions.parameters())
    gradients = torch.autograd.grad(agent.auxiliary_loss(pair), weights)
    norm = gradient_norms(agent, batch, pair)["similarity_convolutions"]
    losses = []
    for change in (1e-3, -2e-3):  # one step up, then one as far below the start
        with torch.no_grad():
            torch._foreach_add_(weights, gradients, alpha=change / norm)
        losses.append(float(agent.auxiliary_loss(pair).detach()))
    assert (losses[0] - losses[1]) / 2e-3 == pytest.approx(norm, rel=0.05)


def test_a_finished_run_is_measured_and_tabulated(tmp_path):
    config = DistractingConfig.make("drq+pse", "smoke", seed=0)
    folder = Job(Distracting(), config).run(tmp_path / "runs", [])
    main([folder.path], tmp_path)
    row = gradient_table(tmp_path).splitlines()[-1]
    assert row.startswith("| cartpole-swingup | 0 | own |")
    assert gradient_table(tmp_path / "nothing") == "Not measured yet.\n"
