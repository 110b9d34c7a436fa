import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from pisces.cli import main
from pisces.cli.tensorboard import EventLog
from pisces.envs.jumping import JumpingTask, optimal_actions, optimal_frames, optimal_rewards
from pisces.metrics import FiniteMDP, bisimulation_metric, trajectory_metric
from pisces.runs.progress import Progress
from pisces.trajectories import Trajectory

TINY = ["--preset", "smoke", "--epochs", "1", "--evaluations", "1", "--evaluation-draws", "1"]


def save_optimal(path, position):
    task = JumpingTask(position, 10)
    Trajectory(optimal_frames(task), optimal_actions(task), rewards=optimal_rewards(task)).save(path)


def test_train_jumping_writes_a_run_folder(tmp_path, capsys):
    assert main(["train", "jumping", "--method", "randconv", *TINY, "--out", str(tmp_path)]) == 0
    (result,) = tmp_path.glob("jumping/randconv/*/result.json")
    assert result.parent.name in capsys.readouterr().out.replace("\n", "")
    assert {path.name for path in result.parent.iterdir()} >= {
        "config.json",
        "metrics.jsonl",
        "checkpoint.safetensors",
        "run.json",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "rndconv"], "did you mean 'randconv'"),
        (["--grid", "wde"], "did you mean 'wide'"),
        (["--augmentation", "randcnv"], "did you mean 'randconv'"),
        (["--preset", "papr"], "did you mean 'paper'"),
        (["--epsilon", "0.7"], "epsilon must be in [0, 0.5], got 0.7"),
        (["--epochs", "0"], "epochs must be >= 1, got 0"),
        (["--kernels", "rows"], "kernels=rows requires"),
    ],
)
def test_bad_arguments_give_one_line_and_code_two(arguments, message, capsys, tmp_path):
    assert main(["train", "jumping", *arguments, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_output_folder_that_is_a_file(tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    assert main(["train", "jumping", *TINY, "--out", str(tmp_path / "file")]) == 2
    assert "lies in a file" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "mine"


def test_metric_finds_the_matching_states(tmp_path, capsys):
    save_optimal(tmp_path / "x.npz", 25)
    save_optimal(tmp_path / "y.npz", 45)
    out = tmp_path / "out"
    assert main(["metric", str(tmp_path / "x.npz"), str(tmp_path / "y.npz"), "--out", str(out)]) == 0
    with np.load(out / "distance.npz") as archive:
        assert archive["distance"].shape == (56, 56)
        assert archive["nearest"][:12].tolist() == list(range(20, 32))
    assert (out / "heat_map.png").stat().st_size > 1000
    assert (out / "nearest.csv").read_text().splitlines()[1] == "0,20,0"
    assert "56 x 56" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--discount", "1.0"], "discount must be in [0, 1)"),
        (["--cost", "l2"], "unknown cost 'l2'"),
        (["--last", "loop"], "did you mean 'self-loop'"),
        (["--tolerance", "1e-6"], "expected no --tolerance for trajectories"),
    ],
)
def test_metric_explains_bad_arguments(arguments, message, tmp_path, capsys):
    save_optimal(tmp_path / "x.npz", 25)
    assert main(["metric", str(tmp_path / "x.npz"), str(tmp_path / "x.npz"), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_metric_of_mdps(tmp_path, capsys):
    generator = np.random.default_rng(0)
    transitions = generator.dirichlet(np.ones(4), (4, 2))
    mdp = FiniteMDP(transitions, generator.random((4, 2)))
    mdp.save(tmp_path / "mdp.npz")
    path = str(tmp_path / "mdp.npz")
    assert main(["metric", path, path, "--metric", "bisimulation", "--out", str(tmp_path / "out")]) == 0
    with np.load(tmp_path / "out" / "distance.npz") as archive:
        expected = bisimulation_metric(mdp, discount=0.99)
        np.testing.assert_allclose(archive["distance"], expected.distance, atol=2e-6)
        assert 0 < archive["error_bound"] <= 1e-6
    assert "4 x 4 distances, exact to" in capsys.readouterr().out
    save_optimal(tmp_path / "x.npz", 25)
    assert main(["metric", path, str(tmp_path / "x.npz")]) == 2
    assert "got one of each" in capsys.readouterr().err
    assert main(["metric", path, path, "--metric", "bisim"]) == 2
    assert "did you mean 'bisimulation'" in capsys.readouterr().err
    assert main(["metric", path, path, "--tolerance", "0"]) == 2
    assert "tolerance" in capsys.readouterr().err
    for unused in (["--cost", "reward"], ["--last", "stop"]):
        assert main(["metric", path, path, *unused]) == 2
        assert "which are for trajectories" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("actions", "policies"),
    [
        (np.array([[0, 1], [1, 1], [0, 0]]), None),
        (np.array([True, False, True]), None),
        (np.array([[0.5], [0.1], [0.2]]), np.full((3, 2), 0.5)),
    ],
)
def test_metric_compares_all_actions_that_the_library_does(actions, policies, tmp_path):
    x, y = Trajectory(np.zeros((3, 1)), actions, policies), Trajectory(np.zeros((3, 1)), actions)
    x.save(tmp_path / "x.npz")
    y.save(tmp_path / "y.npz")
    paths = [str(tmp_path / name) for name in ("x.npz", "y.npz", "out")]
    assert main(["metric", *paths[:2], "--discount", "0.9", "--out", paths[2]]) == 0
    with np.load(tmp_path / "out" / "distance.npz") as archive:
        np.testing.assert_array_equal(archive["distance"], trajectory_metric(x, y, 0.9))


def test_metric_explains_missing_files(tmp_path, capsys):
    assert main(["metric", str(tmp_path / "a.npz"), str(tmp_path / "b.npz")]) == 2
    assert "not a file" in capsys.readouterr().err


def test_doctor_and_version(capsys):
    assert main(["doctor"]) == 0
    quick = capsys.readouterr().out
    assert "torch" in quick
    assert "compiled kernels" not in quick
    assert main(["doctor", "--full"]) == 0
    assert "the metric of a known pair is right" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("pisces 0.")


def test_tensorboard_events(tmp_path):
    assert main(["train", "jumping", "--method", "randconv", *TINY, "--tensorboard", "--out", str(tmp_path)]) == 0
    assert list(tmp_path.rglob("events.out.tfevents*"))


def test_events_hold_the_measures_of_any_experiment(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with EventLog(tmp_path / "empty"):
        pass
    assert not (tmp_path / "empty").exists()
    with EventLog(tmp_path / "run") as events:
        events.update(Progress(20, 40, {"critic": 1.0}, {"test_return": 5.0, "name": "x"}))
    stored = EventAccumulator(str(tmp_path / "run")).Reload()
    assert set(stored.Tags()["scalars"]) == {"loss/critic", "evaluation/test_return"}
    assert stored.Scalars("evaluation/test_return")[0].value == 5.0


def test_demo_writes_its_page_and_stops_cleanly(tmp_path):
    command = [sys.executable, "-m", "pisces", "demo", "--preset", "smoke", "--seeds", "1", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not list(tmp_path.rglob("config.json")):
        time.sleep(0.1)
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert "rerun the command to resume" in error
    subprocess.run(command, check=True, timeout=300)
    page = (tmp_path / "report.html").read_text()
    assert "default-src 'none'" in page
    assert len(list((tmp_path / "runs").rglob("result.json"))) == 2


def test_sweep_runs_and_lists(tmp_path, capsys):
    arguments = ["sweep", "jumping", "--methods", "randconv", "--seeds", "0-1", *TINY, "--out", str(tmp_path)]
    assert main([*arguments, "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("pisces train jumping --method randconv --preset smoke --seed 1 --epochs 1")
    assert not list(tmp_path.iterdir())
    assert main(arguments) == 0
    assert "2 of 2 runs done, 2 of them now" in capsys.readouterr().out
    assert len(list(tmp_path.rglob("result.json"))) == 2
    # A listed command is the same run: it finds its result.
    assert main([*lines[0].split()[1:]]) == 0
    assert len(list(tmp_path.rglob("result.json"))) == 2
    assert main(arguments) == 0
    assert "2 of 2 runs done, 0 of them now" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seeds", "9-3"], "write 3-9"),
        (["--workers", "0"], "at least one worker"),
        (["--methods", "psse"], "did you mean 'pse'"),
        (["--engine", "lokal"], "did you mean 'local'"),
    ],
)
def test_sweep_explains_bad_arguments(arguments, message, tmp_path, capsys):
    assert main(["sweep", "jumping", "--preset", "smoke", *arguments, "--out", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err


def test_axes_of_another_kind_are_explained(tmp_path, capsys):
    assert main(["sweep", "lqr", "--distractors", "500,abc", "--list", "--out", str(tmp_path)]) == 2
    assert "distractors must be an integer, got 'abc'" in capsys.readouterr().err


def test_unknown_experiment_lists_the_choices(capsys):
    with pytest.raises(SystemExit) as error:
        main(["sweep", "jumpin"])
    assert error.value.code == 2
    assert "jumping" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["jumping", "--temperature", "0"], "temperature must be > 0, got 0.0"),
        (["jumping", "--temperature", "1e999"], "temperature must be a finite number, got inf"),
        (["jumping", "--discount", "1"], "discount must be in [0, 1), got 1.0"),
        (["jumping", "--device", "foo"], "foo"),
        (["jumping", "--seed", "99999999999999999999"], "seed must be in [0, 4294967295]"),
        (["minigrid", "--seed", "4294967296"], "seed must be in [0, 4294967295]"),
        (["minigrid", "--training-levels", "1"], "training_levels must be in [2, 200], got 1"),
        (["distracting", "--auxiliary", "True"], "auxiliary is decided by the method"),
        (["distracting", "--frame-size", "0"], "frame_size must be >= 1, got 0"),
        (["lqr", "--device", "cuda"], "lqr runs on the CPU only"),
    ],
)
def test_settings_out_of_range_give_one_line_and_code_two(arguments, message, tmp_path, capsys):
    assert main(["train", *arguments, "--preset", "smoke", "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["jumping", "--weighted", "false"],
        ["jumping", "--epochs", "abc"],
        ["jumping", "--epochs", "1.5"],
        ["lqr", "--max-steps", "abc"],
        ["lqr", "--epochs", "3"],
        ["minigrid", "--steps", "abc"],
    ],
)
def test_options_of_another_kind_are_refused_by_the_parser(arguments, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["train", *arguments, "--preset", "smoke", "--out", str(tmp_path)])
    assert stop.value.code == 2
    assert not list(tmp_path.iterdir())


def test_a_reader_that_has_gone_is_no_error():
    command = [sys.executable, "-m", "pisces", "sweep", "jumping", "--seeds", "0-2000", "--list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()  # before anything is written
        assert process.stderr.read() == b""
    assert process.returncode == 128 + signal.SIGPIPE


def test_other_broken_pipes_are_not_hidden(monkeypatch):
    def fail(self, **arguments):
        raise BrokenPipeError

    monkeypatch.setattr("tyro.extras.SubcommandApp.cli", fail)
    with pytest.raises(BrokenPipeError):
        main(["doctor"])
