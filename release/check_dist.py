"""Checks distributions: their files, and that the wheel alone works in an empty environment.

    python release/check_dist.py dist

The environment is temporary. Its dependencies come from pip, with the versions of constraints.txt.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from make_dist import ROOT, package_version

PAGE_FILES = (".js", ".css", ".html", ".npz", ".LICENSE")
# Runs in the empty environment: a metric, a loss, and where the package comes from.
PROGRAM = """
import sys
from importlib.metadata import files, version
import numpy as np, torch
import pisces
from pisces.losses import ContrastiveMetricLoss
from pisces.metrics import FiniteMDP, bisimulation_metric, sequence_metric
assert pisces.__file__.startswith(sys.prefix), pisces.__file__
assert version("pisces-rl") == pisces.__version__ == sys.argv[1], (version("pisces-rl"), pisces.__version__)
folders = {str(file).split("/")[0] for file in files("pisces-rl")}
assert folders <= {"..", "pisces", f"pisces_rl-{sys.argv[1]}.dist-info"}, folders
assert sequence_metric([[1.0, 0.0], [0.0, 1.0]], 0.5).tolist() == [[2.0, 1.0], [1.0, 2.0]]
mdp = FiniteMDP(np.eye(3)[:, None], np.array([[0.0], [0.0], [1.0]]))
assert np.allclose(bisimulation_metric(mdp, discount=0.5).distance[0], [0, 0, 2])
value = ContrastiveMetricLoss(feature_size=4, embedding_size=3)(torch.eye(4), torch.eye(4), 1 - torch.eye(4))
value.backward()
assert np.isfinite(value.item())
print(f"Python {sys.version.split()[0]}: a metric and a loss work")
"""


def contents(path: Path) -> list[str]:
    """Returns the names of the files in a distribution, without the folder of a source distribution."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return wheel.namelist()
    with tarfile.open(path) as sdist:
        return [member.name.partition("/")[2] for member in sdist.getmembers() if member.isfile()]


def check_contents(wheel: Path, sdist: Path) -> None:
    """Checks that the wheel has the files of the package and no others, and the source distribution these too."""
    source = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src/pisces").rglob("*.py")}
    page = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src/pisces").rglob("*")}
    wanted = source | {name for name in page if name.endswith(PAGE_FILES)} | {"pisces/py.typed"}
    in_wheel = {name for name in contents(wheel) if ".dist-info/" not in name}
    if in_wheel != wanted:
        raise SystemExit(f"the wheel lacks {sorted(wanted - in_wheel)} and has {sorted(in_wheel - wanted)} too much")
    in_sdist = {name.removeprefix("src/") for name in contents(sdist) if name.startswith("src/pisces/")}
    outside = [name for name in contents(sdist) if name.split("/")[0] in ("tests", "results", "docs", "studies")]
    if in_sdist != wanted or outside:
        raise SystemExit(f"the source distribution differs from src/: {sorted(in_sdist ^ wanted)}, {outside}")


def run(*command: str, folder: Path) -> str:
    """Runs a command in a folder, without the settings of the caller's Python; returns its output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def check_installation(wheel: Path, folder: Path) -> None:
    """Installs a wheel into a new environment in `folder` and uses it there."""
    run(sys.executable, "-m", "venv", "environment", folder=folder)
    bin_folder = folder / "environment" / ("Scripts" if os.name == "nt" else "bin")
    python, command = str(bin_folder / "python"), str(bin_folder / "pisces")
    pinned = ("--quiet", "--constraint", str(ROOT / "constraints.txt"))
    run(python, "-m", "pip", "install", *pinned, f"{wheel.resolve()}[cli]", folder=folder)
    version = package_version()
    print(run(python, "-I", "-c", PROGRAM, version, folder=folder))
    if run(command, "--version", folder=folder) != f"pisces {version}":
        raise SystemExit(f"pisces --version does not print {version}")
    run(command, "demo", "--preset", "smoke", "--out", "demo", folder=folder)
    run(command, "report", "demo/runs", "--out", "report", folder=folder)
    for page in (folder / "demo/report.html", folder / "report/report.html"):
        check_page(page.read_text("utf-8"))
    print("pisces demo and pisces report work")


def check_page(text: str) -> None:
    """Checks that a page holds the scripts and styles of the package."""
    for name in ("reports/page/page.css", "reports/page/vendor/plot.min.js"):
        if (ROOT / "src/pisces" / name).read_text("utf-8").strip() not in text:
            raise SystemExit(f"a page lacks {name}")


def main() -> None:
    """Checks the two distributions in a folder."""
    parser = argparse.ArgumentParser(description="Check sdist and wheel.")
    parser.add_argument("folder", type=Path, help="folder of the distributions")
    folder = parser.parse_args().folder
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    if f"-{package_version()}-" not in wheel.name or f"-{package_version()}.tar.gz" not in sdist.name:
        raise SystemExit(f"expected distributions of version {package_version()}, got {wheel.name} and {sdist.name}")
    check_contents(wheel, sdist)
    with tempfile.TemporaryDirectory() as empty:
        check_installation(wheel, Path(empty))


if __name__ == "__main__":
    main()
