"""Fetches the chart library that report pages embed: ``python studies/vendor_charts.py``.

Observable Plot draws the charts and needs d3. Both are taken whole from the npm registry, checked against the
registry's checksums as recorded below, and written with their licenses to src/pisces/reports/page/vendor.
"""

from __future__ import annotations

import base64
import hashlib
import io
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "src" / "pisces" / "reports" / "page" / "vendor"


@dataclass(frozen=True)
class Package:
    """A package of the npm registry."""

    name: str
    """Name and version."""
    script: str
    """The file that the page embeds."""
    sha512: str
    """Checksum of the tarball, as the registry reports it."""

    @property
    def stem(self) -> str:
        """The first part of the script's name."""
        return Path(self.script).name.split(".")[0]


PACKAGES = (
    Package(
        "d3@7.9.2",
        "dist/d3.min.js",
        "ZKb/mONPVKzaO5UlcWcwN8bS4ezvQaYu+bsou+XgNABdGC800kwH651ADTbbTxMPHW13UlvbQafdmJQDk1w7Mg==",
    ),
    Package(
        "@observablehq/plot@0.6.17",
        "dist/plot.umd.min.js",
        "/qaXP/7mc4MUS0s4cPPFASDRjtsWp85/TbfsciqDgU1HwYixbSbbytNuInD8AcTYC3xaxACgVX06agdfQy9W+g==",
    ),
)


def fetch(package: Package) -> bytes:
    """Downloads a package's tarball and checks it."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", package.name, "--silent", "--pack-destination", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (path,) = Path(folder).iterdir()
        content = path.read_bytes()
    found = base64.b64encode(hashlib.sha512(content).digest()).decode()
    if found != package.sha512:
        raise SystemExit(f"{package.name}: expected the checksum {package.sha512}, got {found}")
    return content


def unpack(package: Package, tarball: bytes) -> dict[str, bytes]:
    """Returns the files to write: the script and the license."""
    with tarfile.open(fileobj=io.BytesIO(tarball)) as archive:
        members = {f"{package.stem}.min.js": package.script, f"{package.stem}.LICENSE": "LICENSE"}
        files = {name: archive.extractfile(f"package/{member}") for name, member in members.items()}
        return {name: file.read() for name, file in files.items() if file is not None}


def main() -> None:
    """Writes the scripts and their licenses."""
    FOLDER.mkdir(exist_ok=True)
    for package in PACKAGES:
        for name, content in unpack(package, fetch(package)).items():
            (FOLDER / name).write_bytes(content)
            print(f"{FOLDER.name}/{name}: {len(content)} bytes")


if __name__ == "__main__":
    main()
