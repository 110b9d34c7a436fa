import json

import pytest

from pisces.cli import main
from pisces.experiments.lqr import METHODS, SIZES, make_config
from pisces.experiments.lqr_ablation import ablation_configs
from pisces.reports.lqr import error_bars, group_lqr, lqr_table, outcome, weight_columns
from pisces.reports.lqr_ablation import ablation_figure, ablation_points, ablation_table, sparsity_table
from pisces.reports.readme import fill


def result_of(config, errors):
    rows = [
        {
            "seed": seed,
            "error": error,
            "cost": None if error is None else 27.4 + error,
            "oracle_cost": 27.4,
            "train_error": 0.1,
            "validation_error": error,
            "state_norm": 20.0,
            "distractor_norm": 0.1,
            "column_norms": [4.0] * 20 + [0.01] * config.distractors,
        }
        for seed, error in zip(config.seeds, errors, strict=True)
    ]
    return {"config": config.as_dict(), "runs": rows}


@pytest.fixture
def results():
    cells = [make_config(method, size, (0, 1)) for method in METHODS for size in SIZES]
    made = [result_of(config, [0.002, 0.004] if config.method == "psm" else [20.0, 30.0]) for config in cells]
    made += [result_of(config, [1.0, 3.0]) for config in ablation_configs((1000, 1001))]
    jumping = {"config": {"method": "pse", "grid": "wide", "preset": "paper"}, "test_solved_percent": 50.0}
    return (*made, jumping)


def test_table_stands_beside_the_papers(results):
    lines = lqr_table(results).splitlines()
    assert len(lines) == 2 + len(METHODS)
    assert "**25.0** (7.1), n=2 / 32.6 (5.0)" in next(line for line in lines if "`ipo`" in line)
    psm = next(line for line in lines if "`psm`" in line)
    assert "**0.0030** (0.0014), n=2 / 0.03 (0.0)" in psm
    assert psm.endswith("**0.0030** (0.0014), n=2 / 0.02 (0.0) |")


def test_single_runs_and_cells_count_every_seed_once(results):
    again = result_of(make_config("psm", 500, (1,)), [0.004])
    more = result_of(make_config("psm", 500, (2,)), [0.006])
    cells = group_lqr([*results, again, more])
    assert [row["seed"] for row in cells["psm", 500]] == [0, 1, 2]
    changed = result_of(make_config("psm", 500, (3,), changes={"aggregation": 1.0}), [9.0])
    assert group_lqr([*results, changed])["psm", 500] == group_lqr(results)["psm", 500]


def test_unstable_policies_show_as_infinite():
    table = lqr_table([result_of(make_config("ipo", 500, (0, 1)), [None, 20.0])])
    assert "**inf**, n=2 / 32.6" in table
    assert "infinite" in outcome({"cost": None, "oracle_cost": 27.4})
    assert "0.5000 above" in outcome({"cost": 27.9, "oracle_cost": 27.4, "error": 0.5})


def test_figures_are_drawn(results, tmp_path):
    for index, draw in enumerate((error_bars, weight_columns, ablation_figure)):
        draw(results).savefig(tmp_path / f"{index}.png")
        assert (tmp_path / f"{index}.png").stat().st_size > 5000


def test_ablation_keeps_apart_what_was_changed(results):
    points = ablation_points(results)
    assert points["adam", 1e7, 2] == (2.0, 0.1, 20.0)
    assert {count for _, _, count in points} == {2, 3, 4, 8}
    assert ablation_table(results).count("| adam | 1e+07 |") == 4
    assert len(sparsity_table(results).splitlines()) == 2 + 6


def test_documents_are_filled(results):
    document = "before\n<!-- table: lqr -->\nold\n<!-- end -->\n<!-- table: lqr_ablation -->\n<!-- end -->\nafter"
    filled = fill(document, results)
    assert "old" not in filled
    assert "`psm`" in filled
    assert "| momentum |" in filled


def test_report_takes_cells_apart_and_shows_the_table(results, tmp_path):
    for number, result in enumerate(results[:-1]):
        (tmp_path / "runs" / str(number)).mkdir(parents=True)
        (tmp_path / "runs" / str(number) / "result.json").write_text(json.dumps(result))
    assert main(["report", str(tmp_path / "runs"), "--out", str(tmp_path / "out"), "--projection", "none"]) == 0
    lines = (tmp_path / "out" / "tables" / "lqr.md").read_text().splitlines()
    assert "| psm | **0.0030** (0.0014), n=2 [0.0000, 0.0157] / 0.03 (0.0)" in next(x for x in lines if "| psm" in x)
    assert (tmp_path / "out" / "figures" / "lqr.png").exists()
    page = (tmp_path / "out" / "report.html").read_text()
    assert "pisces sweep lqr --methods psm --distractors 500 --seeds 0-1 --preset paper" in page
    assert f"{2 * len(results[:-1])} runs of {len(results[:-1])} settings" in page
