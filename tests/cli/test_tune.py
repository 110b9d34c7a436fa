import json

import pytest

from pisces.cli import main


def test_command_prints_settings_that_can_be_pasted(tmp_path, capsys):
    words = ["--preset", "smoke", "--distractors", "40", "--seeds", "0", "--trials", "1", "--max-steps", "2"]
    arguments = ["tune", "lqr", *words, "--search", "aggregation=1e5,1e6", "--out", str(tmp_path)]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    command = printed.split("best settings: ")[1].split()
    assert command[:3] == ["pisces", "train", "lqr"]
    assert command[command.index("--seed") + 1] == "1"  # not the seed that chose the settings
    assert main([*command[1:], "--out", str(tmp_path / "runs")]) == 0
    assert main(arguments) == 0
    assert "resuming a study of 1 trials" in capsys.readouterr().out


def test_minigrid_is_tuned_on_its_validation_tasks(tmp_path, capsys):
    words = ["--preset", "smoke", "--seeds", "1000", "--trials", "1", "--steps", "10", "--training-levels", "2"]
    assert main(["tune", "minigrid", *words, "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "pisces train minigrid --method bc+pse --preset smoke --training-levels 2" in printed
    assert "--steps 10" in printed
    (study,) = (json.loads(path.read_text()) for path in tmp_path.rglob("tuning.json"))
    (run,) = (json.loads(path.read_text()) for path in tmp_path.rglob("result.json"))
    assert study["best"]["score"] == run["validation_solved_percent"]
    assert study["best"]["settings"].items() <= run["config"]["settings"].items()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--search", "temprature=0.1:1"], "did you mean 'temperature'"),
        (["--trials", "0"], "expected trials and workers"),
        (["--sampler", "grid"], "a grid search needs choices"),
        (["--method", "psee"], "did you mean 'pse'"),
    ],
)
def test_bad_words_end_with_one_line(arguments, message, tmp_path, capsys):
    assert main(["tune", "jumping", "--preset", "smoke", *arguments, "--out", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
