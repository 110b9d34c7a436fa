"""Documentation that can't rot: its Python runs, its commands parse, its names exist, it builds without a warning."""

import importlib
import importlib.util
import json
import math
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from command_lines import parse_command

from pisces.cli import main
from pisces.experiments.registry import all_experiments

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A block that can't run in a test must say why in its first line, e.g. "# not run here: needs a GPU".
ADDED_LINES = 15
EXCUSE = re.compile(r"# not run here: \w+")


def blocks_of(page, language):
    """The fenced blocks of a language: number of the line before the code, words after the language, code."""
    text = page.read_text()
    for found in FENCE.finditer(text):
        if found[1] == language:
            yield text.count("\n", 0, found.start()) + 1, found[2].strip(), found[3]


def commands_of(page):
    """The pisces commands in blocks and in the text of a page."""
    lines = [line for _, _, code in blocks_of(page, "bash") for line in code.replace("\\\n", " ").splitlines()]
    lines += re.findall(r"`(pisces [a-z-][^`\n]*)`", page.read_text())
    for line in lines:
        command = line.split(" > ")[0].strip()
        if command.startswith("pisces ") and "..." not in command:
            yield command


@pytest.mark.parametrize(
    "page", [page for page in PAGES if list(blocks_of(page, "python"))], ids=lambda page: page.name
)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    # How long updates take depends on what else the machine does.
    monkeypatch.setattr("pisces.integrations.overhead.WARN_AFTER", math.inf)
    namespace = {"__name__": "documentation"}
    for line, mark, code in blocks_of(page, "python"):
        if mark == "no-run":
            assert EXCUSE.match(code), f"{page.name}:{line}: a block that is not run must say why"
            continue
        # The lines before keep the numbers in tracebacks those of the page.
        exec(compile("\n" * line + code, str(page), "exec"), namespace)


def test_the_loop_needs_few_added_lines_and_its_loss_falls(capsys):
    (_, _, code), *_ = blocks_of(ROOT / "docs" / "howto_own_loop.md", "python")
    assert 0 < code.count("# +") <= ADDED_LINES
    names = {"__name__": "documentation"}
    exec(compile(code, "howto_own_loop.md", "exec"), names)
    assert sum(names["losses"][-20:]) < 0.7 * sum(names["losses"][:20])
    assert "->" in capsys.readouterr().out


@pytest.mark.parametrize("page", [page for page in PAGES if list(commands_of(page))], ids=lambda page: page.name)
def test_commands_parse(page):
    for command in commands_of(page):
        if not is_mention(command):
            assert exit_code(command) == 0, f"{page.name}: {command}"


def exit_code(command):
    """What a command ends with: sweeps list their runs, which checks all names; others are only parsed."""
    words = shlex.split(command, comments=True)[1:]
    try:
        if len(words) > 1 and words[0] == "sweep" and words[1] in all_experiments():
            return main([*words, "--list"] if "--list" not in words else words)
        parse_command(command)
    except SystemExit as stop:
        return stop.code or 0
    return 0


def is_mention(command):
    """Whether a command is only named, as in "`pisces sweep` does ..."."""
    words = command.split()[1:]
    return len(words) == 1 and words[0] in ("train", "sweep", "tune", "metric", "report", "completion")


def test_names_on_the_map_exist():
    names = set(re.findall(r"`(pisces\.[A-Za-z0-9_.]+)`", (ROOT / "docs" / "map.md").read_text()))
    assert len(names) > 30
    for name in names:
        pkgutil.resolve_name(name)  # raises if there is no such module or attribute


def test_site_builds_without_warnings_and_without_the_network(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        text = page.read_text()
        loaded = re.findall(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="(https?:)?//[^"]+"', text)
        assert not loaded, f"{page.name} asks another machine"
        assert "$`" not in text, f"{page.name} has an equation that was not converted"
        documented = text.count('class="doc doc-object doc-class') + text.count('class="doc doc-object doc-function')
        assert documented or not page.name.startswith("api_"), f"{page.name} documents nothing"
    assert "<math" in (tmp_path / "site" / "concepts.html").read_text()
    index = json.loads((tmp_path / "site" / "search" / "search_index.json").read_text())["docs"]
    found = {
        word: {entry["location"] for entry in index if word in entry["text"]} for word in ("behavior", "behaviour")
    }
    assert found["behavior"] <= found["behaviour"]


def load_hook(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "hooks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_search_knows_british_spellings():
    british = load_hook("spellings").british
    assert british("Behavioral optimizers, colors of neighbors") == [
        "behavioural",
        "colours",
        "neighbours",
        "optimisers",
    ]
    assert british("size and prize") == []


def test_sums_in_fractions_have_their_limits_below():
    made = load_hook("equations").mathml(r"\frac{a}{\sum_{x \in X \setminus Y} x}", "block")
    assert re.search(r'<munder><mo movablelimits="false">∑</mo>', made)
    assert "\u29f5" not in made
    assert "msub" not in made


def test_pictures_of_pages_exist():
    for page in PAGES:
        for target in re.findall(r"!\[[^\]]*\]\(((?:docs/)?images/[^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
