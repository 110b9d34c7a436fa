import os
import shutil

import numpy as np
import pytest
from random_mdps import random_mdp

from pisces.cli import main
from pisces.cli.metric_files import MDP_METRICS, ErrorBar, compare_files, compare_mdps, is_mdp_file
from pisces.errors import UserError
from pisces.metrics import FiniteMDP, sequence_metric, trajectory_metric
from pisces.metrics.setting import Accuracy
from pisces.trajectories import Trajectory


@pytest.mark.parametrize("metric", MDP_METRICS)
def test_names_call_their_metrics(metric):
    rng = np.random.default_rng(0)
    x, y = random_mdp(rng, 5), random_mdp(rng, 4)
    found = compare_mdps(x, y, 0.9, metric, Accuracy(1e-4, None))
    expected = MDP_METRICS[metric](x, y, discount=0.9, tolerance=1e-4)
    np.testing.assert_array_equal(found.distance, expected.distance)
    assert found.error_bound == expected.error_bound


def test_unknown_metric():
    mdp = random_mdp(np.random.default_rng(0), 2)
    with pytest.raises(UserError, match="did you mean 'psm'"):
        compare_mdps(mdp, mdp, 0.9, "pms")
    with pytest.raises(UserError, match="unknown ties 'all'"):
        compare_mdps(mdp, mdp, 0.9, "psm", ties="all")


def test_mdp_files_are_told_from_others(tmp_path):
    random_mdp(np.random.default_rng(0), 3).save(tmp_path / "mdp.npz")
    np.savez(tmp_path / "trajectory.npz", observations=np.ones(3), rewards=np.ones(3))
    (tmp_path / "text.npz").write_text("no archive")
    names = ("mdp.npz", "trajectory.npz", "text.npz", "missing.npz")
    assert [is_mdp_file(tmp_path / name) for name in names] == [True, False, False, False]


@pytest.mark.parametrize("name", ["run_$1_$2.npz", "$\\frac$.npz", b"\xff\xfe.npz"])
def test_names_of_files_are_shown_as_they_are(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Trajectory(np.ones((3, 1)), actions=np.array([0, 1, 0])).save(tmp_path / "x.npz")
    path = os.fsdecode(name)
    (tmp_path / "x.npz").rename(tmp_path / path)
    assert main(["metric", path, path, "--out", "out"]) == 0
    assert (tmp_path / "out" / "heat_map.png").exists()
    other = tmp_path / os.fsdecode(name).removesuffix(".npz")
    folders = [other, tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        shutil.copy(path, folder)
    assert main(["metric", *map(str, folders), "--out", "agents"]) == 0


def test_a_missing_file_is_named(tmp_path, capsys):
    random_mdp(np.random.default_rng(0), 3).save(tmp_path / "mdp.npz")
    assert main(["metric", str(tmp_path / "mdp.npz"), str(tmp_path / "missing.npz")]) == 2
    error = capsys.readouterr().err
    assert "missing.npz" in error
    assert "one of each" not in error


def test_the_progress_bar_counts_orders_of_magnitude():
    with ErrorBar(1e-6) as bar:
        bar.update(2, 1.0)
        bar.update(3, 1e-3)
        task = bar.bar.tasks[0]
        assert task.completed == pytest.approx(0.5)
        assert task.description == "round 3, error 1.0e-03"
        bar.update(4, 1e-9)
        assert task.completed == 1


def test_the_progress_bar_without_an_absolute_tolerance():
    with ErrorBar(None) as bar:
        bar.update(2, 1.0)
        bar.update(3, 1e-3)
        assert bar.bar.tasks[0].completed == pytest.approx(0.5)
        bar.update(4, 0.0)
        assert bar.bar.tasks[0].completed == 1


def test_reports_of_one_mdp_name_other_states_ties_and_doubt(tmp_path):
    path = tmp_path / "mdp.npz"
    states, actions = np.repeat([0, 1, 2], 20), np.tile([0, 1], 30)
    mdp = FiniteMDP.from_samples(states, actions, 1.0 * (states == 0), (states + 1) % 3, shape=(3, 2))
    mdp.save(path)
    common = {"discount": 0.9, "metric": "psm", "cost": "auto", "last": None}
    report = compare_files(path, path, **common)
    assert (report.nearest != np.arange(3)).all()
    assert report.notes[0].startswith("3 states of x and 3 of y have several optimal actions")
    assert "nothing is certain with so few samples" in report.notes[1]
    shared = compare_files(path, path, **common, ties="uniform", accuracy=Accuracy(None, 1e-3))
    assert shared.distance.max() == 0
    walk = Trajectory(np.zeros((2, 1)), actions=np.array([0, 1]))
    walk.save(tmp_path / "walk.npz")
    for options in ({"accuracy": Accuracy(1e-3, None)}, {"ties": "uniform"}):
        with pytest.raises(
            UserError, match="expected no --tolerance for trajectories, whose distances are exact, and no --ties"
        ):
            compare_files(tmp_path / "walk.npz", tmp_path / "walk.npz", **common, **options)


def test_the_end_of_a_truncated_trajectory_is_not_absorbing(tmp_path):
    actions, paths = (np.array([0, 1, 1, 0]), np.array([1, 1, 1])), [tmp_path / "x.npz", tmp_path / "y.npz"]
    ended, cut = (
        [Trajectory(np.zeros((len(one), 2)), one, terminated=terminated) for one in actions]
        for terminated in (True, False)
    )
    cost = (actions[0][:, None] != actions[1]).astype(float)

    def distance(last):
        return compare_files(*paths, discount=0.9, metric="psm", cost="auto", last=last).distance

    for trajectories in (ended, cut):
        for trajectory, path in zip(trajectories, paths, strict=True):
            trajectory.save(path)
        np.testing.assert_array_equal(distance(None), trajectory_metric(*trajectories, 0.9))
        for last in ("self-loop", "stop"):
            np.testing.assert_array_equal(distance(last), sequence_metric(cost, 0.9, last))
    assert distance(None)[-1, -1] == 1
    assert distance("self-loop")[-1, -1] == pytest.approx(10)
