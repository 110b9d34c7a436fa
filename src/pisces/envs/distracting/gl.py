"""Rendering without a display: finds an OpenGL backend that works, or says what to install."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any, Literal

from pisces.errors import UserError, unknown_name

Backend = Literal["egl", "osmesa"]

INSTALL = "apt-get install -y libegl1 libgl1 libosmesa6"
VARIABLE = "MUJOCO_GL"
"""MuJoCo's environment variable that selects a backend."""
SOFTWARE_THREADS = "LP_NUM_THREADS"
"""Mesa's number of rendering threads. Small frames render fastest in the calling thread alone ("0")."""
EGL_LIBRARIES = ("libEGL.so.1",)
OSMESA_LIBRARIES = ("libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so")


def egl_problem() -> str | None:
    """Returns why EGL cannot be used, or None if it works (on a GPU, or in software)."""
    try:
        library = _load(EGL_LIBRARIES)
        library.eglGetProcAddress.restype = ctypes.c_void_p
        found = library.eglGetProcAddress(b"eglQueryDevicesEXT")
    except (OSError, AttributeError):
        return f"{EGL_LIBRARIES[0]} is missing"
    if not found:
        return "this EGL cannot list devices"
    query = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))(found)
    devices = ctypes.c_int(0)
    if not query(0, None, ctypes.byref(devices)) or devices.value == 0:
        return "EGL finds no device"
    return None


def osmesa_problem() -> str | None:
    """Returns why OSMesa cannot be used, or None if it works."""
    try:
        _load(OSMESA_LIBRARIES)
    except OSError:
        return f"{OSMESA_LIBRARIES[0]} is missing"
    return None


PROBES: dict[Backend, Callable[[], str | None]] = {"egl": egl_problem, "osmesa": osmesa_problem}


def choose_backend() -> Backend:
    """Returns the backend to render with: MUJOCO_GL if it is set, else the first one that works."""
    wanted = os.environ.get(VARIABLE, "").strip().lower()
    if wanted and wanted not in PROBES:
        raise unknown_name(VARIABLE, wanted, PROBES)
    candidates = [backend for backend in PROBES if wanted in ("", backend)]
    problems = {backend: PROBES[backend]() for backend in candidates}
    for backend, problem in problems.items():
        if problem is None:
            return backend
    reasons = ", ".join(f"{backend}: {problem}" for backend, problem in problems.items())
    raise UserError(f"no GL library to render with ({reasons}); install one: {INSTALL}")


def prepare() -> Backend:
    """Chooses a backend and sets MuJoCo's environment variable; call it before importing MuJoCo."""
    backend = choose_backend()
    os.environ[VARIABLE] = backend  # as MuJoCo spells it, whatever the case that was given
    os.environ.setdefault(SOFTWARE_THREADS, "0")
    return backend


def make_context(backend: Backend, width: int, height: int) -> Any:
    """Creates the GL context of a backend and makes it current."""
    try:
        if backend == "egl":
            from mujoco.egl import GLContext
        else:
            from mujoco.osmesa import GLContext
        context = GLContext(width, height)
        context.make_current()
    except Exception as error:  # backends raise different errors that mean the same to a user
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(f"{backend} cannot render: {reason}; install what is missing: {INSTALL}") from error
    return context


def _load(names: tuple[str, ...]) -> Any:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise OSError(names[0])
