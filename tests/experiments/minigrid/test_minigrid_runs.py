import json

import numpy as np
import pytest
from stored_runs import stored_run

from pisces.cli import main
from pisces.envs.minigrid import TEST_LEVELS, TRAINING_LEVELS, VALIDATION_LEVELS, LevelEnv
from pisces.envs.minigrid.experts import expert_path
from pisces.errors import UserError
from pisces.experiments import load
from pisces.experiments.minigrid.config import METHODS, MiniGridConfig
from pisces.experiments.minigrid.evaluation import solved_tasks
from pisces.experiments.minigrid.experiment import MiniGrid
from pisces.experiments.minigrid.judge import judge_features
from pisces.experiments.minigrid.mdp import solve_level
from pisces.experiments.minigrid.page import path
from pisces.experiments.minigrid.ppo import GuidedEnv
from pisces.experiments.minigrid.tables import agreement_table, gains_table, matches_table, solved_table
from pisces.experiments.minigrid.tasks import Task, make_renderer, training_tasks, unseen_tasks
from pisces.runs.job import Job
from pisces.trajectories import collect

MEASURES = {"train_solved_percent", "validation_solved_percent", "test_solved_percent"}


def make(method, seed=0, preset="smoke", changes=None, **options):
    return MiniGridConfig.make(method, preset, seed=seed, changes=changes, **options)


def run(config, out):
    return Job(MiniGrid(), config).run(out)


@pytest.mark.parametrize("shift", ["layout", "appearance", "both"])
def test_tasks_share_what_the_shift_says_and_nothing_else(shift):
    config = make("bc", 3, shift=shift)
    trained, validation, test = training_tasks(config), unseen_tasks(config, False), unseen_tasks(config, True)
    assert {task.level for task in trained} <= set(TRAINING_LEVELS)
    groups = [set(trained), set(validation), set(test)]
    assert sum(map(len, groups)) == len(set().union(*groups)) == len(trained) + len(validation) + len(test)
    levels, themes = ([{getattr(task, name) for task in group} for group in groups] for name in ("level", "theme"))
    if shift == "appearance":
        assert levels[0] == levels[1] == levels[2]
        assert len(validation) >= 48
    else:
        assert (levels[1], levels[2]) == (set(VALIDATION_LEVELS), set(TEST_LEVELS))
    if shift == "layout":
        assert themes == [{0}] * 3
    else:
        assert sum(map(len, themes)) == len(set().union(*themes))
        assert 0 not in set().union(*themes)
    assert training_tasks(make("bc+pse", 3, shift=shift)) == trained != training_tasks(make("bc", 4, shift=shift))


def test_greedy_episodes_count_as_environments_do():
    """The optimal policy solves everything, one that turns forever or walks into lava nothing."""
    tasks = [Task(level, theme) for level, theme in ((150, 0), (151, 7), (152, 8))]
    actions = {}
    for task in tasks:
        level = solve_level("lava", task.level)
        frames = make_renderer("lava", task).frames(level.states)
        actions |= {frame.tobytes(): a for frame, a in zip(frames, level.plan.policy.argmax(axis=1), strict=False)}
    solved = solved_tasks("lava", tasks, lambda frames: np.array([actions[frame.tobytes()] for frame in frames]))
    assert solved.all()
    for action in (0, 2):
        assert not solved_tasks("lava", tasks, lambda frames, a=action: np.full(len(frames), a)).any()
    env = LevelEnv("lava", 151, 7)
    episode = collect(env, lambda frame: actions[frame.tobytes()], max_steps=100)
    assert episode.terminated
    assert episode.rewards.sum() == 1


@pytest.mark.parametrize("method", [name for name in METHODS if name.startswith("bc")])
def test_every_cloning_method_trains_and_loads(method, tmp_path):
    config = make(method, shift="both", training_levels=3, training_themes=2)
    folder = run(config, tmp_path)
    result = folder.read_result()
    assert set(result) >= MEASURES
    assert [row["iteration"] for row in result["curve"]] == [5, 10, 15, 20]
    policy = load(folder.path)
    frames = np.stack([LevelEnv(level=level, theme=3).reset()[0] for level in (1, 2)])
    assert policy.embed(frames).shape == (2, 64)
    assert policy.act(frames[0]) in (0, 1, 2)
    with pytest.raises(UserError, match=r"expected frames uint8 \(36, 36, 3\), got uint8 \(9, 9, 3\)"):
        policy.act(np.zeros((9, 9, 3), np.uint8))


