import base64
import json
import re

import numpy as np
import pytest
from page_data import page_data
from stored_runs import jumping_run

from pisces.cli import main
from pisces.envs.jumping import JumpingTask
from pisces.experiments.distracting.config import DistractingConfig
from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.jumping.data import task_metrics
from pisces.experiments.jumping.report import figures as result_figures
from pisces.experiments.jumping.report import task_figures
from pisces.experiments.jumping.report.embeddings import embed_run, embedding_figure, project, quantize
from pisces.experiments.lqr.config import LQRConfig
from pisces.experiments.minigrid.config import MiniGridConfig
from pisces.experiments.registry import all_experiments
from pisces.reports.colors import method_color, method_style
from pisces.reports.results import read_runs as read_runs_of
from pisces.reports.statistics import Scores
from pisces.runs.store import SCHEMA

PLAIN = ["--projection", "none"]


def read_runs(roots):
    return read_runs_of(roots, all_experiments())


def write_result(folder, config, **values):
    """Writes a result file of the right version, whatever its values."""
    folder.mkdir(parents=True)
    result = {"experiment": config.experiment, "schema": SCHEMA, "config": config.as_dict(), **values}
    (folder / "result.json").write_text(json.dumps(result))


def embedded_data(path):
    return page_data(path.read_text())


def bits(text, count):
    return "".join(map(str, np.unpackbits(np.frombuffer(base64.b64decode(text), np.uint8))[:count]))


@pytest.fixture(scope="module")
def reported(tmp_path_factory, write_run):
    """A report of runs of many kinds, and the folder it was made of."""
    root, out = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("out")
    for method in ("randconv", "randconv+pse"):
        for grid in ("wide", "random"):
            for seed in (0, 1):
                write_run(root, method, seed, 0.5 + 0.1 * seed, grid=grid)
    write_run(root, "pse", colors=True)
    write_run(root, "randconv+pse", epsilon=0.1)
    write_run(root, "randconv+psm-l2")
    write_result(root / "lqr", LQRConfig.make("psm", "paper"), runs=[{"seed": 0, "error": 0.25}])
    (root / "damaged").mkdir()
    (root / "damaged" / "result.json").write_text("{")
    assert main(["report", str(root), "--out", str(out), *PLAIN]) == 0
    return root, out


def test_report_of_minigrid(tmp_path):
    levels = {"train_solved_percent": 100.0, "validation_solved_percent": 50.0}
    for seed in (0, 1):
        config = MiniGridConfig.make("ppo", "standard", seed=seed)
        write_result(tmp_path / "runs" / str(seed), config, **levels, test_solved_percent=40.0 + seed)
    assert main(["report", str(tmp_path / "runs"), "--out", str(tmp_path / "out"), *PLAIN]) == 0
    (setting,) = embedded_data(tmp_path / "out" / "report.html")["settings"]
    assert (setting["paper"], setting["summary"]["mean"]) == (None, 40.5)
    assert "**40.5**" in (tmp_path / "out" / "tables" / "minigrid.md").read_text()


def test_report_of_results_that_hold_nothing_more_than_they_must(tmp_path, write_run):
    write_run(tmp_path / "runs", change=lambda result: result.pop("curve"))
    write_result(tmp_path / "runs" / "a", DistractingConfig.make("drq", "cpu"), test_return=1.0, train_return=2.0)
    write_result(tmp_path / "runs" / "b", LQRConfig.make("l1", "paper"), runs=[{"seed": 0, "error": 0.25}])
    assert main(["report", str(tmp_path / "runs"), "--out", str(tmp_path / "out"), *PLAIN]) == 0
    assert len(embedded_data(tmp_path / "out" / "report.html")["runs"]) == 3


def test_report_writes_what_the_runs_allow(reported):
    _, out = reported
    assert {path.name for path in (out / "tables").iterdir()} == {
        *(f"{name}.{kind}" for name in ("table1", "table2", "colors", "epsilon", "lqr") for kind in ("md", "csv")),
        "aggregates.md",
    }
    stems = {path.stem for path in (out / "figures").iterdir()}
    assert stems >= {"curves_wide", "curves_random", "epsilon", "colors", "profiles", "solved_00_white"}
    assert "embeddings" not in stems
    assert {(out / "figures" / f"{stem}.{kind}").exists() for stem in stems for kind in ("png", "pdf")} == {True}


