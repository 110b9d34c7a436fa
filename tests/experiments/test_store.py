import json
from dataclasses import dataclass, field

import pytest

from pisces.experiments.store import LockedError, RunFolder, config_hash, machine_info, non_defaults, write_atomically


@dataclass(frozen=True)
class Inner:
    size: int = 3
    name: str = "a"


@dataclass(frozen=True)
class Config:
    seed: int
    inner: Inner = field(default_factory=Inner)
    threads: int = 1

    def as_dict(self):
        return {"seed": self.seed, "inner": {"size": self.inner.size, "name": self.inner.name}, "threads": self.threads}

    def identity(self):
        return non_defaults(self)


def test_folder_is_named_by_the_config(tmp_path):
    folder = RunFolder.open(tmp_path, "jumping", "pse", Config(1))
    assert folder.path == tmp_path / "jumping" / "pse" / config_hash(Config(1))
    assert folder.read_json("config.json") == Config(1).as_dict()
    assert RunFolder.open(tmp_path, "jumping", "pse", Config(1)) == folder
    assert RunFolder.open(tmp_path, "jumping", "pse", Config(1, Inner(4))) != folder


def test_a_later_setting_keeps_the_folder(tmp_path):
    folder = RunFolder.open(tmp_path, "jumping", "pse", Config(1))
    older = {"seed": 1, "inner": {"size": 3}}
    folder.file("config.json").write_text(json.dumps(older))
    assert RunFolder.open(tmp_path, "jumping", "pse", Config(1)) == folder
    folder.file("config.json").write_text(json.dumps({"seed": 1, "inner": {"size": 4}}))
    with pytest.raises(ValueError, match="another config"):
        RunFolder.open(tmp_path, "jumping", "pse", Config(1))
    assert json.loads(folder.file("config.json").read_text())["inner"]["size"] == 4


def test_output_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    for root in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ValueError, match="is or lies in a file"):
            RunFolder.open(root, "jumping", "pse", Config(1))
    assert (tmp_path / "file").read_text() == "mine"


def test_output_that_cannot_be_made_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"that can be written to, got .*: File name too long"):
        RunFolder.open(tmp_path / ("long" * 100), "jumping", "pse", Config(1))


def test_damaged_metrics_are_named(tmp_path):
    folder = RunFolder.open(tmp_path, "jumping", "pse", Config(1))
    folder.file("metrics.jsonl").write_bytes(bytes(50) + b"\n")
    with pytest.raises(ValueError, match=r"metrics\.jsonl.*damaged"):
        folder.read_metrics()


def test_damaged_config_is_named(tmp_path):
    folder = RunFolder.open(tmp_path, "jumping", "pse", Config(1))
    for content in ("{", "[]"):
        folder.file("config.json").write_text(content)
        with pytest.raises(ValueError, match=r"config\.json"):
            RunFolder.open(tmp_path, "jumping", "pse", Config(1))


def test_metrics_skip_a_line_that_was_cut_off(tmp_path):
    folder = RunFolder.open(tmp_path, "jumping", "pse", Config(1))
    assert folder.read_metrics() == []
    folder.append_metrics({"iteration": 1})
    with folder.file("metrics.jsonl").open("a") as file:
        file.write('{"iterat')
    assert folder.read_metrics() == [{"iteration": 1}]
    folder.keep_metrics([])
    assert folder.read_metrics() == []


def test_results_appear_whole(tmp_path):
    folder = RunFolder.open(tmp_path, "jumping", "pse", Config(1))
    assert not folder.finished
    folder.write_result({"a": 1})
    assert folder.finished
    assert folder.read_json("result.json") == {"a": 1}
    write_atomically(tmp_path / "x", "text")
    assert (tmp_path / "x").read_text() == "text"
    assert not list(tmp_path.rglob(".*"))


def test_machine_is_described():
    assert {"pisces", "python", "processor", "cores", "versions"} <= set(machine_info())


def test_an_empty_result_is_none(tmp_path):
    folder = RunFolder(tmp_path)
    folder.file("result.json").touch()
    assert not folder.finished
    folder.write_result({"x": 1})
    assert folder.finished


def test_a_run_is_finished_once_and_by_one_process(tmp_path, monkeypatch):
    folder = RunFolder.open(tmp_path, "jumping", "pse", Config(1))
    calls = []

    def work():
        calls.append(folder.locked())
        folder.write_result({"value": len(calls)})

    with folder.lock(), pytest.raises(LockedError):
        folder.finish_by(work)
    folder.finish_by(work)
    folder.finish_by(work)
    assert calls == [True]
    assert folder.read_json("result.json") == {"value": 1}
    # Another process finishes it after the first look.
    looks = iter([False, True])
    monkeypatch.setattr(RunFolder, "finished", property(lambda self: next(looks)))
    folder.finish_by(work)
    assert calls == [True]