def test_same_config_same_result(tmp_path):
    config = make("bc+pse", 2, shift="appearance", training_levels=3)
    first, second = (run(config, tmp_path / name).file("result.json").read_text() for name in ("a", "b"))
    assert first == second


def test_the_judge_knows_perfect_and_useless_features():
    """Features that name the expert's remaining actions match all states that have a match; constants match none."""
    config = make("bc", 1, shift="layout", training_levels=6)
    tasks = {*training_tasks(config), *unseen_tasks(config, test=True)}
    futures = {}
    for task in tasks:
        states, actions = expert_path(make_renderer("crossing", task).dynamics)
        for index, frame in enumerate(make_renderer("crossing", task).frames(states)):
            futures[frame.tobytes()] = tuple(actions[index:])

    def represent(frames):
        codes = np.zeros((len(frames), 60, 4), dtype=np.float32)  # the action at each later step, then the end
        for code, frame in zip(codes, frames, strict=True):
            own = [*futures[frame.tobytes()], *[3] * 60][:60]
            code[np.arange(60), own] = 0.9 ** (np.arange(60) / 2)
        return codes.reshape(len(frames), -1)

    good, useless = judge_features(config, represent), judge_features(config, lambda frames: np.ones((len(frames), 2)))
    assert good["test_neighbor_agreement"] > useless["test_neighbor_agreement"]
    assert good["test_rank_correlation"] > 0.3 > useless["test_rank_correlation"] == 0
    assert 0 < good["test_matched_share"] == useless["test_matched_share"] < 1
    appearance = make("bc", 1, shift="appearance", training_levels=3)
    assert judge_features(appearance, lambda frames: np.ones((len(frames), 2)))["test_matched_share"] == 1


def test_the_expert_by_search_is_the_one_by_planning():
    level = solve_level("doorkey", 160)
    states, actions = expert_path(make_renderer("doorkey", Task(160, 0)).dynamics)
    numbers, planned = level.expert_episode()
    assert [level.states[number] for number in numbers] == states
    assert planned.tolist() == actions


def test_cloning_learns_its_training_levels(tmp_path):
    config = make(
        "bc+pse", preset="standard", shift="layout", training_levels=3, changes={"steps": 400, "learning_rate": 3e-3}
    )
    assert run(config, tmp_path).read_result()["train_solved_percent"] == 100


@pytest.mark.parametrize("method", ["ppo", "ppo+pse", "ppo+pse-expert"])
def test_ppo_trains(method, tmp_path):
    config = make(method, shift="appearance", training_levels=2, training_themes=2, changes={"steps": 3072})
    result = run(config, tmp_path).read_result()
    assert set(result) >= MEASURES
    assert [row["iteration"] for row in result["curve"]] == [1536, 3072]
    with pytest.raises(UserError, match="does not clone an expert"):
        load(Job(MiniGrid(), config).run(tmp_path).path)


def test_configs_go_through_files_and_commands():
    config = make("bc+pse", 4, shift="layout", family="doorkey", changes={"auxiliary_rate": 0.25}, training_levels=4)
    assert MiniGridConfig.from_dict(json.loads(json.dumps(config.as_dict()))) == config
    assert config.command("runs") == (
        "pisces train minigrid --method bc+pse --preset smoke --family doorkey --shift layout --training-levels 4 "
        "--seed 4 --auxiliary-rate 0.25 --out runs"
    )
    assert MiniGridConfig.from_dict(json.loads(json.dumps(make("ppo+pse").as_dict()))) == make("ppo+pse")


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("bcc",), {}, "did you mean 'bc'"),
        (("bc",), {"shift": "texture"}, "unknown shift 'texture'"),
        (("bc",), {"family": "maze"}, "unknown family 'maze'"),
        (("bc",), {"training_levels": 1}, r"training_levels must be in \[2, 200\], got 1"),
        (("bc", 0, "smoke", {"auxiliary_rate": 0}), {}, "auxiliary_rate must be > 0, got 0"),
        (("ppo", 0, "smoke", {"auxiliary_rate": 1}), {}, "unknown setting 'auxiliary_rate'"),
    ],
)
def test_bad_configs_are_explained(arguments, options, message):
    with pytest.raises(UserError, match=message):
        make(*arguments, **options)