def test_page_holds_every_run_with_its_command(reported):
    root, out = reported
    data = embedded_data(out / "report.html")
    assert len(data["runs"]) == 12
    by_command = {run.get("command"): run for run in data["runs"]}
    run = by_command["pisces train jumping --method randconv --preset paper --seed 1"]
    (stored,) = [r for r in read_runs([root]).runs if r.folder.name == run["folder"].split("/")[-1]]
    assert bits(run["solved"], 286) == stored.result["solved"]
    actions = "".join(stored.result["actions"])
    assert bits(run["actions"], len(actions)) == actions
    assert bits(run["train"], 286).count("1") == 18
    assert run["value"] == pytest.approx(stored.result["test_solved_percent"], abs=1e-3)
    setting = data["settings"][run["setting"]]
    assert setting["config"] == {k: v for k, v in stored.config.as_dict().items() if k != "seed"}
    assert setting["summary"]["count"] == 2
    assert setting["paper"] == 50.7


def test_long_numbers_of_changes_are_rounded():
    changes = {"learning_rate": 2.9999999999999997e-05, "max_steps": 1000, "pair_threshold": 0.25}
    text = LQRConfig.make("psm", "paper", changes=changes).changes_text
    assert text == "learning_rate=3e-05, max_steps=1000, pair_threshold=0.25"


def test_page_names_what_was_left_out_and_lists_other_experiments(reported, capsys):
    root, out = reported
    page = (out / "report.html").read_text()
    assert "damaged/result.json" in page
    commands = {run["command"] for run in embedded_data(out / "report.html")["runs"]}
    assert "pisces train lqr --method psm --preset paper --seed 0" in commands
    assert [s["measure"] for s in embedded_data(out / "report.html")["settings"] if s["experiment"] == "lqr"] == [
        "error against the oracle"
    ]
    assert (root / "damaged" / "result.json").read_text() == "{"


def test_table_cells_of_the_page_lead_to_their_runs(reported):
    data = embedded_data(reported[1] / "report.html")
    cells = [cell for table in data["tables"] for row in table["rows"] for cell in row if isinstance(cell, dict)]
    filled = [cell for cell in cells if not cell["text"].startswith("–")]
    assert len(filled) == 4 + 1 + 2 + 2 + 1
    assert {len(cell["settings"]) for cell in filled} == {1}
    (epsilons,) = (table for table in data["tables"] if "ε" in table["header"])
    behind = [[data["settings"][number]["method"] for number in row[-1]["settings"]] for row in epsilons["rows"]]
    assert behind == [["randconv+pse"]] * 2


def test_page_needs_no_network_and_runs_no_text_of_runs(tmp_path, write_run):
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"

    def change(result):
        result["config"].update(method=evil)

    write_run(tmp_path / "runs")
    write_run(tmp_path / "runs", seed=1, change=change)
    write_result(
        tmp_path / "runs" / "a", DistractingConfig.make("drq", "cpu", davis=evil), test_return=1.0, train_return=2.0
    )
    assert main(["report", str(tmp_path / "runs"), "--out", str(tmp_path / "out"), *PLAIN]) == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "alert(1)</script>" not in page
    assert "<img src=x" not in page
    assert page.count("<script") == 4  # two libraries, the data and the page's own
    assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//", page)
    assert "default-src 'none'" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no folders of runs given"),
        (["nowhere"], "not a folder"),
        (["empty"], "no finished runs below empty"),
        (["damaged"], "1 unusable result files, e.g."),
        (["mixed"], "several versions of pisces (0.1.0: 1 runs, 0.2.0: 1 runs); report on their folders"),
        (["mixed", "--projection", "tsne"], "unknown projection 'tsne'; choose from"),
        (["mixed", "--mixed-versions", "--out", "damaged/result.json"], "but 'damaged/result.json' is a file"),
        (
            ["single", "--projection", "none", "--out", "damaged/result.json/x"],
            "cannot write to 'damaged/result.json/x'",
        ),
    ],
)
def test_bad_input_gives_one_line_and_code_two(arguments, message, tmp_path, monkeypatch, capsys, write_run):
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "damaged", "mixed"):
        (tmp_path / name).mkdir()
    (tmp_path / "damaged" / "result.json").write_text("[]")
    write_run(tmp_path / "mixed", seed=0)
    write_run(tmp_path / "mixed", seed=1, version="0.2.0")
    write_run(tmp_path / "single")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.json")}
    assert main(["report", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.json")} == before
    assert not (tmp_path / "report").exists()


def test_mixed_versions_are_noted_when_accepted(tmp_path, write_run, capsys):
    write_run(tmp_path, seed=0)
    write_run(tmp_path, seed=1, version="0.2.0")
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "out"), "--mixed-versions", *PLAIN]) == 0
    assert "Runs of several versions of pisces: 0.1.0: 1 runs, 0.2.0: 1 runs" in capsys.readouterr().err


