"""The report's diagnosis agrees with `diagnose` on the agent itself, and says so in plain words."""

import csv
import json
import re

import numpy as np
import pytest

from pisces.agents import load
from pisces.cli import main
from pisces.envs.jumping import JumpingTask, optimal_actions, optimal_halves, stack_frames
from pisces.metrics import Diagnosis, EnvironmentDiagnosis, diagnose
from pisces.reports.diagnosis import RunDiagnosis, diagnose_run, diagnosis_markdown
from pisces.reports.results import read_runs
from pisces.trajectories import Trajectory


def diagnosis_of(*entries, solved=True):
    """A diagnosis of tasks with the given alignment, regret, unmatched share and bound."""
    rows = [EnvironmentDiagnosis(f"task {n}", 10, *entry, None) for n, entry in enumerate(entries)]
    tasks = tuple(JumpingTask(20 + n, 10) for n in range(len(rows)))
    return RunDiagnosis(Diagnosis(tuple(rows), 0.5), tasks, (solved,) * len(rows))


def embed_frames(agent, halves):
    return np.stack([agent.embed(frame.transpose(2, 0, 1) * 0.5) for frame in halves])


def test_report_shows_what_diagnose_finds(tmp_path, write_run):
    folder = write_run(tmp_path / "runs", "randconv+pse", checkpoint=True, grid="narrow")
    words = ["report", str(tmp_path / "runs"), "--out", str(tmp_path / "out"), "--projection", "pca"]
    assert main(words) == 0
    (run,) = read_runs([tmp_path / "runs"]).runs
    one = diagnose_run(run)
    trained = [JumpingTask(**task) for task in run.result["train_tasks"]]
    assert not set(one.tasks) & set(trained)
    chosen = [one.tasks.index(JumpingTask(21, 11)), one.tasks.index(JumpingTask(45, 19))]
    agent = load(folder)
    known, new = (
        [Trajectory(stack_frames(optimal_halves(task)), optimal_actions(task)) for task in tasks]
        for tasks in (trained, [one.tasks[place] for place in chosen])
    )
    expected = diagnose(known, new, lambda halves: embed_frames(agent, halves))
    for place, entry in zip(chosen, expected.environments, strict=True):
        found = one.found.environments[place]
        assert found.alignment == pytest.approx(entry.alignment, abs=0.04)  # ties between equal embeddings
        assert (found.unmatched_share, found.transfer_bound) == (entry.unmatched_share, entry.transfer_bound)
    # Behind the narrow grid's last obstacle, no training task waits as long with its jump.
    assert expected.environments[0].transfer_bound == pytest.approx(0)
    assert expected.environments[1].transfer_bound > 100
    (text,) = re.findall(r'id="data">(.*?)</script>', (tmp_path / "out" / "report.html").read_text(), re.DOTALL)
    (packed,) = json.loads(text)["diagnoses"]
    assert packed["words"] == one.words()
    assert [task["solved"] for task in packed["tasks"]] == list(one.solved)
    assert one.words() in (tmp_path / "out" / "tables" / "diagnosis.md").read_text()
    with (tmp_path / "out" / "tables" / "diagnosis.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["obstacle_position"]) for row in rows] == [task.obstacle_position for task in one.tasks]
    assert {row["run"] for row in rows} == {"randconv+pse, narrow, seed 0"}


def test_the_words_say_where_it_breaks_and_what_is_certain():
    well = diagnosis_of((1.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0))
    assert well.breaks_most() == ""
    assert well.words() == (
        "100.0 % of the states of 2 unseen tasks lie beside a training state that behaves most alike. "
        "Theorem 1 guarantees that behaviour carries over to 2 of the 2."
    )
    badly = diagnosis_of((0.8, 0.1, 0.0, 0.0), (0.4, 0.9, 0.3, 250.0), (0.6, 0.2, 0.0, 40.0), solved=False)
    assert badly.largest_bound == 250
    assert "It breaks most with the task 1, where 40.0 % do; the agent fails there." in badly.words()
    assert "10.0 % have no training state that behaves alike." in badly.words()
    assert badly.words().endswith("carries over to 1 of the 3, and says nothing of 1.")


def test_markdown_escapes_the_text_of_runs():
    table = diagnosis_markdown([("<img src=x> | evil", diagnosis_of((1.0, 0.0, 0.0, 0.0)))])
    assert "&lt;img src=x&gt; \\| evil" in table
