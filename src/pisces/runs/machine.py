"""Versions of the software and the CPU that a run used."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pisces


def machine_info() -> dict[str, Any]:
    """Returns the versions of the software and the CPU of this machine."""
    packages = [name for name in ("torch", "numpy", "numba") if importlib.util.find_spec(name)]
    return {
        "pisces": pisces.__version__,
        "python": sys.version.split()[0],
        "processor": _cpu_name(),
        "cores": os.cpu_count(),
        "versions": {name: metadata.version(name) for name in packages},
    }


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
