from pisces.cli import main
from pisces.experiments.distracting import EXPERIMENT, pretraining_config
from pisces.experiments.engine import sweep
from pisces.experiments.registry import experiment
from pisces.experiments.sweeps import distracting_jobs

TINY = {"frame_size": 20, "action_repeat": 100, "batch_size": 4, "seed_steps": 4}


def jobs_of(seeds=(0,), inits=("random",), **changes):
    return distracting_jobs(
        ["cartpole-swingup"], ["drq+pse", "drq"], inits, seeds, "smoke", changes={**TINY, **changes}
    )


def test_runs_that_others_build_on_come_first():
    jobs = jobs_of(seeds=(3, 1), inits=("random", "pretrained"), temperature=0.5)
    assert [job.config.seed for job in jobs] == [3] * 4 + [1] * 4
    for first, *others in (jobs[:4], jobs[4:]):
        assert (first.config.method, first.config.init) == ("drq", "random")
        assert {pretraining_config(job.config) for job in others} == {first.config}
    assert "temperature" not in jobs[0].config.study


def test_a_run_is_busy_while_its_pretraining_is(tmp_path):
    chosen = experiment(EXPERIMENT)
    drq, pse = jobs_of()
    assert not chosen.busy(pse.config, tmp_path)
    with chosen.folder(drq.config, tmp_path).lock():
        assert chosen.busy(drq.config, tmp_path)
        assert chosen.busy(pse.config, tmp_path)
    with chosen.folder(pse.config, tmp_path).lock():
        assert not chosen.busy(drq.config, tmp_path)


def test_pretraining_is_shared_between_workers(tmp_path):
    drq, pse = jobs_of()
    state = sweep([pse, drq], tmp_path, workers=2)
    assert sorted(state.done) == [0, 1]
    assert not state.failed
    assert not list(tmp_path.rglob("error.txt"))
    assert len(list(tmp_path.rglob("result.json"))) == 2


def test_list_prints_a_command_per_run(tmp_path, capsys):
    words = ["--tasks", "cartpole-swingup,walker-walk", "--seeds", "0-1", "--preset", "smoke", "--list"]
    assert main(["sweep", "distracting", *words, "--set", "steps=500"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(set(lines)) == 8
    assert all(line.startswith("pisces train distracting --task ") and "steps=500" in line for line in lines)
