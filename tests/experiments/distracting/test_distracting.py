import math
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pisces.agents.drq.policy import PixelPolicy
from pisces.agents.drq.settings import DrQSettings
from pisces.cli import main
from pisces.errors import UserError, missing_text
from pisces.experiments import load
from pisces.experiments.distracting import run as distracting_run
from pisces.experiments.distracting.alignment import alignment, found_share
from pisces.experiments.distracting.config import DistractingConfig
from pisces.experiments.distracting.data import PairStore, make_env
from pisces.experiments.distracting.experiment import Distracting
from pisces.experiments.registry import all_experiments, evaluate_run
from pisces.metrics import sequence_metric
from pisces.reports.results import read_runs
from pisces.runs.job import Job

pytest.importorskip("dm_control", reason=missing_text("dm_control", "control"))

TINY = {"frame_size": 20, "action_repeat": 100, "batch_size": 4, "learning_starts": 4}


def config_of(method="drq+pse", **arguments):
    return DistractingConfig.make(method, "smoke", changes=TINY, **arguments)


def run(config, out, listeners=()):
    return Job(Distracting(), config).run(out, listeners)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def whole(root):
    return run(config_of(), root)


def test_one_job_runs_its_pretraining_too(whole, root):
    result = whole.read_result()
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
    found, result = evaluate_run(whole.path, tasks=None, episodes=1, draws=None), whole.read_result()
    assert found.values["train_returns"] == pytest.approx(result["train_returns"], rel=1e-3)
    assert found.values["test_returns"] == pytest.approx(result["test_returns"], rel=1e-3)


def test_alignment_is_that_of_the_stored_agent(whole):
    stored = whole.read_result()["alignment"]
    found = alignment(config_of(), load(whole.path)._agent)
    for videos in ("train", "test"):
        assert found[videos] == pytest.approx(stored[videos], rel=1e-3)
        assert 0 <= found[videos]["found_percent"] <= 100


def test_found_share_counts_nearest_rows_at_the_same_place():
    x = np.eye(6, dtype=np.float32)
    assert found_share(x, 3 * x) == 1
    assert found_share(x, np.roll(x, 1, axis=0), near=0) == 0
    # All but the row that comes round to the other end are one place away.
    assert found_share(x, np.roll(x, 1, axis=0)) == pytest.approx(5 / 6)
    assert found_share(x, x[::-1]) == pytest.approx(2 / 6)


def test_pretraining_is_the_drq_run(whole, root):
    before = {path: path.stat().st_mtime_ns for path in root.glob("distracting/drq/*/result.json")}
    assert config_of().pretraining() == config_of("drq")
    assert Distracting().requirements(config_of()) == (config_of("drq"),)
    assert Distracting().requirements(config_of("drq")) == ()
    run(config_of("drq"), root)
    run(config_of(), root)
    assert {path: path.stat().st_mtime_ns for path in root.glob("distracting/drq/*/result.json")} == before


def test_pairs_of_a_result_without_an_agent_are_those_of_its_run_again(whole, root, tmp_path):
    (first,) = root.glob("distracting/drq/*")
    folder = tmp_path / first.relative_to(root)
    folder.mkdir(parents=True)
    for name in ("config.json", "run.json", "result.json"):  # what is committed
        shutil.copy(first / name, folder)
    again = run(config_of(), tmp_path)
    assert again.read_result() == whole.read_result()
    assert (folder / "result.json").read_bytes() == (first / "result.json").read_bytes()
    read = read_runs([tmp_path], all_experiments()).runs
    assert {run.folder for run in read} == {folder, again.path}


def test_pairs_differ_in_the_background_only(whole, root, tmp_path):
    (folder,) = root.glob("distracting/drq/*/pairs")
    with np.load(folder / "0000.npz") as archive:
        assert archive["frames_x"].shape == archive["frames_y"].shape == (10, 20, 20, 3)
        assert not np.array_equal(archive["frames_x"], archive["frames_y"])
        actions, frames = archive["actions"], archive["frames_y"]
    cost = np.abs(actions[:, None] - actions[None]).mean(axis=2)
    store = PairStore(folder, 2, 3, DrQSettings(), tmp_path / "scratch")
    metric = store.pairs.metric((0, 0), (1, 0))
    assert np.allclose(metric, sequence_metric(cost, discount=0.99, last="self-loop"), atol=1e-5)
    assert np.allclose(np.diag(metric), 0)
    pair = store.draw(np.random.default_rng(0))
    number = int(np.random.default_rng(0).integers(4)) // 2
    expected = store.pairs.metric((2 * number, 0), (2 * number + 1, 0))
    assert any(np.array_equal(pair.metric, side) for side in (expected, expected.T))
    assert pair.observations_x.shape == (10, 20, 20, 9)
    assert np.array_equal(pair.observations_x[1, ..., 3:], pair.observations_x[2, ..., :6])
    stacked = store.observations(np.array([10, 11, 19]))
    assert np.array_equal(stacked[..., 6:], frames[[0, 1, 9]])
    assert np.array_equal(stacked[..., :3], frames[[0, 0, 7]])


