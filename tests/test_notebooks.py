"""The notebooks run, are stored without outputs, and install what they import with one cell."""

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def read(name):
    return json.loads((NOTEBOOKS[0].parent / f"{name}.ipynb").read_text(encoding="utf-8"))


def run(name, monkeypatch):
    """Executes the code of a notebook but its installation, as a kernel would; returns its variables."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    variables = {"__name__": "__main__"}
    for number, cell in enumerate(read(name)["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and not source.startswith("%pip"):
            exec(compile(source, f"{name}[{number}]", "exec"), variables)
    return variables


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_form(path):
    notebook = read(path.stem)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["outputs"] for cell in code] == [[]] * len(code)
    assert {cell["execution_count"] for cell in code} == {None}
    magics = [line for cell in code for line in cell["source"] if line.startswith(("%", "!"))]
    assert magics == code[0]["source"]
    assert len(magics) == 1
    assert magics[0].startswith("%pip install --quiet ")
    # From the clone that holds the notebook: nothing is released yet.
    assert magics[0].split("constraints.txt ")[1].startswith(("..", '"..['))
    assert ("[torch]" in magics[0]) == ("import torch" in str(code[1:]))


def test_there_are_two():
    assert [path.stem for path in NOTEBOOKS] == ["first_metric", "pse_in_your_agent"]


# matplotlib says that the backend of the tests shows nothing.
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_first_metric(monkeypatch):
    variables = run("first_metric", monkeypatch)
    assert variables["nearest"][:12].tolist() == list(range(20, 32))
    assert variables["result"].error_bound <= 1e-6


def test_pse_in_your_agent(monkeypatch):
    variables = run("pse_in_your_agent", monkeypatch)
    assert variables["with_pse"] > variables["plain"]
