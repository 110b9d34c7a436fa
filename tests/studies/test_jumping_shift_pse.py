from stored_runs import jumping_run

from jumping_shift_pse import SETTINGS, Setting, chosen_coefficient, shift_table
from jumping_study import shift_batch


def run_of(setting, coefficient, seed, percent):
    (config,) = shift_batch(setting.tasks, setting.shift, coefficient, str(seed)).configs()
    changes = {name: value for name, value in config.changes.items() if name != "training_tasks"}
    values = {"validation_solved_percent": percent, "heldout_solved_percent": percent}
    return jumping_run("randconv+shift", seed, values=values, training_tasks=setting.tasks, changes=changes)


def test_runs_have_as_many_iterations_as_with_all_tasks():
    for setting in SETTINGS:
        (config,) = shift_batch(setting.tasks, setting.shift, 5.0, "0").configs()
        states = setting.tasks * 56
        assert config.settings.epochs * (states // config.settings.batch_size + 1) == 2000


def test_validation_tasks_of_other_seeds_choose_the_weight():
    setting = Setting(4, 5)
    scores = {1.0: (10.0, 20.0), 5.0: (30.0, 20.0), 20.0: (40.0, 5.0)}
    runs = [run_of(setting, c, 1000 + i, value) for c, values in scores.items() for i, value in enumerate(values)]
    assert chosen_coefficient(runs[:-1], setting) is None
    assert chosen_coefficient(runs, setting) == 5.0
    runs += [run_of(setting, 0.0, 0, 50.0), run_of(setting, 5.0, 0, 60.0), run_of(setting, 20.0, 0, 99.0)]
    (row,) = (line for line in shift_table(runs).splitlines() if line.startswith("| 4 | 5 |"))
    assert row == "| 4 | 5 | 5 | **50.0**, n=1 | **60.0**, n=1 | **10.0**, n=1 |"
