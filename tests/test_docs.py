"""The pages that show how things are done: their Python runs as it stands, page by page, in an empty folder."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.glob("howto_*.md"))
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ADDED_LINES = 15


def blocks(page):
    return PYTHON.findall(page.read_text())


def test_there_are_pages():
    assert {page.stem for page in PAGES} >= {"howto_sb3", "howto_own_loop", "howto_minari"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    threads, names = torch.get_num_threads(), {"__name__": "page"}
    torch.set_num_threads(1)
    try:
        for number, block in enumerate(blocks(page), start=1):
            exec(compile(block, f"{page.name}, block {number}", "exec"), names)
    finally:
        torch.set_num_threads(threads)
    assert blocks(page)


def test_the_loop_needs_few_added_lines_and_its_loss_falls(capsys):
    (code,) = blocks(DOCS / "howto_own_loop.md")
    assert 0 < code.count("#+") <= ADDED_LINES
    names = {"__name__": "page"}
    exec(compile(code, "howto_own_loop.md", "exec"), names)
    assert sum(names["losses"][-20:]) < 0.7 * sum(names["losses"][:20])
    assert "->" in capsys.readouterr().out
