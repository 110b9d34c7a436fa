import json

import numpy as np
import pytest
import torch
from stored_runs import lqr_config

from pisces.agents.linear.rotation import Rotation
from pisces.agents.linear.training import TwoLayerPolicies, train
from pisces.cli import main as command
from pisces.envs.lqr import make_distractors, make_system, optimal_trajectories, start_states
from pisces.errors import UserError
from pisces.experiments import load
from pisces.experiments.lqr import run as lqr_run
from pisces.experiments.lqr.config import METHODS
from pisces.experiments.lqr.data import (
    evaluate_seed,
    initial_policies,
    near_zero_pairs,
    pair_factor,
    policy_matrix,
    policy_similarity,
    train_seeds,
    training_batch,
)
from pisces.experiments.lqr.experiment import LQR
from pisces.runs.job import Job
from pisces.runs.lock import LockedError
from pisces.runs.store import RunFolder
from pisces.runs.sweep import sweep

SMALL = {"width": 30, "max_steps": 30}


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)  # matrices this small gain nothing from more


def small(method="psm", seeds=(0, 1, 2), **changes):
    return lqr_config(method, 60, seeds, changes={**SMALL, **changes})


def run(config, out, listeners=()):
    return Job(LQR(), config).run(out, listeners)


def trajectories(seed, starts=12, steps=4):
    return optimal_trajectories(make_system(seed), start_states(seed, starts), steps)


def test_metric_is_zero_exactly_on_equal_hidden_states():
    states, actions = trajectories(0)
    distance = policy_similarity(actions, actions, 0.99)
    flat = states.reshape(-1, 20)
    equal = (flat[:, None] == flat[None, :]).all(axis=-1)
    assert (distance[equal] == 0).all()
    assert (distance[~equal] > 0).all()
    assert equal.sum() == len(flat)


def test_metric_adds_up_the_differences_of_all_later_actions():
    _, actions = trajectories(1, starts=3)
    distance = policy_similarity(actions, actions, 0.5).reshape(3, 4, 3, 4)
    ahead = np.abs(actions[0] - actions[2]).sum(axis=1)
    expected = ahead[1] + 0.5 * ahead[2] + 0.5**2 * ahead[3] / (1 - 0.5)
    assert distance[0, 1, 2, 1] == pytest.approx(expected)


def test_pairs_are_the_equal_states_and_need_a_relative_threshold():
    states, actions = trajectories(0, steps=12)
    distance = policy_similarity(actions, actions, 0.99)
    norms = np.linalg.norm(states.reshape(-1, 20), axis=1)
    pairs = near_zero_pairs(distance, norms, norms, 1e-6)
    np.testing.assert_array_equal(pairs.x, pairs.y)
    assert len(pairs.x) == len(norms)
    # Late states are near zero and so near each other: an absolute threshold that is as lax pairs different ones.
    absolute = np.nonzero(distance <= 1e-3)
    assert (absolute[0] != absolute[1]).any()
    assert not (
        near_zero_pairs(distance, norms, norms, 1e-3).x != near_zero_pairs(distance, norms, norms, 1e-3).y
    ).any()


@pytest.mark.parametrize("environments", [2, 3])
def test_aggregation_loss_is_the_sum_over_pairs(environments):
    settings = small(starts=7, trajectory_steps=3).settings
    system = make_system(0)
    factor = pair_factor(system, 0, environments, settings)
    features = [system.features(make_distractors(0, 60, "train", index)) for index in range(environments)]
    representation = np.random.default_rng(0).standard_normal((5, 80))
    states = trajectories(0, 7, 3)[0].reshape(-1, 20).T
    couples = [(x, y) for x in range(environments) for y in range(x)]
    expected = np.mean([np.sum((representation @ (features[x] - features[y]) @ states) ** 2) / 7 for x, y in couples])
    assert np.sum((representation @ np.concatenate(features, axis=1) @ factor) ** 2) == pytest.approx(expected)


