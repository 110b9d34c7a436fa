import csv

import numpy as np
import pytest

from pisces.cli import main
from pisces.metrics import compare_behavior
from pisces.trajectories import Trajectory


@pytest.fixture
def folders(tmp_path):
    rng = np.random.default_rng(0)
    episodes = {}
    for name, share in (("left", 0.1), ("<right>", 0.9)):
        folder = tmp_path / name
        folder.mkdir()
        episodes[folder] = [
            Trajectory(rng.integers(4, size=(6, 1)), actions=(rng.random(6) < share).astype(int)) for _ in range(4)
        ]
        for number, episode in enumerate(episodes[folder]):
            episode.save(folder / f"{number}.npz")
    return episodes


def test_two_folders_give_a_page_and_a_table(folders, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["metric", *map(str, folders), "--discount", "0.9", "--out", str(out)]) == 0
    expected = compare_behavior(*folders.values(), discount=0.9)
    low, high = expected.interval
    assert f"difference {expected.difference:.3g}, 95% interval {low:.3g} to {high:.3g}" in capsys.readouterr().out
    rows = list(csv.DictReader((out / "states.csv").read_text().splitlines()))
    assert [float(row["distance"]) for row in rows if row["agent"] == "left"] == pytest.approx(
        expected.states_a.distance, rel=1e-5
    )
    assert {row["nearest_episode"] for row in rows} <= {"0", "1", "2", "3"}
    page = (out / "behavior.html").read_text()
    assert "States of &lt;right&gt; without a match" in page
    assert "<right>" not in page
    assert page.count("<img ") == 2


def test_files_of_two_folders_are_two_agents(folders, tmp_path, capsys):
    files = [str(path) for folder in folders for path in sorted(folder.glob("*.npz"))[:3]]
    assert main(["metric", *files, "--threshold", "1e9", "--out", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert text.count("3 episodes, 18 states; 100% have a match") == 2
    assert "Every state has a match within 1e+09" in (tmp_path / "out" / "behavior.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["left"], "got 1 different folders"),
        (["left", "<right>", "empty"], "got 3 different folders"),
        (["left", "empty"], "empty', got none"),
        (["left/0.npz"], "got one file"),
        (["left/0.npz", "left/1.npz", "left/2.npz"], "got 1 different folders"),
        (["left/0.npz", "left/1.npz", "--threshold", "1"], "--threshold is for the episodes of two agents"),
        (["left", "<right>", "--ties", "uniform"], "which are for MDPs"),
        (["left", "<right>", "--tolerance", "0.1"], "which are for MDPs"),
        (["left", "<right>", "--cost", "l3"], "unknown cost"),
        (["left", "<right>", "--last", "loop"], "did you mean 'self-loop'"),
        (["left", "<right>", "--threshold", "-1"], "threshold must be"),
    ],
)
def test_bad_arguments(arguments, message, folders, tmp_path, capsys, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["metric", *arguments]) == 2
    assert message in capsys.readouterr().err
