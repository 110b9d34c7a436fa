from pathlib import Path

import pytest
from stored_runs import lqr_config, lqr_runs

import lqr_figures
from fill_docs import fill
from lqr_ablation import ablation_configs
from lqr_tables import ablation_figure, ablation_points, ablation_table, sparsity_table
from pisces.experiments.lqr.config import FIRST_TUNING_SEED, METHODS
from pisces.experiments.lqr.tables import seeds_by_cell
from pisces.reports.results import StoredRuns
from pisces.runs.store import RunFolder


@pytest.fixture
def runs():
    configs = [lqr_config(method, 500, (0, 1)) for method in METHODS] + ablation_configs(n_seeds=2)
    return [run for config in configs for run in lqr_runs(config, [1.0, 3.0])]


def test_ablation_cells_are_told_apart_by_what_they_change():
    configs = ablation_configs(n_seeds=2)
    names = [(config.method, str(config.changes)) for config in configs]
    assert len(set(names)) == len(names)
    # The cells without changes repeat the methods on seeds that the table of results leaves out.
    assert [config.method for config in configs if not config.changes] == ["psm", "l1"]
    assert {config.seeds for config in configs} == {(FIRST_TUNING_SEED, FIRST_TUNING_SEED + 1)}


def test_ablation_keeps_apart_what_was_changed(runs):
    points = ablation_points(runs)
    assert points["adam", 1e7, 2] == (2.0, 0.1, 20.0)
    assert {count for _, _, count in points} == {2, 3, 4, 8}
    assert ablation_table(runs).count("| adam | 1e+07 |") == 4
    assert len(sparsity_table(runs).splitlines()) == 2 + 6
    assert {cell[0]: len(rows) for cell, rows in seeds_by_cell(runs).items()} == dict.fromkeys(METHODS, 2)


def test_documents_are_filled(runs):
    document = "before\n<!-- table: lqr -->\nold\n<!-- end -->\n<!-- table: lqr_ablation -->\n<!-- end -->\nafter"
    filled = fill(document, StoredRuns(tuple(runs)), Path("x"))
    assert "old" not in filled
    assert "`psm`" in filled
    assert "| momentum |" in filled


def test_figures_are_drawn(runs, tmp_path):
    ablation_figure(runs).savefig(tmp_path / "ablation.png")
    assert (tmp_path / "ablation.png").stat().st_size > 5000
    for config in (lqr_config("psm", 500, (0, 1)), *ablation_configs(n_seeds=2)):
        values = {"runs": [run.result["runs"][0] for run in lqr_runs(config, [1.0, 3.0])]}
        RunFolder.of(tmp_path / "results", config).create(config).write_result(config, values)
    lqr_figures.main(tmp_path / "results", tmp_path / "images")
    assert {path.stem for path in (tmp_path / "images").iterdir()} == {"lqr_errors", "lqr_weights", "lqr_ablation"}