@pytest.mark.parametrize("optimizer", ["gradient-descent", "momentum"])
def test_gradient_descent_is_the_same_in_the_span_of_the_observations(optimizer):
    config = small(optimizer=optimizer, learning_rate=1e-3, aggregation=100.0, precision="float64", initial_scale=0.1)
    batch = training_batch(config, (0, 1))
    direct = train(initial_policies(config, (0, 1), batch), batch, config.settings)
    start = initial_policies(config, (0, 1), batch)
    assert isinstance(start, TwoLayerPolicies)
    rotation = Rotation.of(batch, start.first)
    reduced, first = rotation.reduce(batch)
    assert first.shape == (2, 40, 30)
    rotated = train(TwoLayerPolicies(first, start.second.detach(), config.settings), reduced, config.settings)
    for index, own in enumerate(direct):
        assert own.train_cost < 55.5  # doing nothing costs 55.56
        lifted = rotation.lift(index, rotated[index])
        for layer, expected in zip(lifted.layers, own.layers, strict=True):
            torch.testing.assert_close(layer, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_results_do_not_depend_on_batches(method, tmp_path, monkeypatch):
    config = lqr_config(method, 60, (0, 1, 2), "smoke")
    together = run(config, tmp_path / "a").read_result()
    monkeypatch.setattr(lqr_run, "MOST_SEEDS", 1)
    apart = run(config, tmp_path / "b").read_result()
    assert [row["seed"] for row in apart["runs"]] == [0, 1, 2]
    for one, other in zip(together["runs"], apart["runs"], strict=True):
        for name, value in one.items():
            assert other[name] == pytest.approx(value, rel=1e-3), name
    single = run(lqr_config(method, 60, (1,), "smoke"), tmp_path / "c").read_result()
    assert single["error"] == pytest.approx(together["runs"][1]["error"], rel=1e-4)
    assert single["config"]["seed"] == 1


def test_the_method_ignores_distractors_and_the_baseline_does_not():
    changes = {"patience": 40, "tolerance": 1e-4, "width": 60}
    rows = {}
    for method in ("psm", "overparametrized"):
        config = lqr_config(method, 200, (5,), changes=changes)
        (trained,) = train_seeds(config, (5,), lambda *_: None)
        rows[method] = evaluate_seed(config, 5, trained)
    assert rows["psm"]["error"] < 0.05
    assert rows["psm"]["distractor_norm"] < 0.05 * rows["psm"]["state_norm"]
    assert rows["overparametrized"]["error"] > 15
    assert rows["overparametrized"]["train_error"] < 0.05
    assert rows["overparametrized"]["distractor_norm"] > rows["overparametrized"]["state_norm"]


def test_single_runs_keep_their_policy(tmp_path):
    folder = run(small(seeds=(3,)), tmp_path)
    tensors, numbers = folder.load_checkpoint()
    policy = policy_matrix([tensors["layer_0"], tensors["layer_1"]])
    assert policy.shape == (20, 80)
    (row,) = folder.read_result()["runs"]
    assert np.linalg.norm(policy[:, 20:]) == pytest.approx(row["distractor_norm"])
    assert numbers["seed"] == 3
    np.testing.assert_allclose(np.linalg.norm(policy, axis=0), row["column_norms"], rtol=1e-3)
    agent, observation = load(folder.path), np.linspace(-1, 1, 80)
    np.testing.assert_allclose(agent.act(observation), policy @ observation)
    assert agent.embed(observation[None]).shape == (1, 30)
    with pytest.raises(UserError, match=r"observations of shape \(80,\), got \(3,\)"):
        agent.act(np.zeros(3))


def test_a_stopped_cell_goes_on_with_the_missing_seeds(tmp_path, monkeypatch):
    config = lqr_config("psm", 60, (0, 1, 2), "smoke")
    monkeypatch.setattr(lqr_run, "MOST_SEEDS", 1)
    whole = run(config, tmp_path / "whole")
    trained, original = [], lqr_run.train_seeds

    def stop_at_the_third(config, seeds, report):
        trained.append(list(seeds))
        if len(trained) == 3:
            raise KeyboardInterrupt
        return original(config, seeds, report)

    monkeypatch.setattr(lqr_run, "train_seeds", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        run(config, tmp_path / "stopped")
    assert not list((tmp_path / "stopped").rglob("result.json"))
    folder = run(config, tmp_path / "stopped")
    assert trained == [[0], [1], [2], [2]]
    assert folder.file("result.json").read_bytes() == whole.file("result.json").read_bytes()
    assert "seconds" in whole.read_json("run.json")
    assert "seconds" not in folder.read_json("run.json")  # those of the first part are not known


def test_cells_side_by_side_equal_single_ones_and_are_not_run_twice(tmp_path):
    configs = LQR().sweep_configs(["ipo", "psm"], [0, 1], "smoke", {"distractors": [60, 60]}, {})
    jobs = [Job(LQR(), config) for config in configs]
    assert sorted(sweep(jobs, tmp_path / "cells", workers=2).done) == [0, 1]
    paths = sorted((tmp_path / "cells").rglob("result.json"))
    assert len(paths) == 2
    for config in configs:
        result = RunFolder.of(tmp_path / "cells", config).read_result()
        alone = run(config, tmp_path / "alone").read_result()
        assert alone["config"] == result["config"]
        assert [row["error"] for row in alone["runs"]] == pytest.approx([row["error"] for row in result["runs"]])
    before = [path.stat().st_mtime_ns for path in paths]
    sweep(jobs, tmp_path / "cells", workers=2)
    assert [path.stat().st_mtime_ns for path in paths] == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "pms"}, "did you mean 'psm'"),
        ({"method": "psm", "distractors": 19}, "distractors must be >= 20, got 19"),
        ({"method": "psm", "seeds": (-1,)}, "seed must be in"),
        ({"method": "psm", "preset": "papr"}, "did you mean 'paper'"),
        ({"method": "psm", "environments": 1}, "at least 2 training environments"),
        ({"method": "psm", "distractors": 100}, "width must be at most 120, the size of the observation, got 200"),
        ({"method": "psm", "changes": {"widht": 3}}, "did you mean 'width'"),
        ({"method": "psm", "distractor": 60}, "did you mean 'distractors'"),
    ],
)
def test_bad_configs_are_explained(arguments, message):
    with pytest.raises(UserError, match=message):
        lqr_config(**arguments)