def test_a_damaged_pair_is_explained(whole, root, tmp_path):
    (folder,) = root.glob("distracting/drq/*/pairs")
    (tmp_path / "0000.npz").write_bytes((folder / "0000.npz").read_bytes()[:500])
    with pytest.raises(ValueError, match="is damaged; delete it and run the same command again"):
        PairStore(tmp_path, 1, 3, DrQSettings(), tmp_path / "scratch")


@pytest.mark.parametrize("change", [{"frames_x": "float"}, {"actions": "nan"}, {"actions": "short"}, {"return": "two"}])
def test_a_pair_of_other_arrays_is_explained(change, whole, root, tmp_path):
    (folder,) = root.glob("distracting/drq/*/pairs")
    with np.load(folder / "0000.npz") as archive:
        arrays = dict(archive)
    ((name, way),) = change.items()
    value = arrays[name]
    arrays[name] = {
        "float": lambda: value.astype(float),
        "nan": lambda: value * np.float32("nan"),
        "short": lambda: value[:-1],
        "two": lambda: np.array([1.0, 2.0]),
    }[way]()
    np.savez(tmp_path / "0000.npz", **arrays)
    with pytest.raises(ValueError, match=r"0000\.npz' is damaged; delete it and run the same command again"):
        PairStore(tmp_path, 1, 3, DrQSettings(), tmp_path / "scratch")


