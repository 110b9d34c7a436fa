"""Prints the section of a version in CHANGELOG.md: the notes of its release.

python release/release_notes.py            # of what is not released yet
python release/release_notes.py v0.2.0     # of a tag, which must be the version of the package
"""

from __future__ import annotations

import argparse
import re

from make_dist import ROOT, package_version

UNRELEASED = "Unreleased"


def section(changelog: str, title: str) -> str:
    """Returns the text below the heading of a version, "## 0.2.0 (2027-01-31)", or of what is unreleased."""
    parts = re.split(r"^## +(.+)\n", changelog, flags=re.MULTILINE)[1:]
    sections = {heading.split()[0]: text.strip() for heading, text in zip(parts[::2], parts[1::2], strict=True)}
    if not sections.get(title):
        raise SystemExit(
            f"CHANGELOG.md has no section for {title}; rename {UNRELEASED!r} to '{title} (year-month-day)'"
        )
    return sections[title]


def version_of(tag: str, version: str) -> str:
    """Returns the version that a tag names."""
    if tag != f"v{version}":
        raise SystemExit(f"the tag {tag!r} does not name the version of the package; expected 'v{version}'")
    return version


def main() -> None:
    """Prints the notes."""
    parser = argparse.ArgumentParser(description="Print the notes of a release.")
    parser.add_argument("tag", nargs="?", help="the tag of the release; without it, what is not released yet")
    tag = parser.parse_args().tag
    title = UNRELEASED if tag is None else version_of(tag, package_version())
    print(section((ROOT / "CHANGELOG.md").read_text("utf-8"), title))


if __name__ == "__main__":
    main()
