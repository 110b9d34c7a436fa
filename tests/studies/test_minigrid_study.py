import json

import pytest
from stored_runs import stored_run

from minigrid_study import MANY_LEVELS, STUDY, part_configs, study_configs
from minigrid_tables import OVERHEAD, TRIALS, headline_table, levels_table, overhead_table, ppo_table, trials_table
from pisces.errors import UserError
from pisces.experiments.minigrid.config import MiniGridConfig
from pisces.experiments.minigrid.experiment import MiniGrid


def test_parts_have_all_seeds_of_every_cell_and_each_run_once():
    configs = study_configs(list(STUDY))
    assert len(set(configs)) == len(configs)
    cells = {}
    for config in configs:
        cells.setdefault((config.method, config.where), set()).add(config.seed)
        assert not config.changes or config in part_configs(MANY_LEVELS)
    for shift in ("appearance", "both", "layout"):
        assert cells["bc", f"crossing, {shift}"] == cells["bc+pse", f"crossing, {shift}"] == set(range(20))
    assert {method for method, where in cells if where == "crossing, appearance"} >= {"bc", "bc+pse", "bc+randconv"}
    assert cells["bc+pse-states", "doorkey, appearance, 3 themes"] == set(range(20))
    assert cells["ppo", "crossing, appearance, 3 themes"] == cells["ppo+pse", "crossing, appearance, 3 themes"]


def test_unknown_parts_are_refused():
    with pytest.raises(UserError, match="unknown part of the study 'level'; did you mean 'levels'"):
        study_configs(["level"])


def test_tables_of_trials_and_overhead(tmp_path):
    (tmp_path / "benchmarks").mkdir()
    runs = {"1000": {"train": 100.0, "validation": 20.0}, "1001": {"train": 90.0, "validation": 30.0}}
    (tmp_path / TRIALS).write_text(json.dumps([{"setting": "bc", "runs": runs}]))
    assert "| bc | 1000-1001 | 95.0 | 25.0 (7.1) |" in trials_table(tmp_path)
    row = {"agent": "PPO", "steps": 10, "updates": 2, "overhead": 0.25, "update_in_agent_steps": 1.25}
    (tmp_path / OVERHEAD).write_text(json.dumps([row]))
    assert "| PPO | 10 | 2 | +25% | 1 steps |" in overhead_table(tmp_path)
    (tmp_path / OVERHEAD).write_text(json.dumps([{**row, "overhead": -0.02}]))
    assert "| PPO | 10 | 2 | below 5% | – |" in overhead_table(tmp_path)


def test_ppo_is_compared_seed_by_seed():
    def make(method, seed, solved):
        config = MiniGridConfig.make(method, "standard", seed=seed)
        return stored_run(MiniGrid(), config, test_solved_percent=solved)

    assert ppo_table([make("ppo", 0, 10.0)]) == "PPO has not been run.\n"
    runs = [make("ppo", 0, 10.0), make("ppo", 1, 20.0), make("ppo+pse", 0, 20.0), make("ppo+pse", 1, 40.0)]
    assert "**15.0** (7.1), n=2" in ppo_table(runs)
    assert "**30.0** (14.1), n=2" in ppo_table(runs)
    assert ppo_table(runs).count("**15.0**") == 2  # PPO's mean, and the difference
    assert "an expert's" not in ppo_table(runs)
    runs.append(make("ppo+pse-expert", 1, 80.0))
    assert "| an expert's | crossing, appearance | **15.0** (7.1), n=2 [0.0, 78.5] | **80.0**, n=1" in ppo_table(runs)
    assert "**60.0**, n=1" in ppo_table(runs)


def test_runs_with_many_levels_are_compared_apart():
    def make(config, solved):
        return stored_run(MiniGrid(), config, test_solved_percent=solved)

    many = [config for config in part_configs(MANY_LEVELS) if config.seed < 2]
    few = [MiniGridConfig.make(method, "standard", seed=0, shift="layout") for method in ("bc", "bc+pse")]
    runs = [make(config, 90.0) for config in few]
    assert levels_table(runs) == "No run has many levels.\n"
    solved = {("bc", 0): 20.0, ("bc", 1): 30.0, ("bc+pse", 0): 22.0, ("bc+pse", 1): 36.0}
    runs += [make(config, solved[config.method, config.seed]) for config in many]
    assert "| **25.0** (7.1), n=2" in levels_table(runs)
    assert "**4.0** (2.8), n=2" in levels_table(runs)


def test_the_headline_has_methods_between_all_states_and_new_appearances():
    assert headline_table([]) == "Not run yet.\n"
    solved = {"bc": 40.0, "bc+pse": 90.0, "bc+colors": 60.0, "bc+pse-states": 55.0, "bc+colors+pse-states": 70.0}
    runs = [
        stored_run(MiniGrid(), MiniGridConfig.make(method, "standard", seed=0, shift=shift), test_solved_percent=value)
        for method, value in solved.items()
        for shift in ("appearance", "layout")
    ]
    table = headline_table(runs)
    assert "layout" not in table
    assert "`bc+pse`" not in table
    for method, gain in (("bc+colors", 20.0), ("bc+pse-states", 15.0), ("bc+colors+pse-states", 10.0)):
        assert f"| `{method}` | **{gain}**, n=1 |" in table
