import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from stored_runs import jumping_run

from fill_docs import fill
from jumping_tables import (
    SECTIONS,
    early_table,
    gain_table,
    paired_differences,
    speed_table,
    stopped_early,
    variant_table,
    variant_values,
)
from jumping_variants import Variant
from pisces.reports.results import StoredRuns

ONCE_PER_RUN = {"passthrough_per": "run"}


def run_of(method, seed, solved, changes=None, curve=(), **options):
    values = {
        "test_solved_percent": solved,
        "heldout_solved_percent": solved / 2,
        "red_test_solved_percent": solved,
        "curve": [{"iteration": k, "test_solved_percent": p} for k, p in curve],
    }
    return jumping_run(method, seed, values=values, changes=changes, **options)


ROWS = (
    run_of("randconv", 0, 40.0),
    run_of("randconv", 1, 60.0),
    run_of("randconv", 0, 10.0, ONCE_PER_RUN),
    run_of("randconv", 0, 99.0, grid="narrow"),
    run_of("randconv", 0, 98.0, preset="quick"),
    run_of("randconv", 0, 97.0, colors=True),
    run_of("randconv+pse", 0, 90.0, curve=[(100, 20.0), (200, 85.0), (300, 70.0), (400, 90.0)]),
    run_of("randconv+pse", 1, 50.0, curve=[(100, 20.0), (200, 50.0)]),
    run_of("randconv+pse", 0, 30.0, training_tasks=6),
    run_of("randconv+shift", 0, 77.0, {"shift_border": 0}, grid="narrow"),
    run_of("pse", 0, 33.0, {"network": "rows"}, colors=True),
    run_of(
        "pse",
        0,
        21.0,
        {"learning_rate": 3.2e-3, "l2_coefficient": 1e-5, "temperature": 1.0, "coefficient": 10.0},
        colors=True,
    ),
)


def test_only_runs_of_the_variant_count():
    assert variant_values(ROWS, Variant("", "randconv"), "test_solved_percent") == (40.0, 60.0)
    assert variant_values(ROWS, Variant("", "randconv", ONCE_PER_RUN), "heldout_solved_percent") == (5.0,)
    assert variant_values(ROWS, Variant("", "randconv", grid="narrow"), "test_solved_percent") == (99.0,)
    assert variant_values(ROWS, Variant("", "randconv"), "test_solved_percent", colors=True) == (97.0,)


def test_variants_are_compared_on_common_seeds():
    value = "test_solved_percent"
    pair = (Variant("", "randconv"), Variant("", "randconv+pse"))
    assert paired_differences(ROWS, *pair, value) == (50.0, -10.0)
    assert paired_differences(ROWS, pair[0], Variant("", "randconv", ONCE_PER_RUN), value) == (-30.0,)
    assert paired_differences(ROWS, pair[0], Variant("", "pse"), value) == ()
    lines = [line.split("|") for line in variant_table(pair, paired=True)(ROWS).splitlines()]
    assert lines[2][-2].strip() == ""
    assert "**20.0** (42.4), n=2" in lines[3][-2]


def test_gains_compare_the_same_setting_and_seeds():
    lines = {line.split(" | ")[0].strip("| "): line for line in gain_table(ROWS).splitlines()}
    assert "| **50.0** (14.1), n=2" in lines["RandConv, wide grid"]
    assert "| **20.0** (42.4), n=2" in lines["RandConv, wide grid"]
    assert lines["RandConv, 6 training tasks"].endswith("| – | **30.0**, n=1 | – |")
    assert lines["red tasks, RandConv"].endswith("| **97.0**, n=1 | – | – |")
    assert "**33.0**" in lines["red tasks, no augmentation, network of the published code"]


def test_an_agent_stopped_early_is_the_first_with_most_validation_tasks():
    def evaluation(iteration, validation, heldout):
        return {
            "iteration": iteration,
            "validation_solved_percent": validation,
            "heldout_solved_percent": heldout,
        }

    def run(method, seed, *curve):
        plain = run_of(method, seed, 2 * curve[-1][2])
        return replace(plain, result={**plain.result, "curve": [evaluation(*row) for row in curve]})

    rows = (
        run("randconv", 0, (100, 50.0, 10.0), (200, 90.0, 70.0), (300, 90.0, 80.0), (400, 80.0, 40.0)),
        run("randconv+pse", 0, (100, 50.0, 10.0), (200, 90.0, 95.0)),
        run_of("randconv", 1, 60.0),
        run_of("randconv", 2, 60.0, curve=[(100, 30.0)]),
    )
    assert [row["heldout_solved_percent"] for row in stopped_early(rows)] == [70.0, 95.0]
    assert rows[0]["heldout_solved_percent"] == 40.0
    lines = [line for line in early_table(rows).splitlines() if "wide" in line]
    assert lines[0].startswith("| RandConv, wide grid | last | **33.3** (5.8), n=3")
    assert lines[0].endswith("| **95.0**, n=1 | **55.0**, n=1 |")
    assert lines[1] == "| RandConv, wide grid | stopped early | **70.0**, n=1 | **95.0**, n=1 | **25.0**, n=1 |"


def test_speed_is_the_first_evaluation_above_the_line():
    line = next(line for line in speed_table(ROWS).splitlines() if "randconv+pse" in line)
    assert [cell.strip() for cell in line.strip("|").split("|")][1:] == ["200", "1 of 2"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("jumping_passthrough", "**50.0**"),
        ("jumping_tasks", "**30.0**, n=1"),
        ("jumping_recipe", "| narrow grid, with the border shifted too | **77.0**, n=1 | **38.5**, n=1 |"),
        ("jumping_colors", "| PSEs, hyperparameters of Table 1 | **21.0**, n=1 | – |"),
        ("jumping_colors", "| PSEs, network of the published code | **33.0**, n=1 / 37.9 (1.9) | – / 100.0 (0.0) |"),
    ],
)
def test_sections_hold_the_numbers_and_their_commands(name, expected):
    text = fill(f"<!-- table: {name} -->\nold\n<!-- end -->", StoredRuns(ROWS), Path("x"))
    assert expected in text
    assert "old" not in text
    commands = [line for line in text.splitlines() if line.startswith("pisces sweep jumping")]
    assert commands
    assert all("--out" in shlex.split(command) for command in commands)


@pytest.mark.parametrize("name", SECTIONS)
def test_sections_can_be_written_without_any_run_of_the_task(name):
    assert SECTIONS[name](())
