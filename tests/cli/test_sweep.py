import pytest

from pisces.cli import main
from pisces.cli.sweep import plural


@pytest.mark.parametrize(
    ("name", "several"), [("grid", "grids"), ("family", "families"), ("distractors", "distractors")]
)
def test_options_of_sweeps_are_plural(name, several):
    assert plural(name) == several


def test_families_are_an_option_of_sweeps(capsys):
    words = [
        "sweep",
        "minigrid",
        "--methods",
        "bc",
        "--families",
        "crossing,lava",
        "--shifts",
        "layout",
        "--seeds",
        "0",
    ]
    main([*words, "--list"])
    shown = capsys.readouterr().out
    assert shown.count("pisces train minigrid") == 2
    assert "--family lava" in shown
    assert "--device" not in shown
    main([*words, "--list", "--device", "cuda:1"])
    assert capsys.readouterr().out.count(" --device cuda:1\n") == 2
