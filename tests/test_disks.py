"""Disks that are full or can't be written to."""

import os
import subprocess

import pytest

from pisces.cli import main

TINY = ["--preset", "smoke", "--set", "epochs=1", "evaluations=1", "evaluation_draws=1"]


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


def test_full_disk_gives_one_line(small_disk, capsys):
    disk = small_disk(1024)
    assert main(["train", "jumping", "--method", "randconv", *TINY, "--out", str(disk)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("pisces: expected a disk")
    assert error.count("\n") == 1
    assert not list(disk.rglob("result.json"))
    assert list(disk.rglob("config.json"))


def test_read_only_disk_gives_one_line(small_disk, capsys):
    disk = small_disk(1024, read_only=True)
    for command in ("train", "sweep"):
        assert main([command, "jumping", *TINY, "--out", str(disk)]) == 2
        error = capsys.readouterr().err
        assert error.startswith("pisces: expected")
        assert error.count("\n") == 1
