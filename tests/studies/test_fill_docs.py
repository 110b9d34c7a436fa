"""The documents' tables: filled from stored runs, and in agreement with the committed results."""

from pathlib import Path

import pytest
from stored_runs import jumping_run

from fill_docs import TABLES, fill, picture
from pisces.experiments.registry import all_experiments
from pisces.reports.results import StoredRuns, read_runs

ROOT = Path(__file__).parents[2]
DOCUMENTS = (
    "README.md",
    *(f"docs/{name}.md" for name in ("lqr", "distracting", "reproduction", "reproduction_details", "howto_sb3")),
    *(f"docs/{name}.md" for name in ("minigrid", "faults", "metrics", "metric_aggregation")),
)


@pytest.fixture(scope="module")
def committed():
    return read_runs([ROOT / "results"], all_experiments())


def test_fill_replaces_the_marked_table_only():
    runs = StoredRuns((jumping_run("randconv", values={"test_solved_percent": 50.0}),))
    document = "before\n<!-- table: jumping -->\nold\n<!-- end -->\nafter\n"
    filled = fill(document, runs, Path("x"))
    assert "old" not in filled
    assert filled.startswith("before\n<!-- table: jumping -->\n| method")
    assert filled.endswith("<!-- end -->\nafter\n")
    assert fill(filled, runs, Path("x")) == filled


@pytest.mark.parametrize("name", TABLES)
def test_tables_can_be_written_without_runs(name):
    document = f"<!-- table: {name} -->\nold\n<!-- end -->"
    assert "old" not in fill(document, StoredRuns(()), Path("x"))


def test_all_committed_results_are_readable(committed):
    assert committed.skipped == ()
    assert set(committed.by_experiment()) == set(all_experiments())


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_agree_with_the_committed_results(name, committed):
    document = (ROOT / name).read_text()
    assert "<!-- table: " in document
    assert fill(document, committed, ROOT / "results") == document, "run `make readme`"


def test_every_document_with_a_table_is_checked():
    found = [path for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")) if "<!-- table: " in path.read_text()]
    assert {str(path.relative_to(ROOT)) for path in found} == set(DOCUMENTS)


def test_the_picture_shows_the_share_of_runs_that_solve_each_task(committed):
    runs = [run for run in committed.of("jumping") if run.config.method == "randconv" and run.config.seed < 3]
    (axes,) = picture(runs).axes
    tiles = axes.images[0].get_array()
    assert tiles.shape == (11, 26)
    assert set((3 * tiles).round(6).ravel().tolist()) <= {0.0, 1.0, 2.0, 3.0}
    assert "(3 seeds)" in axes.get_title()
    assert len(axes.collections[-1].get_offsets()) == 18
