import json

import pytest
from stored_runs import lqr_config, lqr_runs

from pisces.experiments.lqr.config import FIRST_TUNING_SEED, METHODS, SIZES, LQRConfig
from pisces.experiments.lqr.experiment import LQR
from pisces.experiments.lqr.figures import error_bars, weight_columns
from pisces.experiments.lqr.tables import seeds_by_cell, summary_table
from pisces.experiments.registry import all_experiments, experiment
from pisces.reports.page.explorer import page_data
from pisces.reports.results import read_runs
from pisces.runs.store import SCHEMA, RunFolder


@pytest.fixture
def cells():
    """Every cell of the table: its config and the errors of its two seeds."""
    configs = [lqr_config(method, size, (0, 1)) for method in METHODS for size in SIZES]
    return [(config, [0.002, 0.004] if config.method == "psm" else [20.0, 30.0]) for config in configs]


@pytest.fixture
def runs(cells):
    return [run for config, errors in cells for run in lqr_runs(config, errors)]


def test_table_stands_beside_the_papers(runs):
    lines = summary_table(runs).splitlines()
    assert len(lines) == 2 + len(METHODS)
    assert "**25.0** (7.1), n=2 / 32.6 (5.0)" in next(line for line in lines if "`ipo`" in line)
    psm = next(line for line in lines if "`psm`" in line)
    assert "**0.0030** (0.0014), n=2 / 0.03 (0.0)" in psm
    assert psm.endswith("**0.0030** (0.0014), n=2 / 0.02 (0.0) |")


def test_single_runs_and_cells_count_every_seed_once(runs):
    again = lqr_runs(lqr_config("psm", 500, (1,)), [0.004])
    more = lqr_runs(lqr_config("psm", 500, (2,)), [0.006])
    assert [row["seed"] for row in seeds_by_cell([*runs, *again, *more])["psm", 500]] == [0, 1, 2]
    left_out = [
        *lqr_runs(lqr_config("psm", 500, (3,), changes={"aggregation": 1.0}), [9.0]),
        *lqr_runs(lqr_config("psm", 500, (3,), environments=3), [9.0]),
        *lqr_runs(lqr_config("psm", 500, (FIRST_TUNING_SEED,)), [9.0]),
    ]
    assert seeds_by_cell([*runs, *left_out]) == seeds_by_cell(runs)
    assert {LQR().cell(run.config) for run in left_out} == {None}
    assert LQR().cell(again[0].config) == ("lqr", "psm", 500)


def test_a_seed_is_described_in_a_few_words():
    assert "infinite" in LQR().describe({"cost": None, "error": None, "oracle_cost": 27.4})
    assert "0.5000 above" in LQR().describe({"cost": 27.9, "oracle_cost": 27.4, "error": 0.5})
    assert LQR().describe({"runs": [{}, {}]}) == "2 seeds done"


def test_figures_are_drawn(runs, tmp_path):
    for index, draw in enumerate((error_bars, weight_columns)):
        draw(runs).savefig(tmp_path / f"{index}.png")
        assert (tmp_path / f"{index}.png").stat().st_size > 5000


def write_cell(root, config, errors):
    values = {"runs": [run.result["runs"][0] for run in lqr_runs(config, errors)]}
    RunFolder.of(root, config).create(config).write_result(config, values)


def test_stored_cells_are_taken_apart(cells, tmp_path):
    for config, errors in cells:
        write_cell(tmp_path, config, errors)
    found = read_runs([tmp_path], all_experiments())
    assert found.skipped == ()
    assert len(found.runs) == 2 * len(cells)
    assert {len(group) for group in found.by_setting()} == {2}
    (table,) = LQR().tables(found.of("lqr"))
    (line,) = [line for line in table.markdown().splitlines() if line.startswith("| psm")]
    assert "| psm | **0.0030** (0.0014), n=2 [0.0000, 0.0157] / 0.03 (0.0)" in line
    assert list(LQR().figures(found.of("lqr"))) == ["lqr"]
    (run,) = [
        run for run in found.runs if (run.config.method, run.config.distractors, run.config.seed) == ("psm", 500, 1)
    ]
    assert run.value == 0.004
    assert run.config.command() == "pisces train lqr --method psm --preset paper --seed 1"


def test_unstable_seeds_are_named_and_left_out(tmp_path):
    write_cell(tmp_path, lqr_config("ipo", 500, (0, 1)), [None, 20.0])
    found = read_runs([tmp_path], all_experiments())
    assert [run.config.seed for run in found.runs] == [1]
    assert "seed 0 is unstable in the unseen environment" in found.skipped[0]


def test_seeds_for_tuning_are_apart_from_those_of_the_study(tmp_path):
    for seed, error in ((0, 0.5), (1000, 99.0)):
        config = LQRConfig.make("psm", "paper", seed=seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        result = {"experiment": "lqr", "schema": SCHEMA, "config": config.as_dict()}
        (folder / "result.json").write_text(json.dumps({**result, "runs": [{"seed": seed, "error": error}]}))
    found = read_runs([tmp_path], {"lqr": experiment("lqr")})
    assert [[run.config.seed for run in group] for group in found.by_setting()] == [[0], [1000]]
    settings = page_data(found, (), {})["settings"]
    assert [(one["summary"]["mean"], one["changes"], one["own"]) for one in settings] == [
        (0.5, "", True),
        (99.0, "tuning seeds", False),
    ]