def test_embeddings_without_checkpoints_become_a_note(tmp_path, write_run, capsys):
    write_run(tmp_path)
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "out"), "--projection", "pca"]) == 0
    assert "No jumping run has its checkpoint here" in capsys.readouterr().err


def test_embedded_cosines_are_those_of_the_agent(tmp_path, write_run):
    from pisces.envs.jumping import optimal_frames, stack_frames
    from pisces.experiments import load

    write_run(tmp_path, "randconv+pse", checkpoint=True)
    (run,) = read_runs([tmp_path]).runs
    embedding = embed_run(run, "pca")
    assert embedding.points.shape == (6, 56, 2)
    assert embedding.directions.shape == (78, 56, 64)
    agent = load(run.folder)
    vectors = []
    for task, step in ((JumpingTask(25, 10), 11), (JumpingTask(45, 15), 31)):
        observation = stack_frames(optimal_frames(task))[step].transpose(2, 0, 1) * 0.5
        vectors.append(
            (agent.embed(observation[None])[0], embedding.directions[embedding.tasks.index(task), step].astype(float))
        )
    cosines = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(*vectors, strict=True)]
    assert cosines[0] == pytest.approx(cosines[1], abs=0.02)
    assert len(embedding_figure([("one", embedding), ("two", embedding)]).axes) == 2


def test_quantized_vectors_keep_their_products():
    vectors = np.random.default_rng(0).normal(size=(50, 8)) @ np.random.default_rng(1).normal(size=(8, 100))
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    small = quantize(units, 16).astype(float) / 127
    assert small.shape == (50, 16)
    assert small @ small.T == pytest.approx(units @ units.T, abs=0.03)


def test_principal_components_by_hand():
    vectors = np.array([[0.0, 0.0, 0.0], [4.0, 0.0, 0.0], [2.0, 1.0, 0.0], [2.0, -1.0, 0.0]])
    assert project(vectors[:, :1], "pca", 0, "euclidean").shape == (len(vectors), 2)
    points = project(vectors, "pca", 0, "euclidean")
    assert np.abs(points) == pytest.approx(np.array([[2, 0], [2, 0], [0, 1], [0, 1]]))
    longer = np.array([[1.0], [2.0], [3.0]])
    directions = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    assert project(longer * directions, "pca", 0) == pytest.approx(project(directions, "pca", 0))


@pytest.mark.slow
def test_umap_is_seeded():
    pytest.importorskip("umap", reason="umap-learn is not installed: pip install '.[report]'")
    vectors = np.random.default_rng(0).normal(size=(60, 8))
    assert project(vectors, "umap", 3).tolist() == project(vectors, "umap", 3).tolist()


def grid_run(solved, seed=0, grid="wide"):
    tasks = [[20, 10, "white"], [21, 10, "white"]]
    values = {"tasks": tasks, "solved": solved, "train_tasks": []}
    return jumping_run("randconv", seed, grid=grid, values=values)


def test_grids_show_the_share_of_runs_and_random_grids_one_run():
    (axes,) = result_figures.share_grid([grid_run(s) for s in ("11", "10", "10", "10")], "t", "white").axes
    assert axes.images[0].get_array()[0, :2].tolist() == [1, 0.25]
    runs = [grid_run(s, seed, "random") for seed, s in enumerate(("00", "11", "01"))]
    (axes,) = result_figures.share_grid(runs, "t", "white").axes
    assert axes.images[0].get_array()[0, :2].tolist() == [0, 1]
    assert "seed 2, the run in the middle" in axes.get_title()


def test_curves_show_median_and_quartiles_of_shared_evaluations():
    curves = [[{"iteration": 1, "a": v}, {"iteration": 2, "a": v + 1}] for v in (0.0, 1.0, 2.0, 3.0, 4.0)]
    curves[0].append({"iteration": 3, "a": 9.0})
    runs = [jumping_run("randconv", values={"curve": curve}) for curve in curves]
    (axes,) = result_figures.banded_curves({"$x$": runs}, "a", "t").axes
    assert axes.lines[0].get_ydata().tolist() == [2.0, 3.0]
    corners = axes.collections[0].get_paths()[0].vertices
    assert (corners[:, 1].min(), corners[:, 1].max()) == (1.0, 4.0)


