import json
import os
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

from pisces.errors import UserError
from pisces.files import write_atomically
from pisces.runs.lock import LockedError
from pisces.runs.store import SCHEMA, RunFolder, config_hash, machine_info, non_defaults


@dataclass(frozen=True)
class Inner:
    size: int = 3
    name: str = "a"


@dataclass(frozen=True)
class Config:
    seed: int
    inner: Inner = field(default_factory=Inner)
    threads: int = 1

    experiment = "jumping"
    method = "pse"

    def as_dict(self):
        return {"experiment": self.experiment, "schema": SCHEMA, "method": self.method, **asdict(self)}

    def identity(self):
        return non_defaults(self)


def made(root, config):
    return RunFolder.of(root, config).create(config)


def test_folder_is_named_by_the_config(tmp_path):
    folder = made(tmp_path, Config(1))
    assert folder.path == tmp_path / "jumping" / "pse" / config_hash(Config(1))
    assert folder.read_json("config.json") == Config(1).as_dict()
    assert made(tmp_path, Config(1)) == folder
    assert made(tmp_path, Config(1, Inner(4))) != folder


def test_a_later_setting_keeps_the_folder(tmp_path):
    folder = made(tmp_path, Config(1))
    older = {"schema": SCHEMA, "seed": 1, "inner": {"size": 3}}
    folder.file("config.json").write_text(json.dumps(older))
    assert made(tmp_path, Config(1)) == folder
    folder.file("config.json").write_text(json.dumps({**older, "inner": {"size": 4}}))
    with pytest.raises(ValueError, match="another config"):
        made(tmp_path, Config(1))
    assert json.loads(folder.file("config.json").read_text())["inner"]["size"] == 4


def test_output_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    for root in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ValueError, match="is or lies in a file"):
            made(root, Config(1))
    assert (tmp_path / "file").read_text() == "mine"


def test_output_that_cannot_be_made_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"cannot create .*: File name too long"):
        made(tmp_path / ("long" * 100), Config(1))


def test_damaged_metrics_are_named(tmp_path):
    folder = made(tmp_path, Config(1))
    folder.file("metrics.jsonl").write_bytes(bytes(50) + b"\n")
    with pytest.raises(ValueError, match=r"metrics\.jsonl.*damaged"):
        folder.read_metrics()


def test_damaged_config_is_named(tmp_path):
    folder = made(tmp_path, Config(1))
    for content in ("{", "[]"):
        folder.file("config.json").write_text(content)
        with pytest.raises(ValueError, match=r"config\.json"):
            made(tmp_path, Config(1))


def test_metrics_skip_a_line_that_was_cut_off(tmp_path):
    folder = made(tmp_path, Config(1))
    assert folder.read_metrics() == []
    folder.append_metrics({"iteration": 1})
    with folder.file("metrics.jsonl").open("a") as file:
        file.write('{"iterat')
    assert folder.read_metrics() == [{"iteration": 1}]
    folder.keep_metrics("iteration", 1)
    assert folder.file("metrics.jsonl").read_text() == '{"iteration": 1}\n'
    folder.keep_metrics("iteration", 0)
    assert folder.read_metrics() == []


@pytest.mark.parametrize("place", range(0, 60, 3))
def test_damaged_or_shortened_metrics_are_never_a_different_curve(place, tmp_path):
    folder = made(tmp_path, Config(1))
    rows = [{"iteration": step, "loss": step / 7} for step in (1, 2, 3)]
    for row in rows:
        folder.append_metrics(row)
    whole = folder.file("metrics.jsonl").read_bytes()
    for damaged in (whole[:place], whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]):
        folder.file("metrics.jsonl").write_bytes(damaged)
        with pytest.raises(UserError, match=r"metrics\.jsonl' is damaged; delete the folder to start the run over$"):
            folder.keep_metrics("iteration", 3)
    folder.file("metrics.jsonl").unlink()
    with pytest.raises(UserError, match="is damaged"):
        folder.read_metrics()
    folder.file("metrics.jsonl").write_bytes(whole)
    assert folder.read_metrics() == rows


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\n", b"[1]\n", b'{"loss": 1}\n', b'{"iteration": "x"}\n', b"[" * 10**5 + b"\n"]
)
def test_metrics_of_earlier_versions_without_checksum_are_checked_by_content(content, tmp_path):
    folder = made(tmp_path, Config(1))
    folder.file("metrics.jsonl").write_bytes(content)
    with pytest.raises(UserError, match="is damaged; delete the folder"):
        folder.keep_metrics("iteration", 3)
    folder.file("metrics.jsonl").write_bytes(b'{"iteration": 1}\n{"iter')
    folder.keep_metrics("iteration", 3)
    assert folder.read_metrics() == [{"iteration": 1}]


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_dropping_metrics_can_be_interrupted_at_any_write(kept, tmp_path, monkeypatch):
    folder = made(tmp_path, Config(1))
    for step in (1, 2):
        folder.append_metrics({"iteration": step})
    replace, left = Path.replace, iter(range(10))

    def stop(path, target):
        if next(left) == 1:
            raise KeyboardInterrupt
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        folder.keep_metrics("iteration", kept)
    monkeypatch.undo()
    assert folder.read_metrics() == [{"iteration": step} for step in range(1, kept + 1)]
    folder.keep_metrics("iteration", kept)
    folder.append_metrics({"iteration": 9})
    assert [row["iteration"] for row in folder.read_metrics()] == [*range(1, kept + 1), 9]