def test_bytes_of_a_pair_are_checked_and_a_deleted_pair_is_recorded_again(whole, root, tmp_path):
    (folder,) = root.glob("distracting/drq/*/pairs")
    good = (folder / "0000.npz").read_bytes()
    for place in range(60, len(good) - 200, len(good) // 20):
        damaged = bytearray(good)
        damaged[place] ^= 1
        (tmp_path / "0000.npz").write_bytes(damaged)
        try:
            store = PairStore(tmp_path, 1, 3, DrQSettings(), tmp_path / "scratch")
        except UserError:
            pass  # in the words that the tests above check
        else:  # a byte that means nothing, such as a date
            same = PairStore(folder, 1, 3, DrQSettings(), tmp_path / "same")
            assert np.array_equal(store._frames, same._frames)
            assert store.returns == same.returns
    (folder / "0000.npz").unlink()
    result = whole.file("result.json").read_bytes()
    whole.file("result.json").unlink()
    whole.file("checkpoint.safetensors").unlink()
    assert run(config_of(), root).file("result.json").read_bytes() == result


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


def test_pretrained_initialization(whole, root):
    result = run(config_of("drq", init="pretrained"), root).read_result()
    assert result["config"]["init"] == "pretrained"


def test_pairs_are_those_of_the_best_evaluation(tmp_path, monkeypatch):
    returns = iter([300.0, 10.0, 500.0, 10.0, 100.0, 10.0, 0.0, 0.0])
    monkeypatch.setattr(distracting_run, "evaluate", lambda *arguments: [next(returns)])
    states = []
    original = PixelPolicy.policy_state
    monkeypatch.setattr(PixelPolicy, "policy_state", lambda self: states.append(original(self)) or states[-1])
    config = config_of("drq").override({"evaluations": 3, "steps": 3000})
    folder = run(config, tmp_path)
    assert len(states) == 2
    best = distracting_run._best_policy(folder)
    assert set(best) == set(states[1])
    assert all(torch.equal(best[name], states[1][name]) for name in best)
    assert not torch.equal(folder.read_checkpoint()[0]["actor.output.weight"], best["actor.output.weight"])


def test_a_pretrained_agent_collects_batches_of_decisions_first(root, whole, monkeypatch):
    config = config_of("drq", init="pretrained").override({"steps": 30_000, "batch_size": 4})
    updates = []
    monkeypatch.setattr(distracting_run._Run, "_update", lambda self: updates.append(self.decisions))
    state = SimpleNamespace(config=config, decisions=0, agent=SimpleNamespace(updates=0))
    state.decisions = 200
    assert distracting_run._Run._updates_due(state) == 0
    state.decisions = 201
    assert distracting_run._Run._updates_due(state) == 1


def test_trained_agent_loads_and_plays(whole):
    policy = load(whole.path)
    env = make_env(config_of(), "test")
    observation, _ = env.reset(seed=0)
    assert policy.act(observation).shape == (1,)
    assert policy.embed(observation[None]).shape == (1, 256)
    with pytest.raises(ValueError, match="bytes of shape"):
        policy.act(np.zeros((4, 4, 9), np.uint8))
    env.close()


def test_pretraining_leaves_out_the_settings_of_the_loss():
    config = DistractingConfig.make(
        "drq+pse", "smoke", seed=2, init="pretrained", variant="plain", changes={**TINY, "temperature": 0.5, "pairs": 3}
    )
    first = config.pretraining()
    assert (first.method, first.init, first.seed, first.variant) == ("drq", "random", 2, "plain")
    assert first.changes == TINY
    assert not first.settings.auxiliary
    with pytest.raises(UserError, match="auxiliary is decided by the method"):
        DistractingConfig.make("drq", "smoke", changes={"auxiliary": True})


def test_settings_of_any_auxiliary_loss_reach_the_methods_that_have_one():
    changes = {"coefficient": 0.5, "auxiliary_frequency": 3, "scale": 0.5}
    axes = {"task": ["cartpole-swingup"], "init": ["random"]}
    methods = ["drq", "drq+dbc", "drq+pse"]
    found = {c.method: c.changes for c in Distracting().sweep_configs(methods, [0], "cpu", axes, changes)}
    shared = {"coefficient": 0.5, "auxiliary_frequency": 3}
    assert found == {"drq": {}, "drq+dbc": shared, "drq+pse": {**shared, "scale": 0.5}}
    config = DistractingConfig.make("drq+dbc", "cpu", init="pretrained", changes=shared)
    assert config.pretraining().changes == shared


def test_a_buffer_smaller_than_an_episode_is_refused():
    with pytest.raises(
        UserError, match="buffer_size must be at least 127, so that an episode of cartpole-swingup fits, got 126"
    ):
        DistractingConfig.make("drq", "cpu", changes={"buffer_size": 126})
    assert DistractingConfig.make("drq", "cpu", changes={"buffer_size": 127}).settings.buffer_size == 127


def test_the_default_search_tries_every_combination():
    space = Distracting().search_space("drq+pse")
    assert Distracting.defaults["tune"]["trials"] == math.prod(len(choice.values) for choice in space)


def test_config_survives_its_own_words(tmp_path):
    config = config_of(init="pretrained", variant="dcs-easy", seed=3)
    assert DistractingConfig.from_dict(config.as_dict()) == config
    words = config.command(tmp_path)
    start = "pisces train distracting --method drq+pse --preset smoke --init pretrained --variant dcs-easy --seed 3 "
    assert words.startswith(start)
    assert "--frame-size 20" in words
    assert config.changes == TINY


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task", "cartpole-swngup"], "did you mean 'cartpole-swingup'"),
        (["--method", "drqpse"], "did you mean 'drq+pse'"),
        (["--preset", "cpuu"], "did you mean 'cpu'"),
        (["--variant", "papr"], "did you mean 'paper'"),
        (["--steps", "0"], "steps must be >= 1, got 0"),
        (["--davis", "nowhere", "--preset", "smoke"], "the DAVIS folder"),
    ],
)
def test_bad_arguments_give_one_line_and_code_two(arguments, message, capsys, tmp_path):
    assert main(["train", "distracting", *arguments, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_an_unknown_initialization_is_explained(capsys, tmp_path):
    with pytest.raises(UserError, match="did you mean 'pretrained'"):
        config_of(init="pretraind")
    assert main(["train", "distracting", "--init", "pretraind", "--out", str(tmp_path)]) == 2
    assert "did you mean 'pretrained'" in capsys.readouterr().err


@pytest.mark.parametrize("loss", ["dbc", "mico", "simsr", "deepmdp", "curl", "spr"])
def test_methods_with_losses_on_transitions(loss, tmp_path):
    config = config_of(f"drq+{loss}")
    assert not config.needs_pretraining
    folder = run(config, tmp_path)
    assert np.isfinite(folder.read_result()["curve"][0]["auxiliary_loss"])
    observations = np.zeros((2, 20, 20, 9), np.uint8)
    assert load(folder.path).embed(observations).shape == (2, config.settings.hidden_size)
