"""Searches whose processes are killed at any moment."""

import sqlite3

import pytest
from fake_experiment import FAKE
from hypothesis import given, settings
from hypothesis import strategies as st

from pisces.errors import UserError
from pisces.runs import study as module
from pisces.runs.search_space import Range
from pisces.runs.tuning import Study, TuningConfig

TRIALS = 8
SPACE = (Range("x", 0, 1), Range("y", 1, 100, whole=True), Range("z", 1e-4, 1, log=True))
CONFIG = TuningConfig(FAKE, "fake", "smoke", (0,), SPACE, {}, {}, pruner="median")


class Killed(BaseException):
    """Ends everything, as a kill does: nobody catches it."""


class Clock:
    """Kills at the given ticks."""

    def __init__(self, kills=()):
        self.kills, self.now = set(kills), 0

    def tick(self):
        self.now += 1
        if self.now in self.kills:
            raise Killed


def score_of(clock):
    def score(config, values, runs, report):
        quality = values["x"] - abs(values["y"] - 40) / 100
        for step in range(1, 4):
            clock.tick()
            report(step, quality * step)
            clock.tick()
        return quality * 3

    return score


def killing(clock, function):
    def wrapped(*arguments, **options):
        clock.tick()
        value = function(*arguments, **options)
        clock.tick()
        return value

    return wrapped


STORAGE_CALLS = ("create_new_trial", "set_trial_param", "set_trial_state_values", "set_trial_user_attr")


def search(folder, kills=()):
    """Runs a study that is killed at some moments and started again; returns tuning.json and the moments there were."""
    clock = Clock(kills)
    while True:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "STARTUP_TRIALS", 3)
            patch.setattr(module, "score_settings", score_of(clock))
            try:
                study = Study(CONFIG, folder)
                storage = study._study._storage
                for name in STORAGE_CALLS:
                    patch.setattr(storage, name, killing(clock, getattr(storage, name)))
                study.mark_orphaned_trials()
                study.work(TRIALS)
                return study.folder.file("tuning.json").read_bytes(), clock.now
            except Killed:
                continue


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return search(tmp_path_factory.mktemp("undisturbed"))


def test_some_trials_are_pruned(undisturbed):
    assert undisturbed[0].count(b'"pruned"') > 0
    assert undisturbed[0].count(b'"complete"') > 3


@settings(max_examples=3)
@given(st.data())
def test_a_killed_study_has_the_trials_of_an_undisturbed_one(tmp_path_factory, undisturbed, data):
    expected, moments = undisturbed
    kills = data.draw(st.lists(st.integers(1, moments), min_size=6, max_size=6, unique=True))
    assert search(tmp_path_factory.mktemp("killed"), kills)[0] == expected


def test_a_truncated_database_gives_one_line(tmp_path):
    search(tmp_path)
    (path,) = tmp_path.rglob("study.db")
    whole = path.read_bytes()
    for content in (
        whole[: len(whole) // 2],
        whole[:5000],
        b"no database" * 100,
        whole[:100] + bytes(len(whole) - 100),
    ):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"study\.db' is damaged; delete it") as caught:
            Study(CONFIG, tmp_path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE version_info RENAME COLUMN schema_version TO other",
        "UPDATE trial_values SET value = value + 1 WHERE trial_id = 2",
    ],
    ids=["other columns", "a changed score"],
)
def test_a_changed_database_is_noticed(tmp_path, change):
    search(tmp_path)
    (path,) = tmp_path.rglob("study.db")
    with sqlite3.connect(path) as connection:
        connection.execute(change)
    connection.close()
    with pytest.raises(UserError, match=r"study\.db' is damaged"):
        Study(CONFIG, tmp_path)