def test_results_appear_whole(tmp_path):
    folder = made(tmp_path, Config(1))
    assert not folder.finished
    folder.write_result(Config(1), {"a": 1})
    assert folder.finished
    assert folder.read_result() == {"experiment": "jumping", "schema": 2, "config": Config(1).as_dict(), "a": 1}
    write_atomically(tmp_path / "x", "text")
    assert (tmp_path / "x").read_text() == "text"
    assert not list(tmp_path.rglob(".*"))


def test_machine_is_described():
    assert {"pisces", "python", "processor", "cores", "versions"} <= set(machine_info())


def test_an_empty_result_is_none(tmp_path):
    folder = RunFolder(tmp_path)
    folder.file("result.json").touch()
    assert not folder.finished
    folder.write_result(Config(1), {"x": 1})
    assert folder.finished


def test_a_run_is_finished_once_and_by_one_process(tmp_path, monkeypatch):
    folder = made(tmp_path, Config(1))
    calls = []

    def work():
        calls.append(folder.busy)
        folder.write_result(Config(1), {"value": len(calls)})

    with folder.lock(), pytest.raises(LockedError):
        folder.finish_by(work)
    assert folder.finish_by(work)
    assert not folder.finish_by(work)
    assert calls == [True]
    assert folder.read_result()["value"] == 1
    # Another process finishes it after the first look.
    looks = iter([False, True])
    monkeypatch.setattr(RunFolder, "finished", property(lambda self: next(looks)))
    folder.finish_by(work)
    assert calls == [True]


def test_questions_create_nothing(tmp_path):
    folder = RunFolder.of(tmp_path / "runs", Config(1))
    assert not folder.finished
    assert not folder.busy
    assert not list(tmp_path.iterdir())
    too_long = RunFolder.of(tmp_path / ("long" * 100), Config(1))
    assert not too_long.finished
    assert not too_long.busy


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (None, r"earlier version \(schema 1\); run: python studies/migrate_results.py <folder of runs>$"),
        (1, r"earlier version \(schema 1\)"),
        (3, r"newer version \(schema 3\); update pisces$"),
    ],
)
def test_files_of_other_versions_are_refused(tmp_path, schema, message):
    folder = made(tmp_path, Config(1))
    content = json.dumps({"seed": 1} | ({} if schema is None else {"schema": schema}))
    for name, read in (("config.json", folder.read_config), ("result.json", folder.read_result)):
        folder.file(name).write_text(content)
        with pytest.raises(UserError, match=rf"{folder.file(name)} was written by .*{message}"):
            read()
    with pytest.raises(UserError, match="was written by"):
        made(tmp_path, Config(1))
    assert folder.file("config.json").read_text() == content


def test_a_result_without_json_values_is_refused(tmp_path):
    folder = made(tmp_path, Config(1))
    with pytest.raises(UserError, match="cannot be stored as JSON"):
        folder.write_result(Config(1), {"loss": float("nan")})
    assert not folder.finished


def test_equal_process_ids_do_not_collide(tmp_path, monkeypatch):
    """As in two containers that share a disk: one write happens in the middle of the other."""
    monkeypatch.setattr(os, "getpid", lambda: 7)
    path, sync, written = tmp_path / "file", os.fsync, []

    def sync_during_another_write(descriptor):
        if not written:
            written.append("second")
            write_atomically(path, "second")
            assert path.read_text() == "second"
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", sync_during_another_write)
    write_atomically(path, "first")
    assert written
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, "old")

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_writing_neither_follows_links_nor_ignores_the_umask(tmp_path, monkeypatch):
    name = uuid.UUID(int=1)
    monkeypatch.setattr(uuid, "uuid4", lambda: name)
    victim = tmp_path / "victim"
    (tmp_path / f".tmp-{name.hex}").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_atomically(tmp_path / "file", "text")
    assert not victim.exists()
    (tmp_path / f".tmp-{name.hex}").unlink()
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "file", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
