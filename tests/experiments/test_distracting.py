import json
import shutil

import numpy as np
import pytest

from pisces.agents import load
from pisces.cli import main
from pisces.experiments import distracting_run
from pisces.experiments.distracting import command_line, config_from_dict, make_config, pretraining_config
from pisces.experiments.distracting_alignment import found_share
from pisces.experiments.distracting_alignment import main as add_alignment
from pisces.experiments.distracting_data import PairStore, action_metric, make_env
from pisces.experiments.distracting_run import run
from pisces.experiments.evaluation import evaluate_run
from pisces.metrics import sequence_metric

TINY = {"frame_size": 20, "action_repeat": 100, "batch_size": 4, "seed_steps": 4}


def config_of(method="drq+pse", **arguments):
    return make_config(method, preset="smoke", threads=1, changes=TINY, **arguments)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def whole(root):
    return run(config_of(), root)


def test_one_command_runs_all_stages(whole, root):
    result = whole.read_json("result.json")
    assert result["config"] == config_of().as_dict()
    assert 0 <= result["train_return"] <= 1000
    assert 0 <= result["test_return"] <= 1000
    assert [row["step"] for row in result["curve"]] == [2000]
    assert "auxiliary_loss" in result["curve"][0]
    assert len(list(root.glob("distracting/*/*/result.json"))) == 2
    names = {path.name for path in whole.path.iterdir()}
    assert {"test_backgrounds.png", "episode_train.gif", "episode_test.gif", "run.json"} <= names
    assert not {"replay", "pairs.u8"} & names


def test_evaluation_repeats_the_final_one(whole):
    found, result = evaluate_run(whole.path, episodes=1), whole.read_json("result.json")
    assert found.values["train_returns"] == pytest.approx(result["train_returns"], rel=1e-3)
    assert found.values["test_returns"] == pytest.approx(result["test_returns"], rel=1e-3)


def test_alignment_of_a_run_that_lacks_it_is_the_one_that_it_would_have_measured(whole, tmp_path, capsys):
    copy = tmp_path / "distracting" / "drq+pse" / whole.path.name
    shutil.copytree(whole.path, copy)
    result = whole.read_json("result.json")
    (copy / "result.json").write_text(json.dumps({k: v for k, v in result.items() if k != "alignment"}))
    add_alignment([str(tmp_path)])
    assert str(copy) in capsys.readouterr().out
    found = json.loads((copy / "result.json").read_text())
    assert found["curve"] == result["curve"]
    for videos in ("train", "test"):
        assert found["alignment"][videos] == pytest.approx(result["alignment"][videos], rel=1e-3)
        assert 0 <= found["alignment"][videos]["found_percent"] <= 100
    add_alignment([str(tmp_path)])
    assert not capsys.readouterr().out


def test_found_share_counts_nearest_rows_at_the_same_place():
    x = np.eye(6, dtype=np.float32)
    assert found_share(x, 3 * x) == 1
    assert found_share(x, np.roll(x, 1, axis=0), near=0) == 0
    # All but the row that comes round to the other end are one place away.
    assert found_share(x, np.roll(x, 1, axis=0)) == pytest.approx(5 / 6)
    assert found_share(x, x[::-1]) == pytest.approx(2 / 6)


def test_pretraining_is_the_drq_run(whole, root):
    before = {path: path.stat().st_mtime_ns for path in root.glob("distracting/drq/*/result.json")}
    assert pretraining_config(config_of()) == config_of("drq")
    run(config_of("drq"), root)
    run(config_of(), root, stage="pretrain")
    assert {path: path.stat().st_mtime_ns for path in root.glob("distracting/drq/*/result.json")} == before


def test_pairs_differ_in_the_background_only(whole, root, tmp_path):
    (folder,) = root.glob("distracting/drq/*/pairs")
    with np.load(folder / "0000.npz") as archive:
        assert archive["frames_x"].shape == archive["frames_y"].shape == (10, 20, 20, 3)
        assert not np.array_equal(archive["frames_x"], archive["frames_y"])
        actions, metric = archive["actions"], archive["metric"]
    cost = np.abs(actions[:, None] - actions[None]).mean(axis=2)
    assert np.allclose(metric, sequence_metric(cost, 0.99), atol=1e-5)
    assert np.allclose(np.diag(metric), 0)
    store = PairStore(folder, 2, 3, 0.5, tmp_path / "scratch")
    assert np.allclose(store.metrics[0], action_metric(actions, 0.5))
    pair = store.draw(np.random.default_rng(0))
    assert pair.observations_x.shape == (10, 20, 20, 9)
    assert np.array_equal(pair.observations_x[1, ..., 3:], pair.observations_x[2, ..., :6])


@pytest.mark.parametrize("decision", [6, 15])
def test_a_stopped_run_goes_on_to_the_same_result(whole, root, tmp_path, monkeypatch, decision):
    monkeypatch.setattr(distracting_run, "CHECKPOINT_SECONDS", 0.0)

    def stop(progress):
        if progress.iteration == 100 * decision:
            raise KeyboardInterrupt

    (pretrained,) = root.glob("distracting/drq/*/result.json")
    with pytest.raises(KeyboardInterrupt):
        run(config_of("drq"), tmp_path, listeners=[stop])
    folder = run(config_of("drq"), tmp_path)
    assert folder.file("result.json").read_bytes() == pretrained.read_bytes()


def test_pretrained_initialisation(whole, root):
    result = run(config_of("drq", init="pretrained"), root).read_json("result.json")
    assert result["config"]["init"] == "pretrained"


def test_stages_that_come_too_early_are_explained(tmp_path):
    for stage in ("pairs", "train"):
        with pytest.raises(ValueError, match="run --stage pretrain"):
            run(config_of(), tmp_path, stage=stage)
    with pytest.raises(ValueError, match="did you mean 'train'"):
        run(config_of(), tmp_path, stage="trian")


def test_trained_agent_loads_and_plays(whole):
    policy = load(whole.path)
    env = make_env(config_of(), "test")
    observation, _ = env.reset(seed=0)
    assert policy.act(observation).shape == (1,)
    assert policy.embed(observation).shape == (256,)
    with pytest.raises(ValueError, match="bytes of shape"):
        policy.act(np.zeros((4, 4, 9), np.uint8))
    env.close()


def test_config_survives_its_own_words(tmp_path):
    config = config_of(init="pretrained", variant="dcs-easy", seed=3)
    assert config_from_dict(config.as_dict()) == config
    words = command_line(config, tmp_path)
    assert "--task cartpole-swingup --method drq+pse --init pretrained --seed 3 --preset smoke" in words
    assert "frame_size=20" in words
    assert config.study == "action_repeat=100,batch_size=4,frame_size=20,seed_steps=4"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task", "cartpole-swngup"], "did you mean 'cartpole-swingup'"),
        (["--method", "drqpse"], "did you mean 'drq+pse'"),
        (["--preset", "cpuu"], "did you mean 'cpu'"),
        (["--init", "pretraind"], "did you mean 'pretrained'"),
        (["--variant", "papr"], "did you mean 'paper'"),
        (["--set", "step=3"], "did you mean"),
        (["--davis", "nowhere", "--preset", "smoke"], "DAVIS videos"),
    ],
)
def test_bad_arguments_give_one_line_and_code_two(arguments, message, capsys, tmp_path):
    assert main(["train", "distracting", *arguments, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
