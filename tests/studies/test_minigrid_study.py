import pytest

from minigrid_study import STUDY, study_configs
from pisces.errors import UserError


def test_parts_have_all_seeds_of_every_cell_and_each_run_once():
    configs = study_configs(list(STUDY))
    assert len(set(configs)) == len(configs)
    cells = {}
    for config in configs:
        cells.setdefault((config.method, config.where), set()).add(config.seed)
        assert not config.changes
    assert {len(seeds) for (method, _), seeds in cells.items() if method.startswith("bc")} == {20}
    assert {len(seeds) for (method, _), seeds in cells.items() if method.startswith("ppo")} == {10}
    assert len(cells) == 6 * (6 + 7 + 3)


def test_unknown_parts_are_refused():
    with pytest.raises(UserError, match="unknown part of the study 'clonin'; did you mean 'cloning'"):
        study_configs(["clonin"])
