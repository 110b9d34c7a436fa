"""Disks that are full or can't be written to."""

import errno
import os
import subprocess

import pytest
from fake_experiment import FAKE, FakeConfig

from pisces.errors import UserError
from pisces.files import write_atomically
from pisces.runs.job import Job
from pisces.runs.sweep import sweep

TINY = ["--preset", "smoke", "--epochs", "1", "--evaluations", "1", "--evaluation-draws", "1"]


@pytest.fixture
def small_disk(tmp_path):
    """Mounts disks of a given size in kB, read-only if asked to."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    mounted = []

    def mount(size, read_only=False):
        folder = tmp_path / f"disk{len(mounted)}"
        folder.mkdir()
        options = f"size={size}k" + (",ro" if read_only else "")
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], check=False)
        if done.returncode:
            pytest.skip("mounting is not allowed here")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", folder], check=True)


def test_full_disk_keeps_what_is_there(small_disk):
    disk = small_disk(64)
    write_atomically(disk / "file", "old")
    with pytest.raises(OSError, match="No space left") as error:
        write_atomically(disk / "file", "new" * 100_000)
    assert error.value.errno == errno.ENOSPC
    assert (disk / "file").read_text() == "old"
    assert [path.name for path in disk.iterdir()] == ["file"]


def test_read_only_disk_is_refused_before_anything_runs(small_disk):
    disk = small_disk(64, read_only=True)
    job = Job(FAKE, FakeConfig(0))
    assert not job.folder(disk).finished
    assert not job.busy(disk)
    for attempt in (lambda: job.run(disk), lambda: sweep([job], disk)):
        with pytest.raises(UserError, match=r"^cannot create .*: Read-only file system$"):
            attempt()


def test_full_disk_gives_one_line(small_disk, capsys):
    from pisces.cli import main

    disk = small_disk(1024)
    assert main(["train", "jumping", "--method", "randconv", *TINY, "--out", str(disk)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("pisces: the disk cannot be written to")
    assert error.count("\n") == 1
    assert not list(disk.rglob("result.json"))
    assert list(disk.rglob("config.json"))


def test_read_only_disk_gives_one_line(small_disk, capsys):
    from pisces.cli import main

    disk = small_disk(1024, read_only=True)
    for command in ("train", "sweep"):
        assert main([command, "jumping", *TINY, "--out", str(disk)]) == 2
        error = capsys.readouterr().err
        assert error.startswith("pisces: cannot create")
        assert error.count("\n") == 1
