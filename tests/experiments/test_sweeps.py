import pytest

from pisces.cli import main
from pisces.errors import UserError
from pisces.experiments.distracting.experiment import Distracting
from pisces.experiments.jumping.experiment import Jumping
from pisces.experiments.lqr.experiment import LQR
from pisces.runs.job import Job
from pisces.runs.sweep import sweep

TINY = {"frame_size": 20, "action_repeat": 100, "batch_size": 4, "learning_starts": 4}


def distracting_configs(seeds=(0,), inits=("random",), **changes):
    axes = {"task": ["cartpole-swingup"], "init": inits}
    return Distracting().sweep_configs(["drq+pse", "drq"], seeds, "smoke", axes, {**TINY, **changes})


def test_runs_that_others_build_on_come_first():
    configs = distracting_configs(seeds=(3, 1), inits=("random", "pretrained"), temperature=0.5)
    assert [config.seed for config in configs] == [3] * 4 + [1] * 4
    for first, *others in (configs[:4], configs[4:]):
        assert (first.method, first.init) == ("drq", "random")
        assert {config.pretraining() for config in others} == {first}
    assert configs[0].changes == TINY
    assert {config.changes.get("temperature") for config in configs if config.method == "drq+pse"} == {0.5}


def test_a_run_is_busy_while_its_pretraining_is(tmp_path):
    drq, pse = (Job(Distracting(), config) for config in distracting_configs())
    assert not pse.busy(tmp_path)
    with drq.folder(tmp_path).create(drq.config).lock():
        assert drq.busy(tmp_path)
        assert pse.busy(tmp_path)
    with pse.folder(tmp_path).create(pse.config).lock():
        assert not drq.busy(tmp_path)


def test_pretraining_is_shared_between_workers(tmp_path):
    drq, pse = (Job(Distracting(), config) for config in distracting_configs())
    state = sweep([pse, drq], tmp_path, workers=2)
    assert sorted(state.done) == [0, 1]
    assert not state.failed
    assert not list(tmp_path.rglob("error.txt"))
    assert len(list(tmp_path.rglob("result.json"))) == 2


def test_list_prints_a_command_per_run(capsys):
    words = ["--tasks", "cartpole-swingup,walker-walk", "--seeds", "0-1", "--preset", "smoke", "--list"]
    assert main(["sweep", "distracting", *words, "--steps", "500"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(set(lines)) == 8
    assert all(line.startswith("pisces train distracting --method ") and "--steps 500" in line for line in lines)


def test_jumping_sweeps_are_all_combinations_seed_by_seed():
    axes = {"grid": ["wide", "narrow"], "epsilon": [0.0], "training_tasks": [18]}
    configs = Jumping().sweep_configs(["pse", "randconv"], [3, 4], "smoke", axes, {})
    assert len(configs) == 8
    assert [config.seed for config in configs] == [3] * 4 + [4] * 4
    assert configs[0].command("runs") == "pisces train jumping --method pse --preset smoke --seed 3 --out runs"
    assert configs[1].command() == "pisces train jumping --method pse --preset smoke --grid narrow --seed 3"


def test_linear_sweeps_train_consecutive_seeds_together_and_the_largest_cells_first():
    configs = LQR().sweep_configs(["ipo", "psm"], [0, 1, 2, 7, 8, 5], "smoke", {"distractors": [60, 100]}, {})
    assert [(config.distractors, config.method, config.seeds) for config in configs] == [
        (size, method, seeds) for size in (100, 60) for method in ("ipo", "psm") for seeds in ((0, 1, 2), (7, 8), (5,))
    ]


def test_a_wrong_value_of_an_axis_is_explained():
    with pytest.raises(UserError, match="did you mean 'narrow'"):
        Jumping().sweep_configs(["pse"], [0], "smoke", {"grid": ["narow"]}, {})