def test_epsilon_colors_and_profiles_show_their_numbers():
    scores = {("m", 0.0): (80.0, 90.0), ("m", 0.5): (10.0,)}
    (axes,) = result_figures.epsilon_curve(scores).axes
    assert axes.lines[0].get_ydata().tolist() == [85.0, 10.0]
    series = {"ours": {"pse": (30.0, 40.0, 50.0), "mine": (10.0,)}, "theirs": {"pse": (60.0,)}}
    (axes,) = result_figures.color_bars(series, {"pse": "PSEs"}).axes
    assert [bar.get_height() for bar in axes.patches] == [40.0, 10.0, 60.0]
    assert [round(bar.get_x() + bar.get_width() / 2, 6) for bar in axes.patches] == [-0.2, 0.8, 0.2]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["PSEs", "mine"]
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {"ours", "theirs", "the paper"}
    (axes,) = result_figures.profiles({"m": Scores({"wide": (10.0, 60.0)})}).axes
    assert axes.lines[0].get_ydata()[[0, 50, 90]].tolist() == [1.0, 0.5, 0.0]


def test_metric_maps_have_one_panel_per_metric():
    panels = [axes for axes in task_figures.metric_maps().axes if axes.images]
    assert [axes.get_title() for axes in panels] == list(task_figures.METRICS)
    psm = task_metrics([(JumpingTask(25, 10), JumpingTask(45, 10))], "psm", 0.99)[0]
    assert np.array_equal(panels[0].images[0].get_array(), psm)
    full = np.asarray(panels[1].images[0].get_array())
    assert full[11, 31] > full[11, 11]  # the maximum over actions tells the obstacles apart by their rewards
    equivalent = np.asarray(panels[3].images[0].get_array()) == 0
    assert np.argwhere(equivalent)[0].tolist() == [0, 20]
    assert equivalent.sum() == 36


def test_task_figures_show_their_parts():
    assert len(task_figures.randconv_samples(samples=2).axes) == 9
    letters = [text.get_text() for text in task_figures.validation_map().axes[0].texts]
    assert (letters.count("T"), letters.count("V")) == (18, 54)
    left, right = (axes.images[0].get_array() for axes in task_figures.trajectories().axes)
    assert 0 < left[48, 8] < left[48, 50] < 1
    assert not np.array_equal(left, right)


def test_the_page_has_none_of_markdowns_marks(tmp_path, write_run):
    write_run(tmp_path / "runs", "randconv+shift")
    assert main(["report", str(tmp_path / "runs"), "--out", str(tmp_path / "out"), *PLAIN]) == 0
    tables = embedded_data(tmp_path / "out" / "report.html")["tables"]
    names = [str(cell) for table in tables for row in table["rows"] for cell in row]
    assert any("RandConv + random shifts, randconv+shift" in cell for cell in names)
    assert not any("`" in cell for cell in names)


def test_curves_of_many_methods_differ_in_color_or_style():
    methods = JumpingConfig.methods
    styles = [tuple(method_style(methods, method).values()) for method in methods]
    assert len(set(styles)) == len(methods)
    assert [color for color, _ in styles] == [method_color(methods, method) for method in methods]


def test_a_method_has_the_color_of_the_page_whatever_its_name_in_a_figure(write_run, tmp_path):
    write_run(tmp_path, "randconv+pse")
    (run,) = read_runs([tmp_path]).runs
    (line,) = result_figures.banded_curves({"any name": [run]}, "test_solved_percent", "wide grid").axes[0].get_lines()
    assert line.get_color() == method_color(JumpingConfig.methods, "randconv+pse")


def test_intervals_of_percentages_stay_within_their_bounds(tmp_path):
    for seed, levels in ((0, 24.4), (1, 71.8)):
        numbers = dict.fromkeys(("train_solved_percent", "validation_solved_percent", "test_solved_percent"), levels)
        write_result(tmp_path / "runs" / str(seed), MiniGridConfig.make("ppo+pse", "standard", seed=seed), **numbers)
    assert main(["report", str(tmp_path / "runs"), "--out", str(tmp_path / "out"), *PLAIN]) == 0
    (setting,) = embedded_data(tmp_path / "out" / "report.html")["settings"]
    assert (setting["summary"]["low"], setting["summary"]["high"]) == (0.0, 100.0)
