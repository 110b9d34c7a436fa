import shlex

import pytest

from pisces.cli import main
from pisces.experiments.jumping_study import STUDY, study_jobs


def names(jobs):
    return [str(job.config) for job in jobs]


def test_every_run_comes_once():
    jobs = names(study_jobs(list(STUDY)))
    assert len(jobs) == len(set(jobs))
    apart = {name for part in STUDY for name in names(study_jobs([part]))}
    assert set(jobs) == apart


def test_the_main_comparison_has_twenty_seeds_of_both_methods():
    configs = [job.config for job in study_jobs(["main"])]
    assert {(config.method, config.seed) for config in configs} == {
        (method, seed) for method in ("randconv", "randconv+pse") for seed in range(20)
    }
    assert {(config.grid, config.study) for config in configs} == {("wide", "")}


@pytest.mark.parametrize("part", STUDY)
def test_the_command_of_a_batch_lists_the_same_runs(part, capsys):
    for batch in STUDY[part]:
        assert main([*shlex.split(batch.command())[1:], "--list"]) == 0
        listed = capsys.readouterr().out.splitlines()
        assert listed == [job.experiment.command_line(job.config, "results") for job in batch.jobs()]


def test_unknown_parts_are_explained():
    with pytest.raises(ValueError, match="part of the study"):
        study_jobs(["table9"])
