import math
from pathlib import Path

import pytest
from stored_runs import jumping_run, stored_run

from claims import (
    EXPLANATIONS,
    GAINS,
    Compared,
    claims_table,
    compared_cells,
    disagreements_table,
    distracting_summary,
    linked_claims,
    verdict,
)
from pisces.experiments.distracting.config import DistractingConfig
from pisces.experiments.distracting.experiment import Distracting
from pisces.experiments.jumping.report.tables import published_changes
from pisces.experiments.published import Published
from pisces.reports.results import StoredRuns

NOWHERE = Path("nowhere")


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ((), "not run"),
        ((9.0, 9.5, 9.2, 9.1), "too few seeds"),
        ((9.0, 9.5, 9.2, 9.1, 8.8), "confirmed"),
        ((-9.0, -9.5, -9.2, -9.1, -8.8), "opposite"),
        ((9.0, -9.5, 5.0, -3.0, 1.0), "not significant"),
    ],
)
def test_verdicts_follow_from_the_interval(differences, expected):
    assert verdict(differences) == expected


def test_distance_is_in_standard_errors_of_both_means():
    cell = Compared("x", (10.0, 14.0), Published(8.0, 30.0), 3.0)
    assert cell.distance == pytest.approx((4.0 - 0.05) / math.hypot(2.0, 3.0))  # 8.0 may be 7.95 to 8.05
    assert Compared("x", (10.0,), Published(8.0, 30.0), 3.0).distance == 0
    assert Compared("x", (10.0, 10.0), Published(8.0, 0.0), 0.0).distance == math.inf
    assert Compared("x", (6.0, 6.0), Published(8.0, 0.0), 0.0).distance == -math.inf
    assert Compared("x", (8.04, 8.04), Published(8.0, 0.0), 0.0).distance == 0
    assert Compared("x", (0.036, 0.036), Published(0.03, 0.0), 0.0).distance == math.inf


def test_tables_name_claims_and_differences_of_the_runs():
    percents = {"randconv": (50.0, 52.0, 51.0, 49.0, 50.0), "randconv+pse": (90.0, 91.0, 92.0, 90.0, 89.0)}
    runs = [
        jumping_run(method, seed, values={"test_solved_percent": value}, grid="narrow")
        for method, values in percents.items()
        for seed, value in enumerate(values)
    ]
    table = claims_table(StoredRuns(tuple(runs)), NOWHERE)
    (line,) = (line for line in table.splitlines() if "PSEs add to RandConv, narrow grid" in line)
    assert "| confirmed |" in line
    assert "means of all seeds" not in line
    more = [*runs, jumping_run("randconv", 5, values={"test_solved_percent": 80.4}, grid="narrow")]
    (line,) = (row for row in claims_table(StoredRuns(tuple(more)), NOWHERE).splitlines() if "RandConv, narrow" in row)
    assert "; means of all seeds 90.4 (n=5) and 55.4 (n=6)" in line
    assert len(table.splitlines()) >= len(GAINS) + 2
    found = disagreements_table(StoredRuns(tuple(runs)), NOWHERE)
    assert "| RandConv, narrow grid | 50.4, n=5 | 33.7 (11.8) |" in found
    assert found.count("unexplained") == 2


def test_explanations_are_of_the_cell():
    cells = {cell.where: cell.explanation for cell in compared_cells(StoredRuns(()))}
    assert cells["LQR, `l1`, 500 distractors"] == EXPLANATIONS["lqr", "l1"]
    assert cells["Bisimulation Transfer, random grid"] == EXPLANATIONS["bisimulation-transfer", "random"]
    assert cells["RandConv, narrow grid"] == "unexplained"


def test_explanations_of_colors_show_the_same_method_with_the_published_network():
    changes = published_changes("pse")
    runs = [
        jumping_run("pse", seed, colors=True, values={"red_test_solved_percent": 20.0 + seed}, changes=changes)
        for seed in range(2)
    ]
    cells = {cell.where: cell.explanation for cell in compared_cells(StoredRuns(tuple(runs)))}
    assert "published network and kernels 20.5, n=2" in cells["PSEs, red tasks, our network"]
    assert "published network and kernels not run" in cells["RandConv, red tasks, our network"]


def test_links_of_readme_lead_to_the_documentation():
    text = linked_claims(StoredRuns(()), NOWHERE)
    assert "](#" not in text
    assert "](docs/reproduction.md#table-1)" in text


def test_returns_with_and_without_pses_are_paired_by_seed():
    returns = {"drq": (400.0, 420.0, 410.0, 440.0, 430.0), "drq+pse": (520.0, 560.0, 530.0, 550.0, 570.0)}
    runs = [
        stored_run(
            Distracting(), DistractingConfig.make(method, "cpu", seed=seed), train_return=600.0, test_return=value
        )
        for method, values in returns.items()
        for seed, value in enumerate(values)
    ]
    (line,) = (line for line in claims_table(StoredRuns(tuple(runs)), NOWHERE).splitlines() if "Distracting" in line)
    assert "| confirmed | difference of returns on the same seeds: **126**" in line
    assert "](docs/distracting.md#results)" in linked_claims(StoredRuns(tuple(runs)), NOWHERE)
    runs += [
        stored_run(
            Distracting(), DistractingConfig.make(method, "cpu", task="finger-spin"), train_return=1.0, test_return=r
        )
        for method, r in (("drq", 650.0), ("drq+pse", 640.0))
    ]
    text = distracting_summary(StoredRuns(tuple(runs)), NOWHERE)
    assert "PSEs raise the return on unseen videos on cartpole-swingup (5 seeds, +126 on average)" in text
    assert "too few for a verdict, were run on finger-spin (1 seed, -10 on average)." in text
    assert distracting_summary(StoredRuns(()), NOWHERE) == "Not run yet.\n"
