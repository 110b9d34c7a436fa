"""Drawing without a screen: which OpenGL back end works here, and what to install if none does."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from typing import Any, Literal

from pisces.errors import UserError, unknown_name

Backend = Literal["egl", "osmesa"]

INSTALL = "apt-get install -y libegl1 libgl1 libosmesa6"
VARIABLE = "MUJOCO_GL"
"""MuJoCo's own environment variable: set it to insist on a back end."""
SOFTWARE_THREADS = "LP_NUM_THREADS"
"""Mesa's number of drawing threads. Small frames are drawn fastest by the calling thread alone ("0")."""
EGL_LIBRARIES = ("libEGL.so.1",)
OSMESA_LIBRARIES = ("libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so")


def egl_problem() -> str | None:
    """Says why EGL can't be used, or None if it can: on a GPU, or in software where there is none."""
    try:
        library = _load(EGL_LIBRARIES)
        library.eglGetProcAddress.restype = ctypes.c_void_p
        found = library.eglGetProcAddress(b"eglQueryDevicesEXT")
    except (OSError, AttributeError):
        return f"{EGL_LIBRARIES[0]} is missing"
    if not found:
        return "this EGL can't list devices"
    query = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))(found)
    devices = ctypes.c_int(0)
    if not query(0, None, ctypes.byref(devices)) or devices.value == 0:
        return "EGL finds no device"
    return None


def osmesa_problem() -> str | None:
    """Says why OSMesa can't be used, or None if it can."""
    try:
        _load(OSMESA_LIBRARIES)
    except OSError:
        return f"{OSMESA_LIBRARIES[0]} is missing"
    return None


PROBES: dict[Backend, Callable[[], str | None]] = {"egl": egl_problem, "osmesa": osmesa_problem}


def choose_backend() -> Backend:
    """Returns the back end to draw with: MUJOCO_GL if it names one, else the first that works here."""
    wanted = os.environ.get(VARIABLE, "").strip().lower()
    if wanted and wanted not in PROBES:
        raise unknown_name(VARIABLE, wanted, PROBES)
    candidates = [backend for backend in PROBES if wanted in ("", backend)]
    problems = {backend: PROBES[backend]() for backend in candidates}
    for backend, problem in problems.items():
        if problem is None:
            return backend
    reasons = ", ".join(f"{backend}: {problem}" for backend, problem in problems.items())
    raise UserError(f"expected a GL library to draw with, got none ({reasons}); install one: {INSTALL}")


def prepare() -> Backend:
    """Chooses a back end and tells MuJoCo, which must happen before it is imported."""
    backend = choose_backend()
    os.environ.setdefault(VARIABLE, backend)
    os.environ.setdefault(SOFTWARE_THREADS, "0")
    return backend


def make_context(backend: Backend, width: int, height: int) -> Any:
    """Creates the GL context of a back end and makes it current."""
    try:
        if backend == "egl":
            from mujoco.egl import GLContext
        else:
            from mujoco.osmesa import GLContext
        context = GLContext(width, height)
        context.make_current()
    except Exception as error:  # each back end has its own errors, and all of them mean the same to a user
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(f"expected {backend} to draw, got: {reason}; install what is missing: {INSTALL}") from error
    return context


def control_problem() -> str | None:
    """Says which Python package is missing, or None."""
    import importlib.util

    for name in ("mujoco", "dm_control"):
        if name not in sys.modules and importlib.util.find_spec(name) is None:
            return f"{name} is not installed: pip install 'pisces-rl[control]'"
    return None


def _load(names: tuple[str, ...]) -> Any:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise OSError(names[0])
