import json

import pytest
from stored_runs import stored_run

from pisces.experiments.distracting.config import PRESETS, DistractingConfig
from pisces.experiments.distracting.experiment import Distracting
from pisces.experiments.distracting.figures import curve_figures
from pisces.experiments.distracting.paper import DISTRACTING
from pisces.experiments.distracting.tables import (
    alignment_markdown,
    by_cell,
    cost_markdown,
    distracting_tables,
    plain_markdown,
)
from pisces.experiments.registry import all_experiments
from pisces.reports.results import read_runs
from pisces.runs.store import RunFolder


def run_of(method="drq", task="cartpole-swingup", seed=0, test=500.0, preset="cpu", **arguments):
    config = DistractingConfig.make(method, preset, seed=seed, task=task, **arguments)
    curve = [
        {"step": step, "train_return": 2 * step / 1000, "test_return": test * step / 4000} for step in (2000, 4000)
    ]
    return stored_run(Distracting(), config, train_return=test + 100, test_return=test, curve=curve)


@pytest.fixture
def runs():
    own = [run_of("drq", seed=seed, test=400.0 + 100 * seed) for seed in (0, 1, 2)]
    own += [run_of("drq+pse", seed=0, test=700.0), run_of("drq+pse", init="pretrained", test=710.0)]
    other = [run_of(test=1.0, changes={"steps": 8}), run_of(test=2.0, variant="plain")]
    return [*own, *other, run_of(task="walker-stand", test=300.0), run_of(preset="smoke", test=3.0)]


def write(root, run):
    values = {name: value for name, value in run.result.items() if name != "config"}
    folder = RunFolder.of(root, run.config).create(run.config)
    folder.write_result(run.config, values)
    return folder


def test_table_stands_beside_the_papers(runs):
    table, train, _ = distracting_tables(runs)
    rows = {(row[0], row[1], row[2]): dict(zip(table.header, map(str, row), strict=True)) for row in table.rows}
    assert rows["cpu", "random", "DrQ"]["cartpole-swingup"] == "**500** (58), n=3 [252, 748] / 582 (42)"
    assert rows["cpu", "random", "DrQ"]["walker-stand"] == "**300**, n=1 / –"
    assert rows["cpu", "pretrained", "DrQ + PSEs"]["cartpole-swingup"] == "**710**, n=1 / 753 (13)"
    assert rows["smoke", "random", "DrQ"]["walker-walk"] == "– / 549 (83)"
    cpu = PRESETS["cpu"]
    assert f"{cpu['steps']:,} steps, frames of {cpu['frame_size']} pixels; smoke: 2,000 steps" in table.note
    assert [str(cell) for cell in train.rows[0][-2:]] == [
        "**600** (58), n=3 [352, 848]",
        "**500** (58), n=3 [252, 748]",
    ]


def test_gains_are_paired_by_seed():
    own = [run_of("drq", seed=seed, test=400.0 + 100 * seed) for seed in range(4)]
    own += [run_of("drq+pse", seed=seed, test=450.0 + 100 * seed + 20 * (seed == 1)) for seed in (1, 2, 9)]
    own += [run_of("drq", task="finger-spin", test=646.0), run_of("drq+pse", task="finger-spin", test=700.0)]
    for plain in own[:4]:
        plain.result["train_return"] += 100
    own[5].result["train_return"] = own[5].result["test_return"] + 40
    *_, table = distracting_tables(own)
    cartpole, finger = sorted(table.rows, key=lambda row: row[3])
    assert [str(cell) for cell in cartpole[3:]] == [
        "cartpole-swingup",
        "750 / 550",
        "680 / 610",
        "**60** (10), n=2 [-67, 187]",
        "**130** (30), n=2 [-251, 511]",
        "65 %",
    ]
    assert finger[-1] == "–"  # its gap is a seventh of the return
    assert finger[-3].values == (54.0,)
    # With two seeds finger-spin counts too: 60 of 582 is 10.3 %, 54 of 646 is 8.4 %.
    assert "Last row" not in distracting_tables(own)[-1].note
    own += [run_of("drq", "finger-spin", 1, test=646.0), run_of("drq+pse", "finger-spin", 1, test=700.0)]
    assert "Last row" in distracting_tables(own)[-1].note
    average = distracting_tables(own)[-1].rows[-1]
    assert average[3] == "mean, in % of the paper's DrQ"
    assert average[-3].startswith("**9.3**, 2 tasks [")
    assert len(distracting_tables(own[:4])) == 2


def test_methods_beyond_the_papers_have_rows_and_times(tmp_path):
    folder = write(tmp_path, run_of("sac", test=20.0))
    folder.write_info({"seconds": 5400.0})
    (table, _) = distracting_tables(read_runs([tmp_path], all_experiments()).of("distracting"))
    rows = {row[2]: dict(zip(table.header, map(str, row), strict=True)) for row in table.rows}
    assert rows["SAC"]["cartpole-swingup"] == "**20**, n=1 / –"
    assert rows["SAC"]["hours per run, one core"] == "1.5"
    assert rows["DrQ"]["hours per run, one core"] == "–"
    (other, _) = distracting_tables([run_of("drq+mico", test=30.0)])
    assert "drq+mico" in {row[2] for row in other.rows}


