"""The report's diagnosis agrees with `diagnose` on the agent itself, and says so in plain words."""

import base64
import csv
import json
import re
import zlib

import pytest

from pisces.cli import main
from pisces.envs.jumping import JumpingTask, optimal_actions, optimal_frames, stack_frames
from pisces.experiments import load
from pisces.experiments.jumping.report.diagnosis import RunDiagnosis, diagnose_run, diagnosis_markdown
from pisces.experiments.registry import all_experiments
from pisces.metrics import Diagnosis, EnvironmentDiagnosis, diagnose
from pisces.reports.results import read_runs
from pisces.trajectories import Trajectory


def diagnosis_of(*entries, solved=True):
    """A diagnosis of tasks with the given alignment, regret, unmatched share and bound."""
    rows = [EnvironmentDiagnosis(f"task {n}", 10, *entry, None) for n, entry in enumerate(entries)]
    tasks = tuple(JumpingTask(20 + n, 10) for n in range(len(rows)))
    return RunDiagnosis(Diagnosis(tuple(rows), 0.5), tasks, (solved,) * len(rows))


def embed_frames(agent, stored):
    return agent.embed(stored.transpose(0, 3, 1, 2) * 0.5)


def test_report_shows_what_diagnose_finds(tmp_path, write_run):
    folder = write_run(tmp_path / "runs", "randconv+pse", checkpoint=True, grid="narrow")
    words = ["report", str(tmp_path / "runs"), "--out", str(tmp_path / "out"), "--projection", "pca"]
    assert main(words) == 0
    (run,) = read_runs([tmp_path / "runs"], all_experiments()).runs
    one = diagnose_run(run)
    trained = [JumpingTask(**task) for task in run.result["train_tasks"]]
    assert not set(one.tasks) & set(trained)
    chosen = [one.tasks.index(JumpingTask(21, 11)), one.tasks.index(JumpingTask(45, 19))]
    agent = load(folder)
    known, new = (
        [Trajectory(stack_frames(optimal_frames(task)), optimal_actions(task)) for task in tasks]
        for tasks in (trained, [one.tasks[place] for place in chosen])
    )
    expected = diagnose(known, new, lambda stored: embed_frames(agent, stored))
    for place, entry in zip(chosen, expected.environments, strict=True):
        found = one.found.environments[place]
        assert found.alignment == pytest.approx(entry.alignment, abs=0.04)  # ties between equal embeddings
        assert (found.unmatched_share, found.transfer_bound) == (entry.unmatched_share, entry.transfer_bound)
    # Behind the narrow grid's last obstacle, no training task waits as long with its jump.
    assert expected.environments[0].transfer_bound == pytest.approx(0)
    assert expected.environments[1].transfer_bound > 100
    (text,) = re.findall(r'id="data">(.*?)</script>', (tmp_path / "out" / "report.html").read_text(), re.DOTALL)
    (packed,) = json.loads(zlib.decompress(base64.b64decode(text)))["jumping"]["diagnoses"]
    assert packed["summary"] == one.summary()
    assert [task["solved"] for task in packed["tasks"]] == list(one.solved)
    assert one.summary() in (tmp_path / "out" / "tables" / "diagnosis.md").read_text()
    with (tmp_path / "out" / "tables" / "diagnosis.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["obstacle_position"]) for row in rows] == [task.obstacle_position for task in one.tasks]
    assert {row["run"] for row in rows} == {"randconv+pse, narrow, seed 0"}


def test_the_summary_names_the_worst_task_and_the_guarantees():
    well = diagnosis_of((1.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0))
    assert well.worst_task() == ""
    assert well.summary() == (
        "In 100.0 % of the states of 2 unseen tasks, the nearest training state in the embedding is also nearest in "
        "the metric. The policy that the metric transfers, not this agent, is guaranteed to solve 2 of the 2 "
        "(Theorem 1). This agent solves 2."
    )
    badly = diagnosis_of((0.8, 0.1, 0.0, 0.0), (0.4, 0.9, 0.3, 250.0), (0.6, 0.2, 0.0, 40.0), solved=False)
    assert badly.largest_bound == 250
    assert "The worst task is the task 1 (40.0 %); the agent fails it." in badly.summary()
    assert "10.0 % have no matching training state." in badly.summary()
    assert badly.summary().endswith(
        "is guaranteed to solve 1 of the 3 (Theorem 1; its bound is vacuous for 1). This agent solves 0."
    )


def test_markdown_escapes_the_text_of_runs():
    table = diagnosis_markdown([("<img src=x> | evil", diagnosis_of((1.0, 0.0, 0.0, 0.0)))])
    assert "&lt;img src=x&gt; \\| evil" in table
