"""Checks of the installation: packages, compiled kernels, disk, rendering."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pisces
from pisces.errors import EXTRAS, missing_text

REQUIRED = ("numpy", "scipy", "numba", "gymnasium")
FREE_GIGABYTES = 1.0


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    name: str
    """What."""
    state: str
    """"ok", "missing" (an optional part) or "broken"."""
    detail: str
    """The version, or what to do."""


def examine(full: bool = False) -> list[Finding]:
    """Looks at Python, the packages, the disk and the libraries for drawing.

    Args:
        full: also look at what takes seconds: threads and devices of torch, compiled kernels, videos.
    """
    findings = [Finding("pisces", "ok", pisces.__version__), Finding("python", "ok", sys.version.split()[0])]
    findings += [_package(name) for name in REQUIRED]
    findings += [_extra(name, module, extra) for name, (module, extra) in EXTRAS.items()]
    findings += [_disk(), *_gl_backends()]
    if full:
        findings += [_attempt("threads", _threads), _attempt("compiled kernels", _kernels), _attempt("videos", _videos)]
    return findings


def _package(name: str) -> Finding:
    if importlib.util.find_spec(name) is None:
        return Finding(name, "broken", f"not installed: pip install {name}")
    return Finding(name, "ok", metadata.version(name))


def _extra(name: str, module: str, extra: str) -> Finding:
    if importlib.util.find_spec(module) is None:
        return Finding(name, "missing", f"optional: {missing_text(module, extra)}")
    return Finding(name, "ok", metadata.version(name))


def _attempt(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(name, "ok", check())
    except Exception as error:
        return Finding(name, "broken", f"{type(error).__name__}: {error}")


def _threads() -> str:
    import torch  # slow to import, and needed here alone

    cuda = f"{torch.cuda.device_count()} CUDA devices" if torch.cuda.is_available() else "no CUDA device"
    return f"{os.cpu_count()} cores, torch uses {torch.get_num_threads()} threads, {cuda}"


def _kernels() -> str:
    from pisces.metrics import sequence_metric  # imports numba

    value = float(sequence_metric([[1.0]], 0.5)[0, 0])
    if value != 2.0:
        raise ValueError(f"expected a distance of 2, got {value}")
    return "the metric of a known pair is right"


def _disk() -> Finding:
    free = shutil.disk_usage(Path.cwd()).free / 1e9
    if free < FREE_GIGABYTES:
        return Finding("disk", "broken", f"{free:.1f} GB free here; runs need at least {FREE_GIGABYTES:.0f} GB")
    return Finding("disk", "ok", f"{free:.0f} GB free here")


def _gl_backends() -> list[Finding]:
    """Looks for the libraries that draw without a screen; both are optional."""
    from pisces.envs.distracting import gl

    findings = []
    for backend, probe in gl.PROBES.items():
        problem = probe()
        detail = "draws without a screen" if problem is None else f"optional: {problem}; {gl.INSTALL}"
        findings.append(Finding(f"GL: {backend}", "ok" if problem is None else "missing", detail))
    return findings


def _videos() -> str:
    from pisces.envs.distracting.videos import TEST_CLIPS, TRAIN_CLIPS, find_videos

    find_videos("test").load(0, 16)
    return f"{TRAIN_CLIPS} training and {TEST_CLIPS} test clips are built in; --davis names a DAVIS 2017 folder"
