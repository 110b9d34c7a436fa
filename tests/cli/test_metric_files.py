import numpy as np
import pytest
from random_mdps import random_mdp

from pisces.cli.metric_files import MDP_METRICS, ErrorBar, compare_files, compare_mdps, is_mdp_file
from pisces.errors import UserError
from pisces.metrics import sequence_metric, trajectory_metric
from pisces.trajectories import Trajectory


@pytest.mark.parametrize("metric", MDP_METRICS)
def test_names_call_their_metrics(metric):
    rng = np.random.default_rng(0)
    x, y = random_mdp(rng, 5), random_mdp(rng, 4)
    found = compare_mdps(x, y, 0.9, metric, tolerance=1e-4)
    expected = MDP_METRICS[metric](x, y, discount=0.9, tolerance=1e-4)
    np.testing.assert_array_equal(found.distance, expected.distance)
    assert found.error_bound == expected.error_bound


def test_unknown_metric():
    mdp = random_mdp(np.random.default_rng(0), 2)
    with pytest.raises(UserError, match="did you mean 'psm'"):
        compare_mdps(mdp, mdp, 0.9, "pms", tolerance=1e-6)


def test_mdp_files_are_told_from_others(tmp_path):
    random_mdp(np.random.default_rng(0), 3).save(tmp_path / "mdp.npz")
    np.savez(tmp_path / "trajectory.npz", observations=np.ones(3), rewards=np.ones(3))
    (tmp_path / "text.npz").write_text("no archive")
    names = ("mdp.npz", "trajectory.npz", "text.npz", "missing.npz")
    assert [is_mdp_file(tmp_path / name) for name in names] == [True, False, False, False]


def test_the_progress_bar_counts_orders_of_magnitude():
    with ErrorBar(1e-6) as bar:
        bar.update(2, 1.0)
        bar.update(3, 1e-3)
        task = bar.bar.tasks[0]
        assert task.completed == pytest.approx(0.5)
        assert task.description == "round 3, error 1.0e-03"
        bar.update(4, 1e-9)
        assert task.completed == 1


def test_the_end_of_a_truncated_trajectory_is_not_absorbing(tmp_path):
    actions, paths = (np.array([0, 1, 1, 0]), np.array([1, 1, 1])), [tmp_path / "x.npz", tmp_path / "y.npz"]
    ended, cut = (
        [Trajectory(np.zeros((len(one), 2)), one, terminated=terminated) for one in actions]
        for terminated in (True, False)
    )
    cost = (actions[0][:, None] != actions[1]).astype(float)

    def distance(last):
        return compare_files(*paths, discount=0.9, metric="psm", cost="auto", last=last, tolerance=None).distance

    for trajectories in (ended, cut):
        for trajectory, path in zip(trajectories, paths, strict=True):
            trajectory.save(path)
        np.testing.assert_array_equal(distance(None), trajectory_metric(*trajectories, 0.9))
        for last in ("self-loop", "stop"):
            np.testing.assert_array_equal(distance(last), sequence_metric(cost, 0.9, last))
    assert distance(None)[-1, -1] == 1
    assert distance("self-loop")[-1, -1] == pytest.approx(10)
