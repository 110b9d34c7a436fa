import csv
import io
import itertools

import pytest

from pisces.reports.jumping_tables import aggregate_table, color_series, jumping_tables, table_1
from pisces.reports.tables import Cell, percent_interval

SEEDS = itertools.count()


def result(method="randconv", grid="wide", value=50.0, colors=False, epsilon=0.0, **config):
    study = f"epsilon={epsilon}" if epsilon else ""
    # A seed of its own, unless the test gives one: equal seeds count once.
    config = {"seed": next(SEEDS), **config}
    defaults = {"method": method, "grid": grid, "preset": "paper", "colors": colors, "epsilon": epsilon, "study": study}
    values = {"red_test_solved_percent": value, "green_test_solved_percent": 100.0} if colors else {}
    return {"config": {**defaults, **config}, **(values or {"test_solved_percent": value})}


def named(results):
    return {table.name: table for table in jumping_tables(results)}


def test_only_tables_with_runs_are_there():
    assert list(named([result()])) == ["table1"]
    assert list(named([result("randconv+psm-l2")])) == ["table2"]
    assert list(named([result(colors=True)])) == ["colors"]
    assert list(named([result(preset="smoke")])) == []


def test_table_1_has_the_papers_rows_and_then_others():
    table = table_1([result(value=40.0), result(value=60.0), result("mine", "narrow", 99.0)])
    lines = table.markdown().splitlines()
    assert lines[0].startswith("## Table 1")
    assert lines[4] == "| data augmentation | method | wide | narrow | random |"
    assert [line.split(" | ")[1] for line in lines[6:]] == [
        "Dropout and l2 reg.", "Bisimulation Transfer", "PSEs", "RandConv", "RandConv + π*-bisimulation",
        "RandConv + PSEs", "mine",
    ]  # fmt: skip
    # Two runs 40 and 60: mean 50, deviation 14.14, t(1 degree of freedom) = 12.7 standard errors of 10 on either side.
    assert "| yes | RandConv | **50.0** (14.1), n=2 [0.0, 100.0] / 50.7 (24.2) | – / 33.7 (11.8) |" in lines[9]
    assert "| **99.0**, n=1 / – |" in lines[12]


def test_csv_has_one_line_per_cell():
    rows = list(csv.DictReader(io.StringIO(table_1([result(value=v) for v in (40.0, 50.0, 60.0)]).csv())))
    assert len(rows) == 6 * 3
    (row,) = [row for row in rows if row["method"] == "RandConv" and row["column"] == "wide"]
    assert (row["seeds"], row["mean"], row["standard_deviation"]) == ("3", "50", "10")
    assert float(row["low_95"]) == pytest.approx(50 - 4.302653 * 10 / 3**0.5, abs=1e-4)
    assert row["high_99"] == "100"
    assert (row["paper_mean"], row["paper_spread"]) == ("50.7", "24.2")
    assert rows[0]["seeds"] == "0"
    assert rows[0]["mean"] == ""


def test_ablation_is_two_by_two():
    results = [result("randconv+psm-cme", value=80.0), result("randconv+bisimulation", value=30.0)]
    bisimulation, psm = named(results)["table2"].rows
    assert (bisimulation[0], psm[0]) == ("π*-bisimulation", "PSM")
    assert [cell.values for cell in bisimulation[1:]] == [(30.0,), ()]
    assert [cell.published.mean for cell in psm[1:]] == [17.5, 87.0]
    assert psm[2].values == (80.0,)


def test_runs_as_the_published_code_sees_colours_are_a_series_of_their_own():
    rows = [
        result("pse", colors=True, value=10.0),
        result("pse", colors=True, value=20.0, study="network=rows"),
        result("randconv", colors=True, value=30.0, study="kernels=rows,network=rows"),
        result("randconv", colors=True, value=40.0, study="network=rows"),
        result("pse", value=50.0, study="network=rows"),
    ]
    series = {
        "our network and kernels": {"pse": (10.0,)},
        "network and kernels of the published code": {"pse": (20.0,), "randconv": (30.0,)},
    }
    assert color_series(rows) == series
    assert color_series(rows[:1]) == {"our network and kernels": {"pse": (10.0,)}}


def test_colors_have_standard_errors_and_99_percent():
    table = named([result(colors=True, value=v) for v in (10.0, 20.0, 30.0)])["colors"]
    text = table.markdown()
    assert "| RandConv | **20.0** (5.8), n=3 [0.0, 77.3] / 6.2 (0.4) | **100.0** (0.0), n=3" in text
    assert "99 %" in text


def test_epsilon_rows_are_those_of_studied_methods():
    results = [result("a", value=80.0), result("a", epsilon=0.1, value=70.0), result("b"), result("a", "narrow")]
    results.append(result("a", epsilon=0.1, value=1.0, study="epochs=3,epsilon=0.1"))
    rows = named(results)["epsilon"].rows
    assert [(row[0], row[1], row[2].values) for row in rows] == [("a", "0", (80.0,)), ("a", "0.1", (70.0,))]


def test_suboptimal_policies_with_the_same_training_share_the_runs_of_optimal_ones():
    results = [result("randconv+pse", value=v, seed=s) for s, v in enumerate((80.0, 90.0))]
    assert "epsilon" not in named(results)
    results += [
        result("randconv+pse", epsilon=0.5, value=20.0),
        result("randconv+pse", epsilon=0.4, value=80.0, seed=0),
    ]
    rows = {row[1]: row[2].values for row in named(results)["epsilon"].rows}
    same = {f"{epsilon}, same as 0": (80.0, 90.0) for epsilon in (0.1, 0.2, 0.3, 0.4)}
    assert rows == {"0": (80.0, 90.0), **same, "0.5": (20.0,)}


def test_markdown_keeps_names_from_being_markup():
    text = table_1([result("<script>|x")]).markdown()
    assert "<script>" not in text
    assert "&lt;script&gt;\\|x" in text


def test_intervals_of_percentages_stay_percentages():
    assert percent_interval([1.0, 99.0], 0.95) == (0.0, 100.0)
    assert percent_interval([5.0], 0.95) is None
    assert str(Cell()) == "– / –"


def test_aggregates_compare_with_the_baseline():
    results = [result(grid=g, value=v) for g in ("wide", "narrow") for v in (10.0, 20.0)]
    results += [result("pse", g, v) for g in ("wide", "narrow") for v in (50.0, 60.0)]
    results += [result("alone", "wide", 1.0)]
    lines = aggregate_table(results).splitlines()
    assert len(lines) == 8
    assert "| pse | wide 2, narrow 2 | 55.0 [50.0, 60.0] |" in lines[6]
    assert lines[6].endswith("| 1.00 [1.00, 1.00] |")
    assert aggregate_table([]) == ""


def test_a_seed_counts_once():
    runs = [result(seed=0), result(seed=1, value=60.0), result(seed=1, value=60.0, threads=2)]
    assert "**55.0** (7.1), n=2" in table_1(runs).markdown()
    colored = [result(colors=True, seed=0), result(colors=True, seed=0, threads=2)]
    assert color_series(colored)["our network and kernels"] == {"randconv": (50.0,)}
    suboptimal = [result("randconv+pse", epsilon=0.1, seed=0), result("randconv+pse", epsilon=0.1, seed=0, threads=2)]
    assert "n=1" in named(suboptimal)["epsilon"].markdown()