def test_cost_counts_the_pretraining_run_of_the_seed(tmp_path):
    hours = {("drq", 0): 0.5, ("drq", 1): 1.5, ("drq+pse", 1): 2.5, ("drq+pse", 2): 1.0}
    for (method, seed), value in hours.items():
        write(tmp_path, run_of(method, seed=seed, test=400.0)).write_info({"seconds": 3600 * value})
    found = read_runs([tmp_path], all_experiments()).of("distracting")
    assert cost_markdown(found).splitlines()[2:] == [
        "| cpu | random | DrQ | cartpole-swingup | 2 | 1.0 | 400 |",
        "| cpu | random | DrQ + PSEs | cartpole-swingup | 1 | 4.0 | 100 |",
    ]
    assert "Not run yet" in cost_markdown([run_of("drq")])


def test_what_explains_the_returns_is_told_of_runs_that_measured_it(runs):
    measured = {"train": {"found_percent": 80.0, "action_difference": 0.5}}
    measured["test"] = {"found_percent": 40.0, "action_difference": 0.75}
    for seed, run in enumerate(run for run in runs if run.config.method == "drq+pse"):
        run.result.update(alignment=measured, pair_return=300.0)
        for row, loss in zip(run.curve, (5.0 + seed, 4.0), strict=True):
            row["auxiliary_loss"] = loss
    lines = alignment_markdown(runs).splitlines()
    assert lines[2:] == [
        "| cpu | random | DrQ + PSEs | cartpole-swingup | 1 | 300 | 5.00 → 4.00 | 80 / 40 | 0.50 / 0.75 |",
        "| cpu | pretrained | DrQ + PSEs | cartpole-swingup | 1 | 300 | 6.00 → 4.00 | 80 / 40 | 0.50 / 0.75 |",
    ]
    assert "Not run yet" in alignment_markdown([])


def test_the_undistracted_task_has_a_table_of_its_own(runs):
    changed = run_of(test=9.0, variant="plain", changes={"learning_rate": 0.0003})
    assert plain_markdown([*runs, changed]).splitlines()[2:] == [
        "| cpu | DrQ | – | cartpole-swingup | 0 | 4,000: 2 | **2** |",
        "| cpu | DrQ | learning_rate=0.0003 | cartpole-swingup | 0 | 4,000: 9 | **9** |",
    ]
    assert "Not run yet" in plain_markdown(runs[:3])


def test_published_numbers_of_six_tasks():
    assert {len(row) for row in DISTRACTING.values()} == {6}
    assert (DISTRACTING["pretrained", "drq"]["finger-spin"].mean, len(DISTRACTING)) == (764, 4)


def test_a_seed_counts_once(runs):
    groups = by_cell([*runs, run_of("drq", seed=1, test=0.0, threads=2)])
    assert [run["test_return"] for run in groups["distracting", "cpu", "random", "drq", "cartpole-swingup"]] == [
        400.0,
        500.0,
        600.0,
    ]


def test_curves_have_a_panel_per_task(runs):
    figures = curve_figures(runs)
    assert list(figures) == ["distracting_curves_cpu", "distracting_curves_smoke"]
    panels = [axes for axes in figures["distracting_curves_cpu"][1].axes if axes.get_visible()]
    assert [axes.get_title() for axes in panels] == ["cartpole-swingup", "walker-stand"]
    solid, dashed = panels[0].lines[:2]
    assert solid.get_ydata().tolist() == [250.0, 500.0]
    assert dashed.get_ydata().tolist() == [4.0, 8.0]


def test_stored_runs_have_tables_and_curves(runs, tmp_path):
    for run in runs:
        write(tmp_path, run)
    found = read_runs([tmp_path], all_experiments())
    assert found.skipped == ()
    stored = found.of("distracting")
    assert len(stored) == len(runs)
    assert [table.name for table in Distracting().tables(stored)] == [
        "distracting",
        "distracting_train",
        "distracting_gains",
    ]
    assert list(Distracting().figures(stored)) == ["distracting_curves_cpu", "distracting_curves_smoke"]
    assert Distracting().tables([]) == []
    (pretrained,) = [run.config for run in stored if run.config.init == "pretrained"]
    assert Distracting().published(pretrained).mean == 753
    command = "pisces train distracting --method drq+pse --preset cpu --init pretrained --seed 0"
    assert pretrained.command() == command


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda r: r.update(train_return=None), "train_return is not a finite number"),
        (lambda r: r.pop("test_return"), "it has no test_return"),
        (lambda r: r["config"].update(task=3), "task must be a string, got 3"),
        (lambda r: r["config"].update(protocol=[]), "not a config of distracting runs"),
        (lambda r: r["curve"][0].update(step="soon"), "its curve is not a list of rows of numbers"),
    ],
)
def test_results_of_another_kind_are_named(change, problem, tmp_path):
    path = write(tmp_path, run_of()).file("result.json")
    result = json.loads(path.read_text())
    change(result)
    path.write_text(json.dumps(result))
    path.with_name("run.json").unlink(missing_ok=True)  # it holds the checksum of the result before the change
    found = read_runs([tmp_path], all_experiments())
    assert found.runs == ()
    assert found.skipped[0].startswith(f"{path}: ")
    assert problem in found.skipped[0]
