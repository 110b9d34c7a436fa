"""Result files that strangers made or that are damaged: one of them costs one line, never the report."""

import json
import os
import random
import threading

import pytest
from hostile import mutate

from pisces.experiments.registry import all_experiments
from pisces.reports.page.explorer import page_data
from pisces.reports.report import file_name, write_report
from pisces.reports.results import read_runs
from pisces.reports.tables import csv_text


def read_within(seconds, *arguments):
    """Reads runs, or fails if that takes too long, as with a pipe that nobody writes to."""
    found = []
    thread = threading.Thread(target=lambda: found.append(read_runs(*arguments)), daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, "reading hangs"
    return found[0]


@pytest.mark.parametrize("seed", range(60))
def test_a_mutated_result_costs_at_most_one_line(seed, tmp_path, write_run):
    rng, experiments = random.Random(seed), all_experiments()
    write_run(tmp_path, seed=0)
    write_run(tmp_path, seed=1, change=lambda result: mutate(result, rng))
    found = read_runs([tmp_path], experiments)
    assert 0 in [run.config.seed for run in found.runs]
    assert len(found.runs) + len(found.skipped) >= 2 or len(found.runs) == 1  # a seed may have become that of the other
    assert all(line.isprintable() and len(line) < 700 for line in found.skipped)
    tables = experiments["jumping"].tables(found.runs)
    assert [table.csv() + table.markdown() for table in tables]
    json.dumps(page_data(found, tables, {}), allow_nan=False)


def test_pipes_are_left_out(tmp_path, write_run):
    write_run(tmp_path, seed=0)
    folder = write_run(tmp_path, seed=1)
    (folder / "run.json").unlink()
    os.mkfifo(folder / "run.json")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "result.json")
    found = read_within(10, [tmp_path], all_experiments())
    assert found.skipped == (f"{tmp_path / 'pipe' / 'result.json'}: not a readable result",)
    thread = threading.Thread(target=lambda: [run.info for run in found.runs], daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.parametrize("info", [{"seconds": 10**400, "pisces": ["x"]}, {"seconds": "x", "pisces": 10**400}])
def test_damaged_information_about_a_run_counts_as_missing(info, tmp_path, write_run):
    folder = write_run(tmp_path)
    (folder / "run.json").write_text(json.dumps(info))
    found = read_runs([tmp_path], all_experiments())
    assert (found.runs[0].seconds, found.versions()) == (None, {})


def test_numbers_whose_statistics_overflow_are_left_out(tmp_path, write_run):
    write_run(tmp_path, seed=0)
    for seed in (1, 2):
        write_run(tmp_path, seed=seed, change=lambda result: result.update(test_solved_percent=1e308))
    found = read_runs([tmp_path], all_experiments())
    assert len(found.runs) == 1
    assert all("test_solved_percent is not a finite number" in line for line in found.skipped)


def test_control_characters_of_paths_are_escaped(tmp_path):
    folder = tmp_path / "a\x1b[2J\nb"
    folder.mkdir()
    (folder / "result.json").write_text("{")
    (line,) = read_runs([tmp_path], all_experiments()).skipped
    assert line == f"{tmp_path}/a\\x1b[2J\\nb/result.json: not a readable result"


@pytest.mark.parametrize("name", ["/../../../pwned/x", "..", "../x.csv", "a/b", "a\x00b", "", "C:\\x", "é" * 300])
def test_file_names_have_no_folders(name, tmp_path):
    safe = file_name(name)
    assert (tmp_path / safe).parent == tmp_path
    assert safe not in ("", ".", "..")
    assert "\\" not in safe
    (tmp_path / safe).touch()


def test_usual_file_names_stay():
    for name in ("table1.csv", "distracting_curves_cpu", "solved_randconv+pse_wide", "lqr"):
        assert file_name(name) == name


def test_reports_write_only_below_their_folder(tmp_path, write_run, monkeypatch):
    """Even if an experiment names a table or a figure by text from a file."""
    from matplotlib.figure import Figure

    from pisces.experiments.experiment import PageSection
    from pisces.experiments.jumping.experiment import Jumping

    write_run(tmp_path / "runs")
    hostile = PageSection(tables={"/../../../pwned/x.csv": "x"}, figures={"../../../pwned": ("caption", Figure())})
    monkeypatch.setattr(Jumping, "page_section", lambda *arguments: hostile)
    monkeypatch.setattr(Jumping, "figures", lambda *arguments: {})
    write_report([tmp_path / "runs"], tmp_path / "deep" / "er" / "out", all_experiments(), projection="none")
    assert {path.name for path in tmp_path.iterdir()} == {"runs", "deep"}
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["er"]
    assert [path.name for path in (tmp_path / "deep" / "er").iterdir()] == ["out"]


def test_formulas_in_csv_files_are_escaped():
    cells = ["=1+1", "+x", "-x", "@x", "\tx", "-1.5", "+2", "x=1", -1.5, "-inf"]
    assert csv_text([cells]).strip().split(",") == [
        *("'=1+1", "'+x", "'-x", "'@x", "'\tx", "-1.5", "+2", "x=1", "-1.5", "-inf")
    ]
