"""Arguments and files that ask for too much, or for what cannot be: one line, exit code 2, and no memory taken."""

import io
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from pisces.cli import main
from pisces.errors import UserError
from pisces.metrics import trajectory_metric
from pisces.runs import ray
from pisces.runs.store import RunFolder
from pisces.trajectories import Trajectory
from pisces.validation import load_arrays

LQR = ["train", "lqr", "--preset", "smoke"]


def refusal(capsys, arguments):
    """The line that a command ends with."""
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 2
    line = capsys.readouterr().err
    assert line.startswith("pisces: ")
    assert line.count("\n") == 1, line
    return line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*LQR, "--out", "a\0b"], "NUL"),
        ([*LQR, "--device", "meta"], "must be cpu, cuda or cuda:<number>, got 'meta'"),
        ([*LQR, "--device", "cuda:99999999999999"], "must be cpu, cuda"),
        ([*LQR, "--threads", "100000000000"], "threads must be in [1, 1024]"),
        ([*LQR, "--distractors", "1000000000000"], "PISCES_MEMORY_GB"),
        (["sweep", "lqr", "--seeds", "0-99999999999"], "at most 10 digits"),
        (["sweep", "lqr", "--seeds", "0-999999999"], "at most 100000 seeds"),
        (["sweep", "lqr", "--preset", "smoke", "--engine", "ray", "--address", ""], "host:port"),
        (
            ["sweep", "lqr", "--preset", "smoke", "--engine", "ray", "--address", "127.0.0.1:1"],
            "no Ray cluster answers",
        ),
        (["sweep", "lqr", "--preset", "smoke", "--engine", "ray", "--address", "x:99999999"], "host:port"),
        (["tune", "jumping", "--search", "epochs=1.5:2"], "integers as bounds"),
        (["report", "a\0b"], "NUL"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_arguments_that_cannot_be(capsys, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    if "--address" in arguments:
        pytest.importorskip("ray")
    assert words in refusal(capsys, arguments)


def test_an_address_that_never_answers_is_given_up(monkeypatch):
    waited = []

    def silent(address, timeout):
        waited.append(timeout)
        raise TimeoutError

    monkeypatch.setattr(ray.socket, "create_connection", silent)
    with pytest.raises(UserError, match="no Ray cluster answers"):
        ray._check_address("ray://somewhere.invalid:10001")
    assert sum(waited) < 20


def test_brackets_in_a_path_are_not_markup(capsys, tmp_path):
    out = tmp_path / "[/x]"
    assert main([*LQR, "--out", str(out)]) == 0
    assert str(out) in capsys.readouterr().out
    assert main(["sweep", "lqr", "--preset", "smoke", "--seeds", "1", "--workers", "1", "--out", str(out)]) == 0


@pytest.mark.parametrize("stream", ["1", "2"])
def test_closed_output(stream, tmp_path):
    command = f"{sys.executable} -m pisces metric x.npz x.npz {stream}>&-"
    Trajectory(np.zeros((3, 1)), np.array([0, 1, 0])).save(tmp_path / "x.npz")
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "metric" / "distance.npz").exists()


def test_a_full_device_as_output(tmp_path):
    command = f"{sys.executable} -m pisces citation > /dev/full"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr


def npz_with_header(path, shape, content=b"", descr="<f8"):
    """A file whose header declares an array of any shape."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("observations.npy", np.lib.format.magic(1, 0) + header.getvalue()[8:] + content)


@pytest.mark.parametrize("shape", [(10**10,), (10**5, 10**5), (10**30,), (-(10**10),), (2**63, 2**63)])
def test_files_that_declare_more_than_they_hold(capsys, tmp_path, shape):
    npz_with_header(tmp_path / "x.npz", shape, bytes(80))
    assert "is damaged" in refusal(capsys, ["metric", tmp_path / "x.npz", tmp_path / "x.npz"])


def test_memory_is_checked_before_it_is_taken(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "zeros.npz", observations=np.zeros(10**6))
    assert (tmp_path / "zeros.npz").stat().st_size < 20_000
    assert len(load_arrays("a trajectory", tmp_path / "zeros.npz")["observations"]) == 10**6
    monkeypatch.setenv("PISCES_MEMORY_GB", "0.01")
    with pytest.raises(UserError, match=r"would take 0\.008 GB, above the limit of 0\.00125 GB; .* PISCES_MEMORY_GB"):
        load_arrays("a trajectory", tmp_path / "zeros.npz")
    monkeypatch.setenv("PISCES_MEMORY_GB", "much")
    with pytest.raises(UserError, match="must be a number of GB"):
        load_arrays("a trajectory", tmp_path / "zeros.npz")


def test_distances_that_do_not_fit_are_refused():
    long = Trajectory(np.zeros((100_000, 1)), np.zeros(100_000, np.int64))
    with pytest.raises(UserError, match="the distances between 100000 and 100000 states would take 320 GB"):
        trajectory_metric(long, long, 0.9)


def test_mdps_of_strings_are_refused(capsys, tmp_path):
    np.savez(tmp_path / "x.npz", transitions=np.full((2, 1, 2), "a"), rewards=np.full((2, 1), "b"))
    assert "must be real numbers" in refusal(capsys, ["metric", tmp_path / "x.npz", tmp_path / "x.npz"])


def test_tensors_that_do_not_fit_give_one_line(capsys, tmp_path):
    for size in (10**12, 10**18):
        arguments = ["train", "jumping", "--method", "pse", "--preset", "smoke", "--embedding-size", size]
        assert "not enough memory" in refusal(capsys, [*arguments, "--out", tmp_path])


def test_a_replay_that_does_not_fit_on_the_disk_is_refused(tmp_path):
    pytest.importorskip("torch")
    from pisces.agents.drq.replay import Replay

    with pytest.raises(UserError, match=r"needs 2\.1\de\+08 GB, but .* choose a smaller buffer_size"):
        Replay(tmp_path, 10**13, 84, 3, 1)


def test_deep_json_is_damaged(capsys, tmp_path):
    assert main([*LQR, "--out", str(tmp_path)]) == 0
    (config,) = tmp_path.rglob("config.json")
    config.write_text("[" * 100_000)
    assert "delete the folder to start the run over" in refusal(capsys, [*LQR, "--out", tmp_path])
    assert "is missing or damaged" in refusal(capsys, ["evaluate", config.parent])


def test_a_folder_that_is_deleted_while_a_run_goes_on(capsys, tmp_path, monkeypatch):
    write = RunFolder.write_info

    def deleted(self, info):
        shutil.rmtree(self.path)
        write(self, info)

    monkeypatch.setattr(RunFolder, "write_info", deleted)
    assert "was the folder deleted" in refusal(capsys, [*LQR, "--out", tmp_path])


@pytest.mark.parametrize(
    "error", [MemoryError(), MemoryError("Unable to allocate 3 TiB"), OSError(24, "Too many files")]
)
def test_limits_of_the_system_give_one_line(capsys, tmp_path, monkeypatch, error):
    def fail(self, info):
        raise error

    monkeypatch.setattr(RunFolder, "write_info", fail)
    refusal(capsys, [*LQR, "--out", tmp_path])


@pytest.mark.parametrize("method", ["psm", "ipo"])
def test_a_run_that_diverges_fails(capsys, tmp_path, method):
    line = refusal(capsys, [*LQR, "--method", method, "--learning-rate", "1e30", "--out", tmp_path])
    assert "diverged" in line
    assert not list(tmp_path.rglob("result.json"))


def test_a_long_unknown_name_is_cut(capsys, tmp_path):
    assert len(refusal(capsys, [*LQR, "--method", "[" * 5000, "--out", tmp_path])) < 1000


def test_an_archive_whose_list_of_contents_lost_an_entry_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    Trajectory(np.zeros((3, 1)), np.array([0, 1, 0]), rewards=np.ones(3)).save(path)
    content = bytearray(path.read_bytes())
    end = content.rindex(b"PK\x05\x06")
    last = content.rindex(b"PK\x01\x02")
    size = int.from_bytes(content[end + 12 : end + 16], "little")
    del content[last:end]
    end = last
    content[end + 12 : end + 16] = (size - (len(path.read_bytes()) - len(content))).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(UserError, match="is damaged"):
        Trajectory.load(path)
