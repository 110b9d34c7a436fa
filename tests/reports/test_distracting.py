import json

import pytest

from pisces.cli import main
from pisces.experiments.distracting import PRESETS, make_config
from pisces.experiments.store import config_hash
from pisces.reports.distracting import (
    alignment_markdown,
    curve_figures,
    distracting_markdown,
    distracting_tables,
    group_distracting,
    plain_markdown,
)
from pisces.reports.distracting_figures import main as draw
from pisces.reports.paper import DISTRACTING
from pisces.reports.readme import fill
from pisces.reports.results import read_results, read_runs


def result_of(method="drq", task="cartpole-swingup", seed=0, test=500.0, preset="cpu", **arguments):
    config = make_config(method, task, seed, preset, **arguments)
    curve = [
        {"step": step, "train_return": 2 * step / 1000, "test_return": test * step / 4000} for step in (2000, 4000)
    ]
    returns = {"train_return": test + 100, "test_return": test}
    return {"config": config.as_dict(), **returns, "curve": curve}


@pytest.fixture
def results():
    own = [result_of("drq", seed=seed, test=400.0 + 100 * seed) for seed in (0, 1, 2)]
    own += [result_of("drq+pse", seed=0, test=700.0), result_of("drq+pse", init="pretrained", test=710.0)]
    other = [result_of(test=1.0, changes={"steps": 8}), result_of(test=2.0, variant="plain")]
    return [*own, *other, result_of(task="walker-stand", test=300.0), result_of(preset="smoke", test=3.0)]


def write(root, results):
    for result in results:
        method = result["config"]["method"]
        folder = root / "distracting" / method / config_hash(Identity(result["config"]))
        folder.mkdir(parents=True)
        (folder / "result.json").write_text(json.dumps(result))


class Identity(dict):
    def identity(self):
        return dict(self)


def test_table_stands_beside_the_papers(results):
    table, train = distracting_tables(results)
    rows = {(row[0], row[1], row[2]): dict(zip(table.header, map(str, row), strict=True)) for row in table.rows}
    assert rows["cpu", "random", "DrQ"]["cartpole-swingup"] == "**500** (58), n=3 [252, 748] / 582 (42)"
    assert rows["cpu", "random", "DrQ"]["walker-stand"] == "**300**, n=1 / –"
    assert rows["cpu", "pretrained", "DrQ + PSEs"]["cartpole-swingup"] == "**710**, n=1 / 753 (13)"
    assert rows["smoke", "random", "DrQ"]["walker-walk"] == "– / 549 (83)"
    cpu = PRESETS["cpu"]
    assert f"{cpu['steps']:,} steps, frames of {cpu['frame_size']} pixels; smoke: 2,000 steps" in table.note
    assert [str(cell) for cell in train.rows[0][-2:]] == [
        "**600** (58), n=3 [352, 848]",
        "**500** (58), n=3 [252, 748]",
    ]


def test_what_explains_the_returns_is_told_of_runs_that_measured_it(results):
    measured = {"train": {"found_percent": 80.0, "action_difference": 0.5}}
    measured["test"] = {"found_percent": 40.0, "action_difference": 0.75}
    for seed, result in enumerate(result for result in results if result["config"]["method"] == "drq+pse"):
        result |= {"alignment": measured, "pair_return": 300.0}
        for row, loss in zip(result["curve"], (5.0 + seed, 4.0), strict=True):
            row["auxiliary_loss"] = loss
    lines = alignment_markdown(results).splitlines()
    assert lines[2:] == [
        "| cpu | random | DrQ + PSEs | cartpole-swingup | 1 | 300 | 5.00 → 4.00 | 80 / 40 | 0.50 / 0.75 |",
        "| cpu | pretrained | DrQ + PSEs | cartpole-swingup | 1 | 300 | 6.00 → 4.00 | 80 / 40 | 0.50 / 0.75 |",
    ]
    assert "No finished run" in alignment_markdown([])


def test_the_undistracted_task_has_a_table_of_its_own(results):
    (line,) = plain_markdown(results).splitlines()[2:]
    assert line == "| cpu | DrQ | cartpole-swingup | 0 | 4,000: 2 | **2** |"
    assert "No finished run" in plain_markdown(results[:3])


def test_published_numbers_of_six_tasks():
    assert {len(row) for row in DISTRACTING.values()} == {6}
    assert (DISTRACTING["pretrained", "drq"]["finger-spin"].mean, len(DISTRACTING)) == (764, 4)


def test_a_seed_counts_once(results):
    groups = group_distracting([*results, result_of("drq", seed=1, test=0.0, threads=1)])
    assert [run["test_return"] for run in groups["distracting", "cpu", "random", "drq", "cartpole-swingup"]] == [
        400.0,
        500.0,
        600.0,
    ]


def test_curves_have_a_panel_per_task(results, tmp_path):
    figures = curve_figures(results)
    assert list(figures) == ["distracting_curves_cpu", "distracting_curves_smoke"]
    panels = [axes for axes in figures["distracting_curves_cpu"][1].axes if axes.get_visible()]
    assert [axes.get_title() for axes in panels] == ["cartpole-swingup", "walker-stand"]
    solid, dashed = panels[0].lines[:2]
    assert solid.get_ydata().tolist() == [250.0, 500.0]
    assert dashed.get_ydata().tolist() == [4.0, 8.0]
    write(tmp_path / "results", results)
    draw([str(tmp_path / "results"), str(tmp_path / "images")])
    assert (tmp_path / "images" / "distracting_curves.png").read_bytes().startswith(b"\x89PNG")


def test_documents_say_when_there_are_no_runs(results, tmp_path, capsys):
    document = "<!-- table: distracting -->\nold\n<!-- end -->\n<!-- table: distracting-train -->\n<!-- end -->\n"
    assert fill(document, ()).count("No finished run") == 2
    filled = fill(document, tuple(results))
    assert filled.count("| cpu | random | DrQ |") == 3
    assert distracting_markdown(results) in filled
    draw([str(tmp_path), str(tmp_path / "images")])
    assert "No finished run" in capsys.readouterr().out
    assert not (tmp_path / "images").exists()


def test_report_of_control_runs_alone(results, tmp_path):
    write(tmp_path / "runs", results)
    assert main(["report", str(tmp_path / "runs"), "--out", str(tmp_path / "out"), "--projection", "none"]) == 0
    assert {path.name for path in (tmp_path / "out" / "tables").iterdir()} == {
        f"distracting{part}.{kind}" for part in ("", "_train") for kind in ("md", "csv")
    }
    assert (tmp_path / "out" / "figures" / "distracting_curves_cpu.pdf").exists()
    page = (tmp_path / "out" / "report.html").read_text()
    command = (
        "pisces train distracting --task cartpole-swingup --method drq+pse --init pretrained --seed 0 --preset cpu"
    )
    assert command in page


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda r: r.update(train_return=None), "finite number as train_return"),
        (lambda r: r["config"].update(task=3), "without task, init and preset"),
        (lambda r: r["config"].update(protocol=[]), "without steps and frame_size"),
        (lambda r: r["curve"][0].update(step="soon"), "rows of numbers in curve"),
    ],
)
def test_results_of_another_kind_are_named(change, problem, tmp_path):
    result = result_of()
    change(result)
    write(tmp_path, [result])
    found = read_runs([tmp_path])
    assert found.runs == ()
    assert problem in found.skipped[0]
    assert len(read_results(tmp_path).rows) == 1