def test_tables_pair_the_seeds():
    def run_of(method, seed, percent, **options):
        return stored_run(MiniGrid(), make(method, seed, "standard", **options), **dict.fromkeys(MEASURES, percent))

    runs = [run_of("bc", 0, 40.0), run_of("bc", 1, 50.0), run_of("bc+pse", 0, 50.0), run_of("bc+pse", 1, 64.0)]
    runs += [run_of("bc", 2, 10.0), run_of("bc", 2, 0.0, changes={"steps": 100}), run_of("ppo", 0, 5.0, shift="both")]
    table = solved_table(runs)
    assert table.header == ("method", "crossing, appearance", "crossing, both")
    assert [cell.values for cell in table.rows[0][1:]] == [(40.0, 50.0, 10.0), ()]
    (label, gain, empty), *others = gains_table(runs).rows
    assert (label, gain.values, empty.values, others) == ("`bc+pse`", (10.0, 14.0), (), [])


def test_tables_of_matches_and_agreement():
    shares = {"test_matched_share": 0.5, "test_rank_correlation": 0.25, "test_neighbor_agreement": 0.75}
    runs = [
        stored_run(MiniGrid(), make(method, 0, "standard"), **dict.fromkeys(MEASURES, solved), **figures)
        for method, solved, figures in (
            ("bc", 40.0, shares),
            ("bc+pse", 50.0, {**shares, "test_neighbor_agreement": 1}),
        )
    ]
    ((where, matched, room, gain, none),) = matches_table(runs).rows
    assert none.values == ()
    assert (where, matched.values, room.values, gain.values) == ("crossing, appearance", (50.0,), (60.0,), (10.0,))
    runs.append(stored_run(MiniGrid(), make("ppo", 0, "standard"), **dict.fromkeys(MEASURES, 1.0)))
    first, second = agreement_table(runs).rows
    assert [cell.values for cell in first[1:]] == [(0.25,), (0.75,), (40.0,)]
    assert (second[0], second[2].values) == ("`bc+pse`, crossing, appearance", (1.0,))


def test_commands_train_evaluate_and_list(tmp_path, capsys):
    words = ["--method", "bc", "--shift", "layout", "--preset", "smoke", "--out", str(tmp_path)]
    assert main(["train", "minigrid", *words]) == 0
    assert "% of training tasks solved" in capsys.readouterr().out
    (folder,) = (path.parent for path in tmp_path.rglob("result.json"))
    assert main(["evaluate", str(folder)]) == 0
    assert "validation" in capsys.readouterr().out
    words = ["--seeds", "0", "--shifts", "layout,both", "--methods", "bc,bc+pse", "--list", "--out", "runs"]
    assert main(["sweep", "minigrid", *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "pisces train minigrid --method bc --preset standard --shift both --seed 0 --out runs"
    assert len(lines) == 4


def test_recorded_episodes_lead_to_the_goal_where_the_result_says_so(tmp_path):
    config = make("bc")
    result = run(config, tmp_path).read_result()
    episodes = result["episodes"]
    assert [tuple(task) for task in episodes["tasks"]] == [
        (task.level, task.theme) for task in unseen_tasks(config, test=True)
    ]
    assert result["test_solved_percent"] == pytest.approx(100 * episodes["solved"].count("1") / len(episodes["solved"]))
    for (level, theme), actions, solved in zip(episodes["tasks"], episodes["actions"], episodes["solved"], strict=True):
        dynamics = make_renderer(config.family, Task(level, theme)).dynamics
        state, reward = dynamics.start, 0.0
        for action in actions:
            outcome = dynamics.step(state, int(action))
            state, reward = outcome.state, outcome.reward
        assert (reward > 0) == (solved == "1")
        assert path(config.family, Task(level, theme), actions)[-1] == list(state[:2])


def test_guidance_pays_for_steps_nearer_to_the_goal():
    env = GuidedEnv(LevelEnv("crossing", 150), weight=0.1)
    env.reset()
    steps = len(expert_path(env.env.dynamics)[1])
    turned = env.step((env.env.optimal_action() + 1) % 2 if env.env.optimal_action() < 2 else 0)[1]
    assert turned == pytest.approx(-0.1)
    env.reset()
    rewards, terminated = [], False
    while not terminated:
        _, reward, terminated, _, _ = env.step(env.env.optimal_action())
        rewards.append(reward)
    assert rewards == pytest.approx([0.1] * (steps - 1) + [1.1])


def test_guidance_does_not_pay_for_lava():
    env = GuidedEnv(LevelEnv("lava", 150), weight=0.1)
    for action in (0, 1):  # turns until going forward ends the episode
        for turns in range(4):
            env.reset()
            for _ in range(turns):
                env.step(action)
            rewards, terminated = [], False
            while not terminated and len(rewards) < 12:
                _, reward, terminated, _, info = env.step(2)
                rewards.append(reward)
            assert not info["solved"]
            assert max(rewards) <= 0.1 + 1e-9
            if terminated:
                return
    pytest.fail("no way into the lava was tried")
