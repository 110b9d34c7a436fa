import pickle

import pytest
from fake_experiment import FAKE, FakeConfig

from pisces.runs.job import Job
from pisces.runs.lock import LockedError
from pisces.runs.store import CHECKPOINT


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("fake_experiment.ITERATION_SECONDS", 0)


def starts(folder):
    return len(folder.file("starts").read_text())


def test_requirements_come_first_and_are_heard(tmp_path):
    job, heard = Job(FAKE, FakeConfig(1, needs=7, iterations=2), device="meta"), []

    def hear(progress):
        heard.append((progress.requirement, progress.iteration, progress.total))

    folder = job.run(tmp_path, [hear])
    needed = Job(FAKE, FakeConfig(7)).folder(tmp_path)
    first = FakeConfig(7).label
    assert heard == [(first, 1, 3), (first, 2, 3), (first, 3, 3), ("", 1, 2), ("", 2, 2)]
    assert needed.finished
    assert folder.finished
    assert folder == job.folder(tmp_path)
    assert folder.read_json("run.json")["device"] == "meta"


def test_finished_runs_are_not_run_again(tmp_path):
    first, second = Job(FAKE, FakeConfig(1, needs=7)), Job(FAKE, FakeConfig(2, needs=7))
    assert first.complete(tmp_path)
    assert not first.complete(tmp_path)
    second.run(tmp_path)
    assert starts(first.folder(tmp_path)) == starts(Job(FAKE, FakeConfig(7)).folder(tmp_path)) == 1


def test_a_requirement_without_its_checkpoint_is_run_again_in_a_folder_of_its_own(tmp_path):
    needed = Job(FAKE, FakeConfig(7)).run(tmp_path)
    needed.file(CHECKPOINT).unlink()  # as in committed results
    before = {path: path.read_bytes() for path in needed.path.iterdir()}
    for seed in (1, 2):
        assert Job(FAKE, FakeConfig(seed, needs=7)).run(tmp_path).finished
    again = needed.with_agent
    assert again.path.parent == needed.path
    assert again.with_agent == again
    assert again.read_result() == needed.read_result()
    assert starts(again) == 1
    assert {path: path.read_bytes() for path in needed.path.iterdir() if path != again.path} == before
    with again.lock():
        assert Job(FAKE, FakeConfig(3, needs=7)).busy(tmp_path)


def test_a_finished_run_does_without_its_requirements(tmp_path):
    job = Job(FAKE, FakeConfig(1, needs=7))
    job.folder(tmp_path).create(job.config).write_result(job.config, {})
    job.run(tmp_path)
    assert not Job(FAKE, FakeConfig(7)).folder(tmp_path).path.exists()


def test_a_run_is_busy_while_its_requirement_is(tmp_path):
    needed, job = Job(FAKE, FakeConfig(7)), Job(FAKE, FakeConfig(1, needs=7))
    assert not job.busy(tmp_path)
    assert not list(tmp_path.iterdir())
    with needed.folder(tmp_path).create(needed.config).lock():
        assert needed.busy(tmp_path)
        assert job.busy(tmp_path)
        with pytest.raises(LockedError):
            job.run(tmp_path)
    with job.folder(tmp_path).create(job.config).lock():
        assert job.busy(tmp_path)
        assert not needed.busy(tmp_path)
    assert not job.busy(tmp_path)


def test_jobs_pickle_with_their_experiment_by_reference():
    job = Job(FAKE, FakeConfig(1))
    copy = pickle.loads(pickle.dumps(job))
    assert copy == job
    assert copy.experiment is FAKE
