"""What shared disks, killed processes and second users do to run folders."""

import math
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_experiment import FAKE, FakeConfig, fake_jobs

from pisces import files
from pisces.errors import UserError
from pisces.files import replacing, write_atomically
from pisces.runs import store
from pisces.runs.job import Job
from pisces.runs.store import RunFolder
from pisces.runs.sweep import sweep

DAMAGED = [b'{"config": gar', b"[]", b"\xff\xfe", b'{"schema": 2', b"[" * 100_000, b"null"]


def finished_job(root, seed=1):
    job = Job(FAKE, FakeConfig(seed, iterations=1))
    job.run(root)
    return job


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_result_is_refused_and_kept(tmp_path, content):
    job = finished_job(tmp_path)
    path = job.folder(tmp_path).file("result.json")
    path.write_bytes(content)
    for attempt in (lambda: job.run(tmp_path), lambda: sweep([job], tmp_path)):
        with pytest.raises(UserError, match=r"result\.json.*; delete it and run the command again$"):
            attempt()
    assert path.read_bytes() == content
    path.unlink()
    assert sweep([job], tmp_path, workers=1).ran == [0]


def test_all_damaged_results_are_counted(tmp_path):
    jobs = fake_jobs([1, 2, 3], iterations=1)
    for job in jobs[:2]:
        job.run(tmp_path)
        job.folder(tmp_path).file("result.json").write_text("{")
    with pytest.raises(UserError, match=r"\(2 results are damaged\)$"):
        sweep(jobs, tmp_path)
    assert not jobs[2].folder(tmp_path).path.exists()


def test_all_files_have_the_mode_of_the_umask(tmp_path):
    torch = pytest.importorskip("torch")
    before = os.umask(0o027)
    try:
        folder = finished_job(tmp_path).folder(tmp_path)
        folder.save_checkpoint({"weight": torch.zeros(2)}, {"iteration": 1})
        folder.append_metrics({"iteration": 1})
    finally:
        os.umask(before)
    names = ("config.json", "checkpoint.safetensors", "metrics.jsonl", "metrics.sha256", "run.json", "result.json")
    assert {name: oct(folder.file(name).stat().st_mode & 0o777) for name in names} == dict.fromkeys(names, "0o640")


def leave(folder):
    """What processes leave that are killed while they write, and after the result was written."""
    folder.file(".tmp-0123").write_text("half")
    folder.file("error.txt").write_text("no luck")
    folder.file("replay").mkdir()
    folder.file("replay/frames.u8").write_bytes(bytes(9))
    folder.file("pairs.u8").write_bytes(bytes(9))
    return {".tmp-0123", "error.txt", "replay", "pairs.u8"}


@pytest.mark.parametrize("again", [lambda job, root: job.run(root), lambda job, root: sweep([job], root)])
def test_what_a_killed_process_left_is_removed(tmp_path, again):
    job = finished_job(tmp_path)
    left = leave(job.folder(tmp_path))
    with job.folder(tmp_path).lock():
        again(job, tmp_path)
        assert left <= {path.name for path in job.folder(tmp_path).path.iterdir()}, "of a run in use"
    again(job, tmp_path)
    assert not left & {path.name for path in job.folder(tmp_path).path.iterdir()}
    assert job.folder(tmp_path).finished


def test_what_is_removed_is_not_followed(tmp_path):
    job = finished_job(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    job.folder(tmp_path).file("replay").symlink_to(tmp_path / "mine")
    job.run(tmp_path)
    assert (tmp_path / "mine" / "file").read_text() == "mine"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_run_that_diverges_is_refused(tmp_path, value):
    folder = RunFolder.of(tmp_path, FakeConfig(1)).create(FakeConfig(1))
    folder.append_metrics({"iteration": 1, "loss": 0.5})
    with pytest.raises(UserError, match=r"diverged: loss is (nan|-?inf); choose other settings"):
        folder.append_metrics({"iteration": 2, "loss": value})
    assert folder.read_metrics() == [{"iteration": 1, "loss": 0.5}]


OPEN_MANY = """
    import os, sys
    os.getpid = lambda: 7  # as in two containers on one disk
    sys.path.insert(0, sys.argv[2])
    from fake_experiment import FakeConfig
    from pisces.runs.store import RunFolder
    for seed in range(300):
        config = FakeConfig(seed)
        folder = RunFolder.of(sys.argv[1], config).create(config)
        folder.write_info({})
    print("done")
"""


def test_processes_with_equal_ids_share_a_folder(tmp_path):
    support = str(Path(__file__).parents[1] / "support")
    command = [sys.executable, "-c", textwrap.dedent(OPEN_MANY), str(tmp_path), support]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        output, error = process.communicate()
        assert output == "done\n", error


def test_a_config_that_another_process_wrote_first_is_fine(tmp_path, monkeypatch):
    """The other one holds the lock by now and has removed our temporary file."""

    def overtaken(path, text):
        write_atomically(path, text)
        raise FileNotFoundError(path)

    monkeypatch.setattr(store, "write_atomically", overtaken)
    assert RunFolder.of(tmp_path, FakeConfig(1)).create(FakeConfig(1)).file("config.json").exists()


def test_a_symlink_is_never_written_through(tmp_path, monkeypatch):
    monkeypatch.setattr(files.uuid, "uuid4", lambda: SimpleNamespace(hex="guessed"))
    (tmp_path / "victim").write_text("mine")
    (tmp_path / ".tmp-guessed").symlink_to(tmp_path / "victim")
    with pytest.raises(FileExistsError), replacing(tmp_path / "new") as file:
        file.write(b"theirs")
    assert (tmp_path / "victim").read_text() == "mine"
    monkeypatch.undo()
    (tmp_path / "new").symlink_to(tmp_path / "victim")
    write_atomically(tmp_path / "new", "replaces the link, not what it points to")
    assert (tmp_path / "victim").read_text() == "mine"


def test_temporary_names_cannot_be_guessed(tmp_path):
    names = set()
    for _ in range(3):
        with replacing(tmp_path / "file"):
            names |= {path.name for path in tmp_path.iterdir()} - {"file"}
    assert len(names) == 3
    assert all(len(name) >= 32 for name in names)
