import json

import numpy as np
import pytest

from pisces.agents import load
from pisces.cli import main
from pisces.envs.jumping import JumpingTask, render_halves, stack_frames
from pisces.errors import UserError
from pisces.experiments import lqr
from pisces.experiments.evaluation import evaluate_run, parse_task
from pisces.experiments.jumping_data import TaskEvaluator
from pisces.experiments.lqr_run import run as run_lqr


@pytest.fixture(scope="module")
def folder(tmp_path_factory, write_run):
    return write_run(tmp_path_factory.mktemp("runs"), "randconv+pse", checkpoint=True)


def test_tasks_are_judged_by_the_policy_itself(folder):
    found = evaluate_run(folder, ["25,10", "46,3"])
    policy = load(folder)
    for row, task in zip(found.values["tasks"], (JumpingTask(25, 10), JumpingTask(46, 3)), strict=True):
        steps = np.arange(task.steps_to_obstacle)
        frames = stack_frames(render_halves(task, steps, np.zeros_like(steps)))
        actions = [policy.act(frame.transpose(2, 0, 1) * 0.5) for frame in frames]
        assert row["jump"] == (actions.index(1) if 1 in actions else None)
        assert row["solved"] == (row["jump"] == task.jump_step)
    assert [row[3] for row in found.rows] == ["training", "held out"]


def test_all_tasks_by_default(folder):
    found = evaluate_run(folder)
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
    found = evaluate_run(folder, draws=3)
    assert [row[:4] for row in found.rows] == [
        ("white", "training", "18", "3"),
        ("white", "validation", "54", "3"),
        ("white", "held out", "214", "3"),
        ("white", "unseen, both", "268", "3"),
    ]
    assert evaluate_run(folder, draws=3) == found
    shares = found.values["solved_percent"]
    assert shares == {
        name: [*evaluate_run(folder, draws=2).values["solved_percent"][name], last]
        for name, (*_, last) in shares.items()
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
    evaluate_run(folder, draws=2)
    assert len(seen) > 1
    assert len({tuple(kernel.flatten().tolist()) for kernel in seen}) == len(seen)


def test_draws_of_a_run_without_random_evaluations_are_refused(tmp_path, write_run):
    plain = write_run(tmp_path, "pse", checkpoint=True)
    with pytest.raises(UserError, match="expected a run with RandConv"):
        evaluate_run(plain, draws=2)


def test_command_prints_a_table_and_writes_numbers(folder, tmp_path, capsys):
    assert main(["evaluate", str(folder), "--tasks", "30,10", "--out", str(tmp_path / "out")]) == 0
    assert "right jump" in capsys.readouterr().out
    (row,) = json.loads((tmp_path / "out" / "evaluation.json").read_text())["tasks"]
    assert (row["obstacle"], row["optimal_jump"]) == (30, 16)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tasks", "25"], "expected a task as obstacle,floor"),
        (["--tasks", "25,10,rde"], "did you mean 'red'"),
        (["--tasks", "99,10"], "obstacle_position to be a whole number in 14..47, got 99"),
        (["--tasks", "25,10,red"], "expected tasks of the run's colours, white"),
        (["--episodes", "3"], "got --episodes"),
        (["--draws", "0"], "expected at least 1 draw, got 0"),
        (["--draws", "2", "--tasks", "25,10"], "got both"),
        (["--episodes", "0"], "expected at least 1 episode, got 0"),
    ],
)
def test_bad_arguments_are_explained(folder, arguments, message, capsys):
    assert main(["evaluate", str(folder), *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_run_without_checkpoint_is_refused(tmp_path, write_run, capsys):
    assert main(["evaluate", str(write_run(tmp_path))]) == 2
    assert "expected a run with its checkpoint in" in capsys.readouterr().err
    with pytest.raises(UserError, match=r"run folder with a config\.json"):
        evaluate_run(tmp_path)


def test_linear_runs_meet_fresh_environments(tmp_path):
    config = lqr.make_config("psm", 60, (3,), "smoke", changes={"max_steps": 5})
    folder = run_lqr(config, tmp_path)
    found = evaluate_run(folder.path, episodes=3)
    errors = found.values["errors"]
    assert errors[0] == pytest.approx(folder.read_json("result.json")["error"], rel=1e-4)
    assert len(set(errors)) == 3
    with pytest.raises(UserError, match="for a jumping run only"):
        evaluate_run(folder.path, ["25,10"])


def test_tasks_are_written_as_numbers():
    assert parse_task("45, 20,red") == JumpingTask(45, 20, "red")
