import json

import numpy as np
import pytest

from pisces.cli import main
from pisces.envs.jumping import JumpingTask, render_frames, stack_frames
from pisces.errors import UserError
from pisces.experiments import load
from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.jumping.data import TaskEvaluator
from pisces.experiments.jumping.evaluation import parse_task
from pisces.experiments.lqr.config import LQRConfig
from pisces.experiments.lqr.experiment import LQR
from pisces.experiments.registry import evaluate_run
from pisces.runs.job import Job
from pisces.runs.store import RunFolder


def evaluate(folder, tasks=None, episodes=None, draws=None):
    return evaluate_run(folder, tasks=tasks, episodes=episodes, draws=draws)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, write_run):
    return write_run(tmp_path_factory.mktemp("runs"), "randconv+pse", checkpoint=True)


def test_tasks_are_judged_by_the_policy_itself(folder):
    found = evaluate(folder, ["25,10", "46,3"])
    policy = load(folder)
    for row, task in zip(found.values["tasks"], (JumpingTask(25, 10), JumpingTask(46, 3)), strict=True):
        steps = np.arange(task.steps_to_obstacle)
        frames = stack_frames(render_frames(task, steps, np.zeros_like(steps)))
        actions = [policy.act(frame.transpose(2, 0, 1) * 0.5) for frame in frames]
        assert row["jump"] == (actions.index(1) if 1 in actions else None)
        assert row["solved"] == (row["jump"] == task.jump_step)
    assert [row[3] for row in found.rows] == ["training", "held out"]


def test_all_tasks_by_default(folder):
    found = evaluate(folder)
    assert [row[:3] for row in found.rows] == [
        ("white", "training", "18"),
        ("white", "validation", "54"),
        ("white", "held out", "214"),
        ("white", "unseen, both", "268"),
    ]
    assert len(found.values["tasks"]) == 286
    solved = [int(row[3]) for row in found.rows]
    assert solved[1] + solved[2] == solved[3]


def test_draws_tell_how_much_the_kernels_matter(folder):
    found = evaluate(folder, draws=2)
    assert [row[:4] for row in found.rows] == [
        ("white", "training", "18", "2"),
        ("white", "validation", "54", "2"),
        ("white", "held out", "214", "2"),
        ("white", "unseen, both", "268", "2"),
    ]
    assert evaluate(folder, draws=2) == found
    shares = found.values["solved_percent"]
    assert shares == {
        name: [*evaluate(folder, draws=1).values["solved_percent"][name], last] for name, (*_, last) in shares.items()
    }
    for row, values in zip(found.rows, shares.values(), strict=True):
        assert row[4:] == tuple(f"{number:.1f}" for number in (np.mean(values), min(values), max(values)))


def test_draws_use_kernels_of_their_own(folder, monkeypatch):
    seen = []
    greedy_actions = TaskEvaluator.greedy_actions

    def record(evaluator, policy):
        seen.extend(kernel for kernel in policy.evaluation_kernels() if kernel is not None)
        return greedy_actions(evaluator, policy)

    monkeypatch.setattr(TaskEvaluator, "greedy_actions", record)
    evaluate(folder, draws=2)
    assert len(seen) > 1
    assert len({tuple(kernel.flatten().tolist()) for kernel in seen}) == len(seen)


def test_draws_of_a_run_without_random_evaluations_are_refused(tmp_path, write_run):
    plain = write_run(tmp_path, "pse", checkpoint=True)
    with pytest.raises(UserError, match="--draws requires a run with RandConv"):
        evaluate(plain, draws=2)


def test_command_prints_a_table_and_writes_numbers(folder, tmp_path, capsys):
    assert main(["evaluate", str(folder), "--tasks", "30,10", "--out", str(tmp_path / "out")]) == 0
    assert "right jump" in capsys.readouterr().out
    (row,) = json.loads((tmp_path / "out" / "evaluation.json").read_text())["tasks"]
    assert (row["obstacle"], row["optimal_jump"]) == (30, 16)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tasks", "25"], "a task is written as obstacle,floor or obstacle,floor,color, got '25'"),
        (["--tasks", "25,10,rde"], "did you mean 'red'"),
        (["--tasks", "99,10"], "obstacle_position to be a whole number in 14..47, got 99"),
        (["--tasks", "25,10,red"], "the run was trained with white obstacles, got a red task"),
        (["--episodes", "3"], "--episodes does not apply to runs of jumping, which take --tasks and --draws"),
        (["--draws", "0"], "--draws must be at least 1, got 0"),
        (["--draws", "2", "--tasks", "25,10"], "--tasks and --draws exclude each other"),
    ],
)
def test_bad_arguments_are_explained(folder, arguments, message, capsys):
    assert main(["evaluate", str(folder), *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_an_output_folder_that_is_a_file_is_refused_before_evaluating(folder, tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    assert main(["evaluate", str(folder), "--out", str(tmp_path / "file")]) == 2
    assert "is a file" in capsys.readouterr().err


def test_a_run_without_checkpoint_is_refused(tmp_path, write_run, capsys):
    assert main(["evaluate", str(write_run(tmp_path))]) == 2
    assert "committed results have none; train the run again" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(UserError, match=r"config\.json' is missing or damaged"):
        evaluate(tmp_path)


def test_what_learned_nothing_is_not_evaluated(tmp_path):
    config = JumpingConfig.make("bisimulation-transfer", "paper")
    folder = RunFolder.of(tmp_path, config).create(config)
    with pytest.raises(UserError, match="bisimulation-transfer learns nothing"):
        evaluate(folder.path)


def test_linear_runs_meet_fresh_environments(tmp_path):
    config = LQRConfig.make("psm", "smoke", seed=3, distractors=60, changes={"max_steps": 5})
    folder = Job(LQR(), config).run(tmp_path)
    found = evaluate(folder.path, episodes=3)
    errors = found.values["errors"]
    assert errors[0] == pytest.approx(folder.read_result()["error"], rel=1e-4)
    assert len(set(errors)) == 3
    with pytest.raises(UserError, match="--tasks does not apply to runs of lqr, which take --episodes"):
        evaluate(folder.path, tasks=["25,10"])
    with pytest.raises(UserError, match="--episodes must be at least 1, got 0"):
        evaluate(folder.path, episodes=0)


def test_runs_of_several_seeds_name_the_command_that_keeps_an_agent(tmp_path):
    config = LQRConfig.make("psm", "smoke", seed=3, n_seeds=2, distractors=60)
    folder = RunFolder.of(tmp_path, config).create(config)
    with pytest.raises(
        UserError, match="runs of several seeds keep no checkpoint; train one: pisces train lqr"
    ) as error:
        evaluate(folder.path)
    assert "--n-seeds" not in str(error.value)


def test_tasks_are_written_as_numbers():
    assert parse_task("45, 20,red") == JumpingTask(45, 20, "red")
