import json
import signal

import gymnasium as gym
import numpy as np
import pytest
import torch

from pisces.agents.imitation.agent import ImitationAgent
from pisces.envs.jumping import JumpingEnv
from pisces.errors import UserError
from pisces.experiments import load
from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.jumping.data import TaskEvaluator
from pisces.experiments.jumping.experiment import Jumping
from pisces.runs.interrupts import interrupt_once
from pisces.runs.job import Job

TINY = {"epochs": 2, "evaluations": 2, "evaluation_draws": 1, "batch_size": 400}


def config_of(method="randconv+pse", **arguments):
    return JumpingConfig.make(method, "smoke", changes=TINY, **arguments)


def run(config, out, listeners=()):
    return Job(Jumping(), config).run(out, listeners)


def stop_at(iteration, error):
    def listener(progress):
        if progress.iteration == iteration:
            raise error

    return listener


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return run(config_of(), tmp_path_factory.mktemp("whole"))


def test_result_says_what_happened(whole):
    result = whole.read_result()
    assert result["config"] == config_of().as_dict()
    assert len(result["tasks"]) == len(result["solved"]) == len(result["actions"]) == 286
    assert len(result["train_tasks"]) == 18
    assert [row["iteration"] for row in result["curve"]] == [3, 6]
    solved = np.array([flag == "1" for flag in result["solved"]])
    train = {(task["obstacle_position"], task["floor_height"]) for task in result["train_tasks"]}
    unseen = np.array([tuple(task[:2]) not in train for task in result["tasks"]])
    assert result["test_solved_percent"] == pytest.approx(100 * solved[unseen].mean())
    assert result["train_solved_percent"] == pytest.approx(100 * solved[~unseen].mean())
    info = whole.read_json("run.json")
    assert info["seconds"] > 0
    assert "seconds" not in json.dumps(result)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("power cut")])
@pytest.mark.parametrize("iteration", [2, 4])
def test_a_stopped_run_goes_on_to_the_same_result(whole, tmp_path, error, iteration):
    with pytest.raises(type(error)):
        run(config_of(), tmp_path, listeners=[stop_at(iteration, error)])
    folder = run(config_of(), tmp_path)
    assert folder.file("result.json").read_bytes() == whole.file("result.json").read_bytes()


def start_config(restarts):
    return JumpingConfig.make("pse-tuned-5", "smoke", changes={**TINY, "evaluations": 1, "restarts": restarts})


def final_weights(folder):
    return torch.cat([parameter.detach().flatten() for parameter in load(folder.path).network.parameters()])


@pytest.mark.parametrize(("scores", "first"), [([30, 10, 20], True), ([10, 30, 20], False)])
def test_the_start_that_solves_most_validation_tasks_is_kept(tmp_path, monkeypatch, scores, first):
    single = final_weights(run(start_config(1), tmp_path / "single"))
    told = iter(scores)
    judge = lambda *_: {"validation_solved_percent": float(next(told, 0))}  # noqa: E731
    monkeypatch.setattr("pisces.experiments.jumping.results.split_percentages", judge)
    folder = run(start_config(3), tmp_path / "three")
    assert [row["iteration"] for row in folder.read_metrics()] == [6, 12, 18]
    assert torch.equal(final_weights(folder), single) == first


def test_with_colors_both_kinds_of_validation_tasks_choose_the_start(tmp_path, monkeypatch):
    config = JumpingConfig.make("pse-tuned-5", "smoke", colors=True, changes={**TINY, "evaluations": 1, "restarts": 2})
    told = iter([("red_", 50), ("green_", 0), ("red_", 40), ("green_", 100)])

    def judge(*_):
        prefix, score = next(told, ("red_", 0))
        return {f"{prefix}validation_solved_percent": float(score)}

    monkeypatch.setattr("pisces.experiments.jumping.results.split_percentages", judge)
    kept = []
    keep_or_drop = ImitationAgent.keep_or_drop
    monkeypatch.setattr(
        ImitationAgent, "keep_or_drop", lambda agent, score: (kept.append(score), keep_or_drop(agent, score))
    )
    run(config, tmp_path)
    assert kept == [25.0, 70.0]


@pytest.mark.parametrize("iteration", [6, 12])
def test_a_stop_inside_an_evaluation_leaves_nothing_out(tmp_path, monkeypatch, iteration):
    whole = run(start_config(2), tmp_path / "whole")
    greedy_actions = TaskEvaluator.greedy_actions

    def stopped(evaluator, agent):
        if agent.iteration == iteration:
            raise KeyboardInterrupt
        return greedy_actions(evaluator, agent)

    with monkeypatch.context() as patch:
        patch.setattr(TaskEvaluator, "greedy_actions", stopped)
        with pytest.raises(KeyboardInterrupt):
            run(start_config(2), tmp_path / "stopped")
    folder = run(start_config(2), tmp_path / "stopped")
    assert folder.file("result.json").read_bytes() == whole.file("result.json").read_bytes()
    assert torch.equal(final_weights(folder), final_weights(whole))


