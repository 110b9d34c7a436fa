"""What live displays show on narrow terminals."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from pisces.cli import displays
from pisces.cli.displays import RunDisplay, StageDisplay, SweepDisplay, time_left
from pisces.cli.terminal import note_compilation
from pisces.runs.pool import Reported
from pisces.runs.progress import Progress
from pisces.runs.sweep import SweepState, _record

NAME = "randconv+pi-bisimulation-cme, wide, learning_rate=0.0012345, preset quick, seed 12"


def terminal(width):
    return Console(
        file=io.StringIO(), force_terminal=True, width=width, markup=False, highlight=False, color_system=None
    )


def describe(row):
    return f"{row['solved']} % of unseen tasks solved [/x]"


@pytest.mark.parametrize("width", [60, 80, 200])
def test_bar_percentage_and_time_left_are_kept(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    console, now = terminal(width), iter(range(1000))
    display = RunDisplay([NAME], describe, console)
    display._bars.get_time = lambda: float(next(now))
    display._bars._tasks[0].start_time = 0.0
    for step in range(1, 5):
        evaluation = {"iteration": step, "solved": 40} if step == 2 else None
        display.update(0, Progress(step * 10, 100, {"imitation": 1.5, "auxiliary": 0.25}, evaluation))
    console.print(display._bars.get_renderable())
    line = console.file.getvalue().rstrip("\n")
    assert "\n" not in line
    assert "40 %" in line
    assert " left" in line
    assert "━" in line
    assert "…" in line or width == 200
    assert "?" not in line
    assert ("solved [/x]" in line) == (width == 200)


@pytest.mark.parametrize("live", [True, False])
def test_a_run_that_is_needed_first_is_named_and_heard_apart(live):
    console = terminal(200) if live else Console(file=io.StringIO(), width=200)
    display = RunDisplay(["pse, seed 0"], lambda row: f"return {row['value']}", console)
    for requirement, value in (("drq", 1), ("drq", 1), ("", 2)):
        evaluation = {"iteration": 10, "value": value}
        display.update(0, Progress(10, 10, {}, evaluation, requirement))
        if live:
            console.print(display._bars.get_renderable())
    lines = [line.strip() for line in console.file.getvalue().splitlines() if line.strip()]
    assert ["first drq" in line for line in lines] == ([True, True, False] if live else [True, False])
    assert "return 1" in lines[0]
    assert "return 2" in lines[-1]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "1 s left"), (80, "80 s left"), (100, "2 min left"), (5400, "1.5 h left"), (36000, "10.0 h left")],
)
def test_times_left_have_a_sensible_unit(seconds, words):
    assert time_left(seconds) == words


def test_a_sweep_keeps_showing_its_newest_evaluation():
    jobs = [SimpleNamespace(config=SimpleNamespace(label="pse, wide", seed=1))]
    console, queue = terminal(100), SimpleNamespace(state=SweepState(1, running={0: None}))
    for progress in (Progress(10, 100, {}, {"solved": 40}), Progress(20, 100, {}), Progress(30, 100, {})):
        _record(queue, 0, Reported(progress))
    console.print(SweepDisplay(jobs, describe, console)._table(queue.state))
    shown = console.file.getvalue()
    assert "40 % of unseen tasks solved" in shown
    assert "0.0 h left" not in shown


def test_the_first_use_says_that_it_compiles(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    note_compilation()
    assert capsys.readouterr().out.startswith("the first use compiles")
    (tmp_path / "kernel.nbi").touch()
    note_compilation()
    assert capsys.readouterr().out == ""


def test_stages_are_shown_on_a_terminal_and_elsewhere(monkeypatch):
    console = terminal(80)
    with StageDisplay(console) as display:
        display.update("reading results", 40, 1000)
    assert "reading results" in console.file.getvalue()
    assert "40/1000" in console.file.getvalue()
    plain = Console(file=io.StringIO(), force_terminal=False)
    monkeypatch.setattr(displays, "PAUSE", 0)
    with StageDisplay(plain) as display:
        display.update("drawing figures", 2, 13)
    assert plain.file.getvalue() == "drawing figures: 2 of 13\n"
