import numpy as np
import pytest
from random_mdps import random_mdp, random_policy

from pisces.errors import UserError
from pisces.metrics import (
    MDP_METRICS,
    bisimulation_metric,
    compare_mdps,
    is_mdp_file,
    mico_distance,
    pi_bisimulation_metric,
    policy_similarity_metric,
)


@pytest.mark.parametrize("metric", MDP_METRICS)
def test_names_call_their_metrics(metric):
    rng = np.random.default_rng(0)
    x, y = random_mdp(rng, 5), random_mdp(rng, 4)
    policies = random_policy(rng, x), random_policy(rng, y)
    found = compare_mdps(x, y, 0.9, metric, policy_x=policies[0], policy_y=policies[1], neighbours=2)
    expected = {
        "psm": lambda: policy_similarity_metric(x, policies[0], y, policies[1], 0.9),
        "pi-bisimulation": lambda: pi_bisimulation_metric(x, policies[0], y, policies[1], 0.9),
        "mico": lambda: mico_distance(x, policies[0], y, policies[1], 0.9),
        "bisimulation": lambda: bisimulation_metric(x, y, 0.9),
    }[metric]()
    np.testing.assert_array_equal(found.result.distance, expected.distance)
    np.testing.assert_array_equal(found.neighbours.nearest_x[:, 0], expected.distance.argmin(axis=0))
    assert found.neighbours.nearest_y.shape == (5, 2)


def test_unknown_metric():
    mdp = random_mdp(np.random.default_rng(0), 2)
    with pytest.raises(UserError, match="did you mean 'psm'"):
        compare_mdps(mdp, mdp, 0.9, "pms")


def test_mdp_files_are_told_from_others(tmp_path):
    random_mdp(np.random.default_rng(0), 3).save(tmp_path / "mdp.npz")
    np.savez(tmp_path / "trajectory.npz", observations=np.ones(3), rewards=np.ones(3))
    (tmp_path / "text.npz").write_text("no archive")
    names = ("mdp.npz", "trajectory.npz", "text.npz", "missing.npz")
    assert [is_mdp_file(tmp_path / name) for name in names] == [True, False, False, False]
