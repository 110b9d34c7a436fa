import shlex

import pytest

from jumping_study import STUDY, study_configs
from pisces.cli import main
from pisces.errors import UserError


def test_every_run_comes_once():
    configs = study_configs(list(STUDY))
    assert len(configs) == len(set(configs))
    assert set(configs) == {config for part in STUDY for config in study_configs([part])}


def test_the_main_comparison_has_twenty_seeds_of_both_methods():
    configs = study_configs(["main"])
    assert {(config.method, config.seed) for config in configs} == {
        (method, seed) for method in ("randconv", "randconv+pse") for seed in range(20)
    }
    assert all(config.grid == "wide" and not config.changes for config in configs)


@pytest.mark.parametrize("part", STUDY)
def test_the_command_of_a_batch_lists_the_same_runs(part, capsys):
    for batch in STUDY[part]:
        program, *words = shlex.split(batch.command())
        assert program == "pisces"
        assert main([*words, "--list"]) == 0
        listed = capsys.readouterr().out.splitlines()
        assert listed == [config.command("results") for config in batch.configs()]


def test_unknown_parts_are_explained():
    with pytest.raises(UserError, match="part of the study"):
        study_configs(["table9"])
