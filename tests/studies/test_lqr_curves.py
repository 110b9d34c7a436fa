import json

import pytest
import torch
from stored_runs import lqr_config

import lqr_curves
from lqr_ablation import descent
from lqr_curves import add_curves, curves, ipo_table, main, norm_figure, read_curves, values_by_step
from pisces.errors import UserError
from pisces.experiments.lqr.data import evaluate_seed, train_seeds


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.mark.parametrize(
    ("method", "changes"),
    [("ipo", {}), ("psm", {"width": 30, "aggregation": 10.0}), ("psm", {"width": 30, **descent("momentum", 10.0)})],
)
def test_a_point_of_the_curve_is_a_run_of_that_length(method, changes):
    config = lqr_config(method, 40, (3,), changes={**changes, "max_steps": 7})
    run = evaluate_seed(config, 3, train_seeds(config, (3,), lambda step, left, cost: None)[0])
    (row,) = curves(config, (3,), (7,))["3"]
    assert row["step"] == run["steps"] == 7
    for name in set(row) - {"step"}:
        assert row[name] == pytest.approx(run[name], rel=1e-4)
    assert ("aggregation_residual" in row) is (method == "psm")


def test_seeds_are_stored_and_not_trained_again(tmp_path, monkeypatch):
    assert "Not measured yet" in ipo_table(tmp_path)
    config = lqr_config("ipo", 40, (3,))
    monkeypatch.setattr(lqr_curves, "BATCH", 2)
    add_curves(tmp_path, "ipo 500", config, (5, 3, 4), (2, 4))
    stored = read_curves(tmp_path)
    assert list(stored["ipo 500"]) == ["3", "4", "5"]
    add_curves(tmp_path, "ipo 500", config, (3, 4, 5), (9,))
    assert read_curves(tmp_path) == stored
    errors = values_by_step(stored["ipo 500"], "error")[2]
    assert f"| 2 | {sum(errors) / 3:.1f} (" in ipo_table(tmp_path)
    assert "| the paper | 32.6 (5.0) |" in ipo_table(tmp_path)


def test_unstable_policies_are_counted(tmp_path):
    cell = {str(seed): [{"step": 5, "error": error}] for seed, error in enumerate((1.0, 3.0))} | {"2": [{"step": 5}]}
    (tmp_path / "lqr").mkdir()
    (tmp_path / "lqr" / "curves.json").write_text(json.dumps({"ipo 500": cell}))
    assert "| 5 | 2.0 (1.4), 1 unstable |" in ipo_table(tmp_path)
    assert values_by_step({"0": [{"step": 5}], "1": [{"step": 5, "error": 1.0}]}, "error") == {5: [float("inf"), 1.0]}


def test_norms_are_drawn_by_optimizer(tmp_path):
    config = lqr_config("psm", 40, (3,), changes={"width": 30, "aggregation": 10.0})
    add_curves(tmp_path, "adam 100", config, (3,), (1, 2))
    lines = norm_figure(tmp_path).axes[0].get_lines()
    assert [list(line.get_xdata()) for line in lines] == [[], [1, 2], []]


def test_a_wrong_list_of_seeds_is_explained(tmp_path):
    with pytest.raises(UserError, match="seeds are written as"):
        main("x", out=tmp_path)
