import csv
import io
import itertools

import pytest
from stored_runs import jumping_run

from pisces.experiments.jumping.experiment import Jumping
from pisces.experiments.jumping.paper import JUMPING
from pisces.experiments.jumping.report.tables import (
    aggregate_table,
    by_method_and_grid,
    color_series,
    jumping_tables,
    summary_table,
    table_1,
)

SEEDS = itertools.count()


def run_of(method="randconv", grid="wide", value=50.0, colors=False, seed=None, **arguments):
    values = {"red_test_solved_percent": value, "green_test_solved_percent": 100.0} if colors else {}
    values = values or {"test_solved_percent": value}
    # A seed of its own, unless the test gives one: equal seeds count once.
    seed = next(SEEDS) if seed is None else seed
    return jumping_run(method, seed, values=values, grid=grid, colors=colors, **arguments)


def named(runs):
    return {table.name: table for table in jumping_tables(runs)}


def test_only_tables_with_runs_are_there():
    assert list(named([run_of()])) == ["table1"]
    assert list(named([run_of("randconv+psm-l2")])) == ["table2"]
    assert list(named([run_of(colors=True)])) == ["colors"]
    assert list(named([run_of(preset="smoke")])) == []


def test_table_1_has_the_papers_rows_and_then_others():
    table = table_1([run_of(value=40.0), run_of(value=60.0), run_of("randconv+true", "narrow", 99.0)])
    lines = table.markdown().splitlines()
    assert lines[0].startswith("## Table 1")
    assert lines[4] == "| data augmentation | method | wide | narrow | random |"
    assert [line.split(" | ")[1] for line in lines[6:]] == [
        "Dropout and l2 reg.", "Bisimulation Transfer", "PSEs", "RandConv", "RandConv + π*-bisimulation",
        "RandConv + PSEs", "RandConv + true similarity, the ideal metric",
    ]  # fmt: skip
    # Two runs 40 and 60: mean 50, deviation 14.14, t(1 degree of freedom) = 12.7 standard errors of 10 on either side.
    assert "| yes | RandConv | **50.0** (14.1), n=2 [0.0, 100.0] / 50.7 (24.2) | – / 33.7 (11.8) |" in lines[9]
    assert "| **99.0**, n=1 / – |" in lines[12]


def test_csv_has_one_line_per_cell():
    rows = list(csv.DictReader(io.StringIO(table_1([run_of(value=v) for v in (40.0, 50.0, 60.0)]).csv())))
    assert len(rows) == 6 * 3
    (row,) = [row for row in rows if row["method"] == "RandConv" and row["column"] == "wide"]
    assert (row["seeds"], row["mean"], row["standard_deviation"]) == ("3", "50", "10")
    assert float(row["low_95"]) == pytest.approx(50 - 4.302653 * 10 / 3**0.5, abs=1e-4)
    assert row["high_99"] == "100"
    assert (row["paper_mean"], row["paper_spread"]) == ("50.7", "24.2")
    assert rows[0]["seeds"] == "0"
    assert rows[0]["mean"] == ""


def test_ablation_is_two_by_two():
    runs = [run_of("randconv+psm-cme", value=80.0), run_of("randconv+pi-bisimulation", value=30.0)]
    bisimulation, psm = named(runs)["table2"].rows
    assert (bisimulation[0], psm[0]) == ("π*-bisimulation", "PSM")
    assert [cell.values for cell in bisimulation[1:]] == [(30.0,), ()]
    assert [cell.published.mean for cell in psm[1:]] == [17.5, 87.0]
    assert psm[2].values == (80.0,)


def test_runs_as_the_published_code_sees_colors_are_a_series_of_their_own():
    rows = [
        run_of("pse", colors=True, value=10.0),
        run_of("pse", colors=True, value=20.0, changes={"network": "rows"}),
        run_of("randconv", colors=True, value=30.0, changes={"kernels": "rows", "network": "rows"}),
        run_of("randconv", colors=True, value=40.0, changes={"network": "rows"}),
        run_of("pse", "narrow", 50.0, colors=True, changes={"network": "rows"}),
    ]
    series = {
        "our network and kernels": {"pse": (10.0,)},
        "network and kernels of the published code": {"pse": (20.0,), "randconv": (30.0,)},
    }
    assert color_series(rows) == series
    assert color_series(rows[:1]) == {"our network and kernels": {"pse": (10.0,)}}


