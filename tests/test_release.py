"""Release files agree with each other: versions of Python, the version of the package, checks, notes, links."""

import io
import re
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml

import pisces
from make_dist import absolute_links, normalized, package_version
from pisces.errors import missing_text
from release_notes import section, version_of

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSIONS = ["3.11", "3.12", "3.13", "3.14"]


def test_python_versions_agree():
    assert PROJECT["requires-python"] == ">=3.11,<3.15"
    named = [text.rsplit(" ", 1)[1] for text in PROJECT["classifiers"] if "Python :: 3." in text]
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    assert named == workflow["jobs"]["check"]["strategy"]["matrix"]["python"] == VERSIONS


def test_only_dm_control_depends_on_the_python_version():
    marked = [item for items in PROJECT["optional-dependencies"].values() for item in items if ";" in item]
    assert marked == ["dm_control>=1.0.50; python_version < '3.13'"]
    assert not [item for item in PROJECT["dependencies"] if ";" in item]


def test_the_version_has_one_place():
    assert package_version() == pisces.__version__
    for name in ("pyproject.toml", "README.md", "CITATION.cff", "mkdocs.yml", "docs/index.md"):
        assert pisces.__version__ not in (ROOT / name).read_text(encoding="utf-8"), name


def test_pre_commit_runs_the_steps_of_make_check():
    steps = re.search(r"^check: ([a-z ]+?) *##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[1]
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    assert [hook["entry"] for hook in hooks] == [f"make {step}" for step in steps.split()]


def test_publishing_needs_no_password():
    text = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in text


def test_notes_are_the_section_of_the_version():
    text = "# Changelog\n\n## Unreleased\n\n- c\n\n## 0.2.0 (2027-01-31)\n\n### Part\n\n- b\n\n## 0.1.0\n\n- a\n"
    assert section(text, "Unreleased") == "- c"
    assert section(text, "0.2.0") == "### Part\n\n- b"
    with pytest.raises(SystemExit, match=r"no section for 0\.3\.0"):
        section(text, "0.3.0")
    with pytest.raises(SystemExit, match=r"expected 'v0\.2\.0'"):
        version_of("v0.3.0", "0.2.0")


def test_relative_links_become_absolute():
    text = "[a](docs/a.md#b) ![c](d.gif) [e](https://e.org) [f](#g) [![h](../i.svg)](../j)"
    made = absolute_links(text, "R", "v1")
    assert made.startswith("[a](R/blob/v1/docs/a.md#b) ![c](R/raw/v1/d.gif) [e](https://e.org) [f](#g)")


def archive(names, time, owner):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as files:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uid, member.uname = 1, time, 7, owner
            files.addfile(member, io.BytesIO(b"x"))
    return made.getvalue()


def test_archives_of_the_same_files_have_the_same_bytes():
    one, two = archive(["a", "b"], 1, "x"), archive(["b", "a"], 2, "y")
    assert one != two
    assert normalized(one, 5) == normalized(two, 5)
    assert normalized(one, 5) != normalized(archive(["a", "c"], 1, "x"), 5)


@pytest.mark.parametrize(
    ("version", "words"), [((3, 12, 1), "pip install 'pisces-rl[control]'"), ((3, 13, 0), "labmaze")]
)
def test_a_missing_dm_control_is_explained(monkeypatch, version, words):
    monkeypatch.setattr(sys, "version_info", version)
    assert words in missing_text("dm_control", "control")
    assert "pip install 'pisces-rl[tune]'" in missing_text("optuna", "tune")


def test_the_tests_of_all_faults_exist():
    named = re.findall(r"\| `([\w/]+\.py)::(\w+)` \|", (ROOT / "docs/faults.md").read_text(encoding="utf-8"))
    assert len(named) > 30
    missing = [
        name for file, name in named if f"def {name}(" not in (ROOT / "tests" / file).read_text(encoding="utf-8")
    ]
    assert missing == []
