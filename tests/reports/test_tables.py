import itertools
from pathlib import Path

import pytest

from pisces.reports.paper import JUMPING
from pisces.reports.readme import fill
from pisces.reports.results import read_results
from pisces.reports.tables import group_jumping, jumping_table, summary

ROOT = Path(__file__).parents[2]
SEEDS = itertools.count()


def result(method="randconv", grid="wide", value=50.0, **config):
    defaults = {"method": method, "grid": grid, "preset": "paper", "colors": False, "study": "", "seed": next(SEEDS)}
    return {"config": {**defaults, **config}, "test_solved_percent": value}


def test_cells_hold_only_the_methods_own_runs():
    results = [
        result(value=40.0),
        result(value=60.0),
        result(value=1.0, study="weighted=False"),
        result(value=2.0, preset="smoke"),
        result(value=3.0, colors=True),
        result(grid="narrow", value=30.0),
    ]
    assert group_jumping(results) == {("randconv", "wide"): [40.0, 60.0], ("randconv", "narrow"): [30.0]}


def test_table_puts_the_papers_number_beside_ours():
    table = jumping_table([result(value=40.0), result(value=60.0), result("mine", value=99.0)])
    rows = table.splitlines()
    assert len(rows) == 4
    assert "**50.0** (14.1), n=2 / 50.7 (24.2)" in rows[2]
    assert "– / 33.7 (11.8)" in rows[2]
    assert "`mine`" in rows[3]
    assert "**99.0**, n=1 / –" in rows[3]


def test_summary_by_hand():
    assert summary([1.0, 2.0, 3.0]) == "**2.0** (1.0), n=3"


def test_fill_replaces_the_marked_table_only():
    document = "before\n<!-- table: jumping -->\nold\n<!-- end -->\nafter\n"
    filled = fill(document, (result(),))
    assert "old" not in filled
    assert filled.startswith("before\n<!-- table: jumping -->\n| method")
    assert filled.endswith("<!-- end -->\nafter\n")
    assert fill(filled, (result(),)) == filled


@pytest.mark.parametrize("name", ["README.md", "docs/lqr.md", "docs/distracting.md", "docs/reproduction.md"])
def test_documents_agree_with_the_committed_results(name):
    document = (ROOT / name).read_text()
    assert "<!-- table: " in document
    assert fill(document, read_results(ROOT / "results").rows, ROOT / "results") == document, "run `make readme`"


def test_damaged_results_are_named_and_left_alone(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "result.json").write_text("{")
    (tmp_path / "b" / "result.json").write_text('{"config": {}, "test_solved_percent": 1}')
    found = read_results(tmp_path)
    assert [path.parent.name for path in found.damaged] == ["a"]
    assert len(found.rows) == 1
    assert (tmp_path / "a" / "result.json").read_text() == "{"


@pytest.mark.parametrize(("method", "grid", "mean"), [("randconv+pse", "wide", 87.0), ("pse", "random", 37.7)])
def test_published_numbers(method, grid, mean):
    assert JUMPING[method][grid].mean == mean
