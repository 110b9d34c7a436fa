"""The aggregation residual that results of aggregating runs hold."""

import numpy as np
import pytest
import torch
from stored_runs import lqr_config

from pisces.experiments.lqr.data import aggregation_residual, evaluate_seed, train_seeds, training_batch

DISTRACTORS = 200


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def test_residual_is_the_loss_of_training_without_its_coefficient():
    config = lqr_config("psm", DISTRACTORS, (3,), changes={"aggregation": 10.0, "precision": "float64"})
    first = torch.randn(DISTRACTORS + 20, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    batch = training_batch(config, (3,))
    representations = batch.features[0] @ first  # [E, s, h]
    pairs = batch.pairs[0].reshape(2, 20, -1)
    parts = [part.T @ own for part, own in zip(pairs, representations, strict=True)]
    expected = (parts[0] + parts[1]).square().sum() / (parts[0].square().sum() + parts[1].square().sum())
    assert aggregation_residual(config, 3, first) == pytest.approx(float(expected), rel=1e-9)


def test_residual_is_zero_where_the_representation_ignores_distractors():
    config = lqr_config("psm", DISTRACTORS, (3,), changes={"aggregation": 10.0})
    first = torch.zeros(DISTRACTORS + 20, 5)
    first[:20] = torch.from_numpy(np.random.default_rng(0).normal(size=(20, 5)))
    assert aggregation_residual(config, 3, first) < 1e-12


def test_results_of_aggregating_runs_hold_it():
    for changes, held in (({"aggregation": 10.0, "max_steps": 2}, True), ({"aggregation": 0.0, "max_steps": 2}, False)):
        config = lqr_config("psm", DISTRACTORS, (3,), changes={**changes, "width": 20})
        row = evaluate_seed(config, 3, train_seeds(config, (3,), lambda step, left, cost: None)[0])
        assert ("aggregation_residual" in row) is held