def test_only_complete_settings_are_checked():
    """The usual width does not fit so few distractors; that of the smoke preset and of the override do."""
    assert lqr_config("psm", 60, preset="smoke").settings.width == 40
    assert lqr_config("psm", 60, changes={"width": 30}).changes == {"width": 30}


def test_other_devices_are_refused(tmp_path):
    with pytest.raises(UserError, match="lqr runs on the CPU only, got device 'cuda'"):
        Job(LQR(), small(), device="cuda").run(tmp_path)


def test_batches_fit_the_memory():
    def size(config):
        return len(next(lqr_run.batches(config, range(100))))

    assert size(lqr_config("psm", 500)) == lqr_run.MOST_SEEDS
    large = lqr_config("psm", 10_000)
    assert 4 * 5 * 200 * 10_000 * size(large) < lqr_run.BATCH_BYTES
    assert size(lqr_config("psm", 1_000_000)) == 1
    assert [list(seeds) for seeds in lqr_run.batches(lqr_config("psm", 500), range(60))] == [
        list(range(25)), list(range(25, 50)), list(range(50, 60)),
    ]  # fmt: skip


def test_command_line_trains_one_run(capsys, tmp_path):
    arguments = ["train", "lqr", "--method", "ipo", "--distractors", "60", "--seed", "3", "--out", str(tmp_path)]
    assert command([*arguments, "--preset", "smoke", "--max-steps", "5"]) == 0
    assert "above the oracle's" in capsys.readouterr().out
    (path,) = tmp_path.rglob("result.json")
    result = json.loads(path.read_text())
    assert result["config"]["seed"] == 3
    assert result["error"] == pytest.approx(result["cost"] - result["oracle_cost"])
    assert result["config"]["changes"] == {"max_steps": 5}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "pms"], "did you mean 'psm'"),
        (["--distractors", "3"], "distractors must be >= 20, got 3"),
        (["--threads", "0"], "threads must be in [1, 1024], got 0"),
    ],
)
def test_command_line_explains_bad_arguments(arguments, message, capsys, tmp_path):
    assert command(["train", "lqr", *arguments, "--out", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_line_that_was_cut_off_does_not_spoil_the_run(tmp_path):
    config = small("overparametrized", (0, 1))
    whole = run(config, tmp_path / "whole").read_result()
    folder = RunFolder.of(tmp_path, config).create(config)
    folder.append_metrics(whole["runs"][0])
    with folder.file("metrics.jsonl").open("a") as file:
        file.write('{"seed": 1, "er')
    assert run(config, tmp_path).read_result() == whole


def test_two_processes_do_not_train_one_cell(tmp_path):
    config = small("overparametrized", (0,))
    with RunFolder.of(tmp_path, config).create(config).lock(), pytest.raises(LockedError):
        run(config, tmp_path)
