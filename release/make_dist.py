"""Builds the source distribution and the wheel of the last commit, twice, and compares their bytes.

    python release/make_dist.py dist [--repository URL]

Only committed files are used. Times, owners and modes of files come from the commit, so that everyone who builds the
same commit gets the same bytes. With the address of the repository, which a workflow knows, relative links of the
README become absolute, as package indexes need them, and the address becomes part of the metadata.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = (
    "src",
    "pyproject.toml",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "CITATION.cff",
    "constraints.txt",
)
"""What is exported; results, tests and documentation stay in the repository."""
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\](?:\([^)]*\))?)*)\]\((?![a-z]+:|#)([^)\s]+)\)")
"""A relative link or image of Markdown: "!" of images, the text and the target."""


def package_version(root: Path = ROOT) -> str:
    """Returns the version, whose only place is the package."""
    found = re.search(r'^__version__ = "([^"]+)"$', (root / "src/pisces/__init__.py").read_text("utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit("src/pisces/__init__.py has no line __version__ = ...")
    return found[1]


def absolute_links(text: str, repository: str, revision: str) -> str:
    """Makes the relative links and images of a README absolute."""

    def absolute(found: re.Match[str]) -> str:
        kind = "raw" if found[1] else "blob"
        return f"{found[1]}[{found[2]}]({repository}/{kind}/{revision}/{found[3]})"

    return LINK.sub(absolute, text)


def export_commit(folder: Path) -> int:
    """Copies the files of the package, as committed last, to a folder; returns the time of the commit."""
    archive = _git("archive", "--format=tar", "HEAD", *FILES)
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return int(_git("log", "-1", "--format=%ct"))


def name_repository(folder: Path, repository: str) -> None:
    """Writes the address of the repository into the README and the metadata of an exported commit."""
    revision = f"v{package_version(folder)}"
    readme, project = folder / "README.md", folder / "pyproject.toml"
    readme.write_text(absolute_links(readme.read_text("utf-8"), repository, revision), "utf-8")
    pages = {"Source": "", "Changelog": f"/blob/{revision}/CHANGELOG.md", "Issues": "/issues"}
    urls = "".join(f'{name} = "{repository}{page}"\n' for name, page in pages.items())
    project.write_text(f"{project.read_text('utf-8')}\n[project.urls]\n{urls}", "utf-8")


def build(folder: Path, repository: str | None) -> list[Path]:
    """Builds the distributions of the last commit in an empty folder and returns their paths."""
    source, made = folder / "source", folder / "dist"
    time = export_commit(source)
    if repository:
        name_repository(source, repository.rstrip("/"))
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(time)}
    # Without isolation, the versions of the build tools are those of constraints.txt.
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(made), str(source)]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False, umask=0o022
    )
    if done.returncode:
        raise SystemExit(f"the build failed:\n{done.stdout}{done.stderr}")
    (sdist,) = made.glob("*.tar.gz")
    sdist.write_bytes(normalized(sdist.read_bytes(), time))
    return sorted(made.iterdir())


def normalized(archive: bytes, time: int) -> bytes:
    """Returns a .tar.gz archive with its files sorted, without owners, and with one time for all files."""
    made = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as old,
        gzip.GzipFile(filename="", fileobj=made, mode="wb", mtime=time) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            content = old.extractfile(member)
            member.mtime, member.uid, member.gid, member.uname, member.gname = time, 0, 0, "", ""
            member.mode, member.pax_headers = 0o755 if member.isdir() else 0o644, {}
            new.addfile(member, content)
    return made.getvalue()


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout


def main() -> None:
    """Builds twice, in two folders and with two masks of permissions, and keeps what is equal."""
    parser = argparse.ArgumentParser(description="Build sdist and wheel of the last commit, reproducibly.")
    parser.add_argument("out", type=Path, help="folder of the distributions; older files in it are deleted")
    parser.add_argument("--repository", help="address of the repository, for links")
    options = parser.parse_args()
    if _git("status", "--porcelain", "--untracked-files=no"):
        print("there are changes that are not committed; they are left out", file=sys.stderr)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        first = build(Path(one), options.repository)
        mask = os.umask(0o077)
        second = build(Path(two), options.repository)
        os.umask(mask)
        differing = [a.name for a, b in zip(first, second, strict=True) if a.read_bytes() != b.read_bytes()]
        if differing:
            raise SystemExit(f"two builds differ: {', '.join(differing)}")
        shutil.rmtree(options.out, ignore_errors=True)
        options.out.mkdir(parents=True)
        for path in first:
            shutil.copyfile(path, options.out / path.name)
            print(options.out / path.name)


if __name__ == "__main__":
    main()
