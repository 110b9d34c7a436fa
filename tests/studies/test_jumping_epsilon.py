import json
from pathlib import Path

import numpy as np
import pytest

import jumping_epsilon
from fill_docs import fill
from jumping_epsilon import epsilon_metric_table, main, measure, nearest
from jumping_tables import epsilon_table
from pisces.reports.results import StoredRuns

COMMITTED = Path(__file__).parents[2] / "results" / "jumping" / jumping_epsilon.FILE


def test_committed_rows_can_be_measured_again():
    rows = {(row["epsilon"], row["metric"]): row for row in json.loads(COMMITTED.read_text())["rows"]}
    assert set(rows) == {(e, m) for e in jumping_epsilon.EPSILONS for m in jumping_epsilon.METRICS}
    assert measure(0.3, "psm-mdp") == pytest.approx(rows[0.3, "psm-mdp"], abs=1e-6)
    assert all(row["bound_holds"] for row in rows.values())


def test_positives_stay_and_weights_do_not():
    """Below 0.5 both metrics keep the positives; only the one along optimal episodes keeps the weights."""
    along, own = (measure(0.4, metric) for metric in ("psm", "psm-mdp"))
    assert along["same_nearest_percent"] == own["same_nearest_percent"] == 100
    assert along["mean_weight"] > 0.999 > 2 * own["mean_weight"]
    assert own["largest_distance_of_equals"] == 0
    assert measure(0.5, "psm-mdp")["mean_weight"] == 0


def test_nearest_states_are_the_first_of_equals_in_both_directions():
    distance = np.array([[[1.0, 0.0, 0.0], [0.5, 1e-12, 0.0]]])
    # 1e-12 survives in single precision: it is small, not rounded away.
    assert nearest(distance).tolist() == [[1, 2, 1, 0, 0]]


def test_command_writes_what_the_table_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(jumping_epsilon, "EPSILONS", (0.0,))
    document = "<!-- table: jumping_epsilon_metric -->\n<!-- end -->\n"
    assert "Not measured yet" in fill(document, StoredRuns(()), tmp_path)
    main(tmp_path)
    path = tmp_path / "jumping" / jumping_epsilon.FILE
    assert str(path) in capsys.readouterr().out
    table = epsilon_metric_table(tmp_path)
    assert "| 0 | own transitions | 100.0 | 0.969 |" in table
    assert table in fill(document, StoredRuns(()), tmp_path)


def test_cells_without_runs_show_no_number():
    for line in epsilon_table(()).splitlines()[2:]:
        assert line.split("|")[2:4] == [" – ", " – "]
