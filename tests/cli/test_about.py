import subprocess

import pytest
from command_lines import parse_command

import pisces
from pisces.cli import DESCRIPTION, main


def test_help_teaches(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    examples = [line for line in DESCRIPTION.splitlines() if line.startswith("$ ")]
    assert len(examples) >= 5
    # tyro joins lines that it takes for prose; an example must keep its own.
    assert all(line in shown.splitlines() for line in examples)


@pytest.mark.parametrize("line", [line for line in DESCRIPTION.splitlines() if line.startswith("$ ")])
def test_examples_of_the_help_are_commands(line):
    parse_command(line.removeprefix("$ "))


@pytest.mark.parametrize(
    "line", ["pisces trian jumping", "pisces train jumping --sede 3", "pisces sweep jumping --workers x"]
)
def test_other_words_are_none(line):
    with pytest.raises(SystemExit):
        parse_command(line)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_knows_commands_and_options(shell, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["completion", shell])
    assert not stop.value.code
    script = capsys.readouterr().out
    for word in ("sweep", "distracting", "--preset", "--trials"):
        assert word in script


def test_bash_reads_the_completion_script(capsys):
    with pytest.raises(SystemExit):
        main(["completion", "bash"])
    subprocess.run(["bash", "-n"], input=capsys.readouterr().out, text=True, check=True)


def test_citation_names_the_paper_and_the_version(capsys):
    assert main(["citation"]) == 0
    printed = capsys.readouterr().out
    assert "2101.05265" in printed
    assert f"version = {{{pisces.__version__}}}" in printed
    assert printed.count("{") == printed.count("}")
