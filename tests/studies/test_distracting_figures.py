import os
from pathlib import Path

import pytest
from PIL import Image
from stored_runs import stored_run

from distracting_figures import CLIPS, CURVES, SCENES, main
from fill_docs import fill
from pisces.experiments.distracting.config import DistractingConfig
from pisces.experiments.distracting.episodes import EPISODE
from pisces.experiments.distracting.experiment import Distracting
from pisces.experiments.distracting.tables import distracting_markdown
from pisces.experiments.registry import all_experiments
from pisces.reports.results import StoredRuns, read_runs
from pisces.runs.store import RunFolder

DOCUMENT = "<!-- table: distracting -->\nold\n<!-- end -->\n<!-- table: distracting-train -->\n<!-- end -->\n"
VALUES = {
    "train_return": 600.0,
    "test_return": 500.0,
    "curve": [{"step": step, "train_return": 300.0, "test_return": 250.0} for step in (2000, 4000)],
}


def config_of(seed=0, **arguments):
    return DistractingConfig.make("drq", "cpu", seed=seed, **arguments)


def test_documents_say_when_there_are_no_runs(tmp_path, capsys):
    assert fill(DOCUMENT, StoredRuns(()), tmp_path).count("Not run yet") == 2
    main(tmp_path, tmp_path / "images")
    assert "Not run yet" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "images").iterdir()} == {SCENES, CLIPS}


def test_documents_show_the_runs():
    configs = [config_of(), config_of(1), config_of(task="walker-stand")]
    runs = [stored_run(Distracting(), config, **VALUES) for config in configs]
    filled = fill(DOCUMENT, StoredRuns(tuple(runs)), Path("x"))
    assert filled.count("| cpu | random | DrQ |") == 3
    assert distracting_markdown(runs) in filled


def test_curves_are_drawn(tmp_path):
    config = config_of()
    RunFolder.of(tmp_path / "results", config).create(config).write_result(config, VALUES)
    main(tmp_path / "results", tmp_path / "images")
    assert (tmp_path / "images" / CURVES).read_bytes().startswith(b"\x89PNG")
    assert not list((tmp_path / "images").glob("*.gif"))


@pytest.mark.parametrize("damage", ["half", "empty", "text", "folder", "pipe"])
def test_a_damaged_episode_is_left_out(damage, tmp_path):
    for method in ("drq", "drq+pse"):
        config = DistractingConfig.make(method, "cpu")
        folder = RunFolder.of(tmp_path, config).create(config)
        folder.write_result(config, VALUES)
        path = folder.file(EPISODE)
        frames = [Image.new("RGB", (20, 20), (2 * k, 0, k)) for k in range(100)]
        frames[0].save(path, save_all=True, append_images=frames[1:])
    whole = path.read_bytes()
    path.unlink()
    if damage in ("folder", "pipe"):
        (os.mkdir if damage == "folder" else os.mkfifo)(path)
    else:
        path.write_bytes({"half": whole[: len(whole) // 2], "empty": b"", "text": b"GIF89a, not"}[damage])
    runs = read_runs([tmp_path], all_experiments()).of("distracting")
    assert len(runs) == 2
    assert Distracting().page_section(runs, "none").html == ""


def test_episodes_without_and_with_pses_are_shown_side_by_side(tmp_path):
    for number, method in enumerate(("drq", "drq+pse")):
        config = DistractingConfig.make(method, "cpu")
        folder = RunFolder.of(tmp_path, config).create(config)
        folder.write_result(config, VALUES)
        frames = [Image.new("RGB", (20, 20), (200 * number, 0, k)) for k in range(100)]
        frames[0].save(folder.file(EPISODE), save_all=True, append_images=frames[1:])
    main(tmp_path, tmp_path / "images")
    with Image.open(tmp_path / "images" / "distracting_cartpole-swingup.gif") as film:
        assert 40 <= film.n_frames <= 60
        picture = film.convert("RGB")
    section = Distracting().page_section(read_runs([tmp_path], all_experiments()).of("distracting"), "none")
    assert section.html.count("data:image/gif;base64,") == 1
    assert "cartpole-swingup, cpu, random initialization" in section.html
    assert Distracting().page_section([], "none").html == ""
    assert picture.getpixel((10, 40))[0] < 50 < 150 < picture.getpixel((100, 40))[0]
