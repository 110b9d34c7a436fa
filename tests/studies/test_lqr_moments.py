import json

import numpy as np
import pytest
import torch
from stored_runs import lqr_config

import lqr_moments
from fill_docs import fill
from lqr_moments import EARLY, LATE, main, measure
from lqr_tables import moments_table
from pisces.errors import UserError
from pisces.experiments.lqr.data import initial_policies, policy_matrix, training_batch
from pisces.reports.results import StoredRuns

DISTRACTORS, STATES = 200, 20


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def test_moments_are_those_of_the_gradients():
    """Adam by hand, in double precision, beside the optimizer whose memory is read."""
    config = lqr_config("psm", DISTRACTORS, (5,), changes={"aggregation": 1e3})
    batch = training_batch(config, (5,))
    policies = initial_policies(config, (5,), batch)
    start = policies.first.detach().clone()
    first = second = 0.0
    weights = start.double().numpy()[0]
    for step in range(1, LATE + 1):
        policies.train_step(batch)
        gradient = policies.first.grad.double().numpy()[0]
        if step <= EARLY:
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * gradient**2
            root = np.sqrt(second / (1 - 0.999**step))
            weights = weights - config.settings.learning_rate * first / (1 - 0.9**step) / (root + 1e-8)
    moved = weights - start.double().numpy()[0]
    policy = policy_matrix([layer[0] for layer in policies.layers()])
    parts = (slice(None, STATES), slice(STATES, None))
    found = measure((5,), 1e3, DISTRACTORS)
    np.testing.assert_allclose(found["roots"], [np.sqrt((root[p] ** 2).mean()) for p in parts], rtol=1e-3)
    np.testing.assert_allclose(found["moved"], [np.sqrt((moved[p] ** 2).mean()) for p in parts], rtol=1e-2)
    np.testing.assert_allclose(found["norms"], [np.linalg.norm(policy[:, p]) for p in parts], rtol=1e-6)


def test_command_writes_what_the_table_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(lqr_moments, "DISTRACTORS", DISTRACTORS)
    monkeypatch.setattr(lqr_moments, "COEFFICIENTS", (0.0, 1e5))
    document = "<!-- table: lqr_moments -->\n<!-- end -->\n"
    assert "Not measured yet" in fill(document, StoredRuns(()), tmp_path)
    main("0-1", tmp_path)
    path = tmp_path / "lqr" / "moments.json"
    assert str(path) in capsys.readouterr().out
    content = json.loads(path.read_text())
    assert content["seeds"] == [0, 1]
    none, large = content["rows"]
    assert large["roots"][1] > 1000 * none["roots"][1]
    assert large["moved"][1] < 0.2 * none["moved"][1]
    table = moments_table(tmp_path)
    assert table.startswith("200 distractors, mean over 2 seeds.")
    assert f"| 1e+05 | {large['roots'][0]:.2g} / {large['roots'][1]:,.0f} |" in table
    assert table in fill(document, StoredRuns(()), tmp_path)


def test_a_wrong_list_of_seeds_is_explained(tmp_path):
    with pytest.raises(UserError, match="seeds are written as"):
        main("x", tmp_path)
