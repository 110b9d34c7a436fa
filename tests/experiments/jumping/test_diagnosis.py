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
from pisces.experiments.jumping.report.diagnosis import RunDiagnosis, diagnose_run, diagnosis_markdown, packed_diagnosis
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


def test_the_summary_tells_of_this_agent_alone():
    well = diagnosis_of((1.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0))
    assert well.worst_task() == ""
    assert well.summary() == (
        "The agent solves 2 of 2 unseen tasks. In 100.0 % of all states, the nearest training state in the embedding "
        "is also nearest in the metric."
    )
    badly = diagnosis_of((0.8, 0.1, 0.0, 0.0), (0.4, 0.9, 0.3, 250.0), (0.6, 0.2, 0.0, 40.0), solved=False)
    assert badly.largest_bound == 250
    assert badly.summary().startswith("The agent solves 0 of 3 unseen tasks.")
    assert badly.summary().endswith("The embedding is worst for this task: task 1 (40.0 %).")
    assert "guarantee" not in badly.summary()


def test_failing_states_are_where_the_agent_leaves_the_optimal_episode(tmp_path, write_run):
    write_run(tmp_path, "randconv+pse", share=0.5, checkpoint=True)
    (run,) = read_runs([tmp_path], all_experiments()).runs
    one = diagnose_run(run)
    assert 0 < sum(one.solved) < len(one.tasks)
    for task, solved, entry in zip(one.tasks, one.solved, one.found.environments, strict=True):
        # The agent of these runs never jumps where it fails.
        assert [state.step for state in entry.failures] == ([] if solved else [task.jump_step])
    packed = packed_diagnosis("run", one)["tasks"]
    failure = next(task["failure"] for task in packed if task["failure"])
    assert (failure["expert"], failure["agent"]) == ("jump", "move right")
    # The nearest state by the metric is a jump too, at distance zero.
    assert (failure["nearest"]["action"], failure["nearest"]["distance"]) == ("jump", 0.0)
    trained = {(task["obstacle_position"], task["floor_height"]) for task in run.result["train_tasks"]}
    assert all(
        (failure[name]["task"]["position"], failure[name]["task"]["height"]) in trained
        for name in ("neighbor", "nearest")
    )


def test_markdown_escapes_the_text_of_runs():
    table = diagnosis_markdown([("<img src=x> | evil", diagnosis_of((1.0, 0.0, 0.0, 0.0)))])
    assert "&lt;img src=x&gt; \\| evil" in table