def test_colors_have_standard_errors_and_99_percent():
    table = named([run_of(colors=True, value=v) for v in (10.0, 20.0, 30.0)])["colors"]
    text = table.markdown()
    assert "| RandConv | **20.0** (5.8), n=3 [0.0, 77.3] / 6.2 (0.4) | **100.0** (0.0), n=3" in text
    assert "99 %" in text


def test_epsilon_rows_are_those_of_studied_methods():
    pses = "randconv+pse"
    runs = [run_of(pses, value=80.0), run_of(pses, epsilon=0.1, value=70.0), run_of("pse"), run_of(pses, "narrow")]
    assert "epsilon" not in named([runs[0], *runs[2:]])
    runs.append(run_of(pses, epsilon=0.1, value=1.0, changes={"epochs": 3}))
    runs.append(run_of("randconv", epsilon=0.1, value=2.0))  # its loss compares no policies
    rows = named(runs)["epsilon"].rows
    assert [(row[0], row[1], row[2].values) for row in rows] == [(pses, "0", (80.0,)), (pses, "0.1", (70.0,))]


def test_aggregates_compare_with_the_baseline():
    runs = [run_of(grid=g, value=v) for g in ("wide", "narrow") for v in (10.0, 20.0)]
    runs += [run_of("pse", g, v) for g in ("wide", "narrow") for v in (50.0, 60.0)]
    runs += [run_of("dropout+l2", "wide", 1.0)]
    lines = aggregate_table(runs).splitlines()
    assert len(lines) == 8
    assert "| pse | wide 2, narrow 2 | 55.0 [50.0, 60.0] |" in lines[6]
    assert lines[6].endswith("| 1.00 [1.00, 1.00] |")
    assert aggregate_table([]) == ""


def test_a_seed_counts_once():
    runs = [run_of(seed=0), run_of(seed=1, value=60.0), run_of(seed=1, value=60.0, threads=2)]
    assert "**55.0** (7.1), n=2" in table_1(runs).markdown()
    colored = [run_of(colors=True, seed=0), run_of(colors=True, seed=0, threads=2)]
    assert color_series(colored)["our network and kernels"] == {"randconv": (50.0,)}
    suboptimal = [run_of("randconv+pse", epsilon=0.1, seed=0), run_of("randconv+pse", epsilon=0.1, seed=0, threads=2)]
    assert "n=1" in named(suboptimal)["epsilon"].markdown()


def test_cells_hold_only_the_methods_own_runs():
    runs = [
        run_of(value=40.0),
        run_of(value=60.0),
        run_of(value=1.0, changes={"weighted": False}),
        run_of(value=2.0, preset="smoke"),
        run_of(value=3.0, colors=True),
        run_of(value=4.0, training_tasks=9),
        run_of("randconv+pse", value=5.0, epsilon=0.1),
        run_of(grid="narrow", value=30.0),
    ]
    assert by_method_and_grid(runs) == {("randconv", "wide"): [40.0, 60.0], ("randconv", "narrow"): [30.0]}


def test_summary_puts_the_papers_number_beside_ours():
    runs = [run_of(value=40.0), run_of(value=60.0), run_of("randconv+true", value=99.0)]
    rows = summary_table(runs).splitlines()
    assert len(rows) == 4
    assert "**50.0** (14.1), n=2 / 50.7 (24.2)" in rows[2]
    assert "– / 33.7 (11.8)" in rows[2]
    assert "`randconv+true`" in rows[3]
    assert "**99.0**, n=1 / –" in rows[3]
    assert summary_table(runs, ["randconv+true"]).splitlines() == [*rows[:2], rows[3]]


@pytest.mark.parametrize(("method", "grid", "mean"), [("randconv+pse", "wide", 87.0), ("pse", "random", 37.7)])
def test_published_numbers(method, grid, mean):
    assert JUMPING[method][grid].mean == mean
    assert Jumping().published(run_of(method, grid).config) == JUMPING[method][grid]
    assert Jumping().published(run_of(method, grid, epsilon=0.1).config) is None
    assert Jumping().published(run_of(method, colors=True).config).mean == {"randconv+pse": 29.8, "pse": 37.9}[method]