def test_between_two_starts_the_kept_agent_is_loaded(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(start_config(2), tmp_path / "stopped", listeners=[stop_at(6, KeyboardInterrupt())])
    (checkpoint,) = (tmp_path / "stopped").rglob("checkpoint.safetensors")
    policy = load(checkpoint.parent)
    weights = torch.cat([parameter.detach().flatten() for parameter in policy.network.parameters()])
    assert torch.equal(weights, final_weights(run(start_config(1), tmp_path / "single")))


def test_stopped_restarts_go_on_to_the_same_result(tmp_path):
    with pytest.raises(RuntimeError):
        run(start_config(2), tmp_path / "stopped", listeners=[stop_at(8, RuntimeError("power cut"))])
    results = [run(start_config(2), tmp_path / name) for name in ("stopped", "whole")]
    assert results[0].file("result.json").read_bytes() == results[1].file("result.json").read_bytes()
    assert torch.equal(final_weights(results[0]), final_weights(results[1]))


def test_a_finished_run_is_not_run_again(whole):
    seen = []
    before = whole.file("result.json").stat().st_mtime_ns
    run(config_of(), whole.path.parents[2], listeners=[seen.append])
    assert not seen
    assert whole.file("result.json").stat().st_mtime_ns == before


def test_colors_are_judged_apart(tmp_path):
    result = run(config_of("pse", colors=True), tmp_path).read_result()
    assert {"red_test_solved_percent", "green_test_solved_percent"} <= set(result)
    assert len(result["tasks"]) == 572


def test_damaged_checkpoint_is_named_and_kept(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(config_of(), tmp_path, listeners=[stop_at(3, KeyboardInterrupt())])
    (path,) = tmp_path.rglob("checkpoint.safetensors")
    path.write_bytes(b"broken")
    with pytest.raises(ValueError, match="delete it to restart the run"):
        run(config_of(), tmp_path)
    assert path.read_bytes() == b"broken"


def test_trained_agent_loads_and_plays(whole):
    policy = load(whole.path)
    env = gym.wrappers.FrameStackObservation(JumpingEnv(20, 10), 2, padding_type="zero")
    observation, _ = env.reset()
    result = whole.read_result()
    actions = []
    for _ in range(5):
        actions.append(policy.act(observation))
        assert policy.embed(observation[None]).shape == (1, 64)
        observation, *_ = env.step(0)
    task = result["tasks"].index([20, 10, "white"])
    assert "".join(map(str, actions)) == result["actions"][task][:5]


def test_loading_explains_what_is_missing(tmp_path, whole):
    with pytest.raises(UserError, match=r"config\.json' is missing or damaged"):
        load(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UserError, match=r"earlier version .*; run: python studies/migrate_results\.py"):
        load(tmp_path)
    (tmp_path / "config.json").write_bytes(whole.file("config.json").read_bytes())
    with pytest.raises(UserError, match="train the run first"):
        load(tmp_path)
    (tmp_path / "result.json").write_bytes(whole.file("result.json").read_bytes())
    with pytest.raises(UserError, match="committed results have none; train the run again"):
        load(tmp_path)
    with pytest.raises(UserError, match="two stacked frames"):
        load(whole.path).act(np.zeros((60, 60)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colors": True}, "does not fit its config"),
        ({"seed": "x"}, r"config\.json: seed must be an integer, got 'x'"),
        ({"settings": {"embedding_size": 3}}, "does not fit its config"),
        ({"settings": {"network": "rows"}}, r"config\.json: network=rows requires --colors"),
        ({"settings": {"depth": 3}}, r"config\.json: not a config of jumping runs: .*depth"),
    ],
)
def test_a_config_of_another_run_is_explained_in_one_line(tmp_path, whole, change, message):
    (tmp_path / "checkpoint.safetensors").write_bytes(whole.file("checkpoint.safetensors").read_bytes())
    config = whole.read_config()
    merged = {**config, **change, "settings": {**config["settings"], **change.get("settings", {})}}
    (tmp_path / "config.json").write_text(json.dumps(merged))
    with pytest.raises(UserError, match=message) as error:
        load(tmp_path)
    assert str(tmp_path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.filterwarnings("error")
def test_agents_take_read_only_and_reversed_observations(whole):
    policy, frames = load(whole.path), np.zeros((2, 60, 60), np.float32)
    frames.flags.writeable = False
    assert np.array_equal(policy.embed(frames[None]), policy.embed(frames[None, :, ::-1]))


@pytest.mark.parametrize("handler", [signal.default_int_handler, interrupt_once])
def test_interrupts_in_the_middle_of_an_iteration_change_nothing(whole, tmp_path, monkeypatch, handler):
    step, stops = torch.optim.Adam.step, iter([1, 2])

    def step_and_interrupt(self, *arguments):
        done = step(self, *arguments)
        for _ in range(next(stops, 0)):
            signal.raise_signal(signal.SIGINT)
        return done

    monkeypatch.setattr(torch.optim.Adam, "step", step_and_interrupt)
    for _ in range(2):
        before = signal.signal(signal.SIGINT, handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                run(config_of(), tmp_path)
        finally:
            signal.signal(signal.SIGINT, before)
    assert run(config_of(), tmp_path).read_result() == whole.read_result()


def test_an_interrupt_in_the_last_iteration_is_heard(whole, tmp_path):
    def interrupt_at_the_end(progress):
        if progress.iteration == progress.total:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(config_of(), tmp_path, listeners=[interrupt_at_the_end])
    assert run(config_of(), tmp_path).read_result() == whole.read_result()
