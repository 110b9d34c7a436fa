from dataclasses import replace

from stored_runs import stored_run

from distracting_ablation import COMMON, VARIANTS, ablation_configs, ablation_table
from distracting_longer import LONGER, PLAIN, SIMILAR, longer_configs, longer_table, total_steps
from distracting_paper_size import paper_size_config, paper_size_table
from distracting_study import study_configs
from pisces.envs.distracting.tasks import PAPER_TASKS
from pisces.experiments.distracting.config import DistractingConfig
from pisces.experiments.distracting.experiment import Distracting


def test_the_study_has_every_cell_once_and_needs_first():
    configs = study_configs()
    assert len(configs) == len(set(configs))
    experiment, seen = Distracting(), set()
    for config in configs:
        assert set(experiment.requirements(config)) <= seen
        seen.add(config)
    cells = [config for config in configs if experiment.cell(config) is not None]
    for task in PAPER_TASKS:
        for method in ("drq", "drq+pse"):
            own = {c.seed for c in cells if (c.task, c.method, c.init) == (task, method, "random")}
            assert own == set(range(3 if task in ("cheetah-run", "walker-walk") else 5))


def test_first_come_two_tasks_with_five_seeds_then_one_seed_of_each():
    first = study_configs()[: 2 * 2 * 5]
    assert {config.task for config in first} == {"cartpole-swingup", "ball_in_cup-catch"}
    others = study_configs()[20:28]
    assert len({config.task for config in others}) == 4
    assert {config.seed for config in others} == {0}


def test_choices_are_made_on_other_seeds_and_videos():
    for config in ablation_configs():
        assert config.seed >= 1000
        assert config.protocol.unseen_videos == "validation"
        assert Distracting().cell(config) is None


def test_the_ablation_shows_the_variants_that_were_run():
    configs = [config for config in ablation_configs() if config.changes == COMMON]
    configs += [DistractingConfig.make("drq", "cpu", seed=1000, changes={**COMMON, "views": 2})]
    configs += [DistractingConfig.make("drq", "cpu", seed=0)]
    runs = [
        stored_run(Distracting(), config, train_return=100.0 + config.seed, test_return=50.0 + 10 * k)
        for k, config in enumerate(configs)
    ]
    lines = ablation_table(runs).splitlines()[2:]
    plain = [config for config in ablation_configs() if config.changes == COMMON]
    assert {config.method for config in plain} == {"drq", "drqv2"}
    assert lines[0] == "| the preset | 2 | 1100 | 60 | – |"
    assert lines[1] == "| two views of each observation | 1 | 1100 | 90 | – |"
    assert len(lines) == 3
    assert "Not run yet" in ablation_table(runs[-1:])
    assert len(VARIANTS) == len({str(variant) for variant in VARIANTS.values()})


def test_longer_training_takes_the_steps_of_pses_with_all_that_they_need():
    protocol = SIMILAR.protocol
    recorded = 2 * protocol.pairs * 1000
    assert total_steps(LONGER) == total_steps(SIMILAR) == 2 * protocol.steps + recorded
    assert LONGER.protocol.steps / LONGER.protocol.evaluations == PLAIN.protocol.steps / PLAIN.protocol.evaluations
    assert all(Distracting().cell(config) is None for config in longer_configs())


def test_longer_training_is_compared_on_seeds_that_all_three_have():
    returns = {PLAIN: 100.0, LONGER: 150.0, SIMILAR: 190.0}
    seeds = {PLAIN: (0, 1, 2), LONGER: (0, 1), SIMILAR: (0, 1, 2)}
    runs = [
        stored_run(Distracting(), replace(config, seed=seed), train_return=300.0, test_return=value + 10 * seed)
        for config, value in returns.items()
        for seed in seeds[config]
    ]
    rows = longer_table(runs).splitlines()[2:]
    assert rows[0].startswith("| DrQ | 300,000 | **300** (0), n=2 [300, 300] | **105** (5), n=2 [41, 169] | **-50**")
    assert rows[1].startswith("| DrQ, trained for longer | 700,000 |")
    assert rows[2].endswith("| **40** (0), n=2 [40, 40] |")
    assert "Not run yet" in longer_table(runs[:3])


def test_the_run_at_the_papers_size_keeps_the_papers_agent():
    config = paper_size_config()
    assert config.settings == DistractingConfig.make("drq", "paper").settings
    assert Distracting().cell(config) is None
    curve = [{"step": 4000, "updates": 0, "train_return": 26.4, "test_return": 31.6}]
    run = stored_run(Distracting(), config, train_return=50.0, test_return=60.0, curve=curve)
    lines = paper_size_table([stored_run(Distracting(), DistractingConfig.make("drq", "paper")), run]).splitlines()
    assert lines[2:4] == ["| 4,000 | 0 | 26 | 32 |", "| 4,000, 30 test videos | 0 | 50 | 60 |"]
    assert lines[4].endswith("| – | 582 |")
    assert "Not run yet" in paper_size_table([])
