import io

import pytest
from rich.console import Console

from pisces.cli.curves import CurveDisplay, curve_rows
from pisces.errors import UserError
from pisces.experiments.jumping.config import METHODS
from pisces.experiments.jumping.demo import demo_configs, demo_note, solved_percent
from pisces.experiments.jumping.report.tiles import draw_training, solved_tiles
from pisces.runs.progress import Progress


def test_demo_compares_methods_at_their_own_settings():
    configs = demo_configs(3, 2, "smoke")
    assert [(config.method, config.seed) for config in configs] == [
        *(("randconv", 3), ("randconv+pse", 3)),
        *(("randconv", 4), ("randconv+pse", 4)),
    ]
    for config in configs:
        assert not config.changes
        assert config.settings.learning_rate == METHODS[config.method].learning_rate
    with pytest.raises(UserError, match="at least 1, got 0"):
        demo_configs(0, 0)


def test_note_counts_the_runs():
    assert demo_note(1).startswith("One run per method is an illustration")
    assert demo_note(3).startswith("3 runs per method are an illustration")


def test_curves_are_placed_by_iteration_and_percentage():
    rows = curve_rows([[(0, 0.0), (50, 50.0)], [(100, 100.0), (50, 50.0)]], 100, width=5, height=3)
    assert rows == [[None, None, None, None, 1], [None, None, 1, None, None], [0, None, None, None, None]]


@pytest.mark.parametrize("terminal", [False, True])
def test_display_shows_means_over_seeds(terminal):
    console = Console(file=io.StringIO(), force_terminal=terminal, width=100)
    with CurveDisplay(["RandConv", "RandConv + PSE"], [0, 1, 0, 1], solved_percent, console) as display:
        for index, value in enumerate((10.0, 40.0, 30.0, 60.0)):
            display.update(index, Progress(300, 600, {}, {"iteration": 300, "test_solved_percent": value}))
        assert display.curve(0) == [(300, 20.0)]
        assert display.curve(1) == [(300, 50.0)]
        shown = Console(file=io.StringIO(), width=100)
        shown.print(display.picture())
    text = shown.file.getvalue()
    assert "RandConv          20.0 %    50 % trained" in text
    assert "RandConv + PSE    50.0 %    50 % trained" in text
    lines = console.file.getvalue().splitlines()
    assert terminal or lines[0] == "RandConv: iteration 300: 10.0 % of unseen tasks solved"


def test_tiles_show_solved_and_training_tasks():
    from matplotlib.figure import Figure

    result = {
        "tasks": [[20, 10, "white"], [21, 10, "white"], [20, 10, "red"]],
        "solved": "101",
        "train_tasks": [{"obstacle_position": 20, "floor_height": 10, "color": "white"}],
    }
    tiles = solved_tiles(result, "white")
    assert tiles.shape == (11, 26)
    assert (tiles[0, 0], tiles[0, 1], tiles.sum()) == (1, 0, 1)
    axes = Figure().subplots()
    draw_training(axes, result, "white")
    assert axes.collections[-1].get_offsets().tolist() == [[20, 10]]


def test_names_are_those_of_methods():
    from pisces.experiments.jumping.experiment import Jumping

    assert set(METHODS) >= set(Jumping.method_names) >= {"randconv", "randconv+pse"}
