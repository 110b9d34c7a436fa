"""Draws a MuJoCo scene with a picture on its sky, fast in software too.

Settings: no multisampling, no shadows, no reflections, and Mesa draws in the calling thread. MuJoCo's own upload of a
texture makes all its smaller versions for all six faces of the sky, which costs several times as much as drawing the
scene; here a picture goes straight into those faces that the camera sees.
"""

from __future__ import annotations

import atexit
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from threading import Lock
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from pisces.envs import gl
from pisces.envs.distractions import View
from pisces.errors import UserError

BACKEND = gl.prepare()  # before the next line, because MuJoCo looks for a screen otherwise

import mujoco  # noqa: E402
from dm_control import suite  # noqa: E402
from dm_control.suite import common  # noqa: E402

MAXIMUM_GEOMS = 1000
FACES = 6
SKY_FILE = "./common/skybox.xml"
SKY_PICTURE = "pisces_sky.png"
GROUND_CLEARANCE = 0.05
"""A camera that wanders stays this far above the floor."""
_assets_lock = Lock()
_open_renderers: WeakSet[SceneRenderer] = WeakSet()


def load_task(domain: str, task: str, sky_size: int | None) -> Any:
    """Loads a task of dm_control's suite, with a plain square picture of `sky_size` as its sky if that is given."""
    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.ERROR)  # the suite's own models use what MuJoCo calls deprecated
    try:
        with nullcontext() if sky_size is None else _sky_of_size(sky_size):
            env = suite.load(domain, task)
    finally:
        logger.setLevel(level)
    if env.physics.model.nhfield:
        # A task that changes its terrain would make a GL context of dm_control's own to put it into, beside ours, which
        # gets it by `upload_terrain`.
        kind = type(env.physics)
        env.physics.__class__ = type(kind.__name__, (kind,), {"contexts": None})
    return env


@contextmanager
def _sky_of_size(size: int) -> Iterator[None]:
    """Lets the suite's models find a sky that can be replaced quickly."""
    texture = f'<texture name="skybox" type="skybox" file="{SKY_PICTURE}"/>'.encode()
    with _assets_lock:
        before, read = common.ASSETS[SKY_FILE], common.read_model
        common.ASSETS[SKY_FILE] = b"<mujoco><asset>" + texture + b"</asset></mujoco>"
        common.ASSETS[SKY_PICTURE] = _black_png(size)
        # The fish has a sky of its own in its model.
        common.read_model = lambda name: re.sub(rb'<texture[^>]*type="skybox"[^>]*/>', texture, read(name))
        try:
            yield
        finally:
            common.ASSETS[SKY_FILE], common.read_model = before, read
            del common.ASSETS[SKY_PICTURE]


def _black_png(size: int) -> bytes:
    import io

    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", (size, size)).save(buffer, "PNG")
    return buffer.getvalue()


class SceneRenderer:
    """Draws the states of one model.

    Args:
        model: the model; its settings of quality are lowered.
        size: height and width of the frames.
        camera: number of the camera.
    """

    def __init__(self, model: Any, size: int, camera: int = 0) -> None:
        if not 0 <= camera < model.ncam:
            raise UserError(f"expected a camera in 0..{model.ncam - 1}, got {camera}")
        self._model, self._size = model, size
        model.vis.quality.offsamples, model.vis.quality.shadowsize = 0, 0
        model.vis.global_.offwidth = model.vis.global_.offheight = size
        self._gl = gl.make_context(BACKEND, size, size)
        if not _open_renderers:
            atexit.register(_close_all)  # after MuJoCo's own, so that it runs before it
        _open_renderers.add(self)
        self._context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        self._scene = mujoco.MjvScene(model, MAXIMUM_GEOMS)
        for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
            self._scene.flags[int(flag)] = 0
        self._camera = mujoco.MjvCamera()
        self._camera.type, self._camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, camera
        self._option, self._rectangle = mujoco.MjvOption(), mujoco.MjrRect(0, 0, size, size)
        self._sky = _Sky(model, self._context)
        self._seen: tuple[NDArray[np.float32], list[int]] | None = None

    def draw(self, data: Any, sky: NDArray[np.uint8] | None = None, view: View | None = None) -> NDArray[np.uint8]:
        """Draws a state.

        Args:
            data: MuJoCo's state.
            sky: picture for the sky, as large as the model's sky; None leaves it as it is.
            view: a change of the camera.

        Returns:
            The frame, uint8 [size, size, 3], row 0 at the top.
        """
        self._gl.make_current()
        everything = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(self._model, data, self._option, None, self._camera, everything, self._scene)
        if view is not None:
            self._move_camera(data, view)
        if sky is not None:
            self._sky.show(sky, range(FACES) if view is not None else self._visible_faces())
        mujoco.mjr_render(self._rectangle, self._scene, self._context)
        frame = np.empty((self._size, self._size, 3), dtype=np.uint8)
        mujoco.mjr_readPixels(frame, None, self._rectangle, self._context)
        return frame[::-1].copy()

    def upload_terrain(self) -> None:
        """Takes up height fields that have changed."""
        self._gl.make_current()
        for index in range(self._model.nhfield):
            mujoco.mjr_uploadHField(self._model, self._context, index)

    def _visible_faces(self) -> list[int]:
        """Finds the faces of the sky in sight by painting and drawing them; a camera that turns sees all."""
        camera = self._scene.camera[0]
        direction = np.concatenate([camera.forward, camera.up])
        if self._seen is None:
            self._seen = direction, self._paint_faces()
        elif len(self._seen[1]) < FACES and not np.allclose(self._seen[0], direction, atol=1e-4):
            self._seen = direction, list(range(FACES))
        return self._seen[1]

    def _paint_faces(self) -> list[int]:
        for face in range(FACES):
            self._sky.show(np.full((self._sky.size, self._sky.size, 3), 40 * (face + 1), np.uint8), [face])
        geoms, self._scene.ngeom = self._scene.ngeom, 0
        mujoco.mjr_render(self._rectangle, self._scene, self._context)
        self._scene.ngeom = geoms
        frame = np.empty((self._size, self._size, 3), dtype=np.uint8)
        mujoco.mjr_readPixels(frame, None, self._rectangle, self._context)
        values = frame[..., 0].astype(int)
        # Colours blend where faces meet, so a face counts as seen also next to its own colour.
        return [face for face in range(FACES) if (abs(values - 40 * (face + 1)) <= 20).any()]

    def _move_camera(self, data: Any, view: View) -> None:
        usual = self._scene.camera[0]
        forward, up = np.array(usual.forward, float), np.array(usual.up, float)
        place = (np.array(usual.pos, float) + np.array(self._scene.camera[1].pos, float)) / 2
        target = place + forward * max(float(np.dot(self._subject(data) - place, forward)), 0.5)
        right = np.cross(forward, up)
        turn = _rotation(np.array([0.0, 0.0, 1.0]), view.horizontal) @ _rotation(right, view.vertical)
        offset = turn @ (place - target) * view.distance
        moved = target + offset
        if place[2] > GROUND_CLEARANCE:
            moved[2] = max(moved[2], GROUND_CLEARANCE)
        sight = (target - moved) / np.linalg.norm(target - moved)
        upward = _rotation(sight, view.roll) @ turn @ up
        upward -= sight * np.dot(upward, sight)
        for camera in self._scene.camera:
            camera.pos, camera.forward, camera.up = moved, sight, upward / np.linalg.norm(upward)

    def _subject(self, data: Any) -> NDArray[np.float64]:
        """The centre of mass of everything that moves."""
        return np.array(data.subtree_com[1 if self._model.nbody > 1 else 0])

    def close(self) -> None:
        """Lets go of the GL context."""
        if self._gl is not None:
            self._gl.make_current()
            self._context.free()
            self._gl.free()
            self._gl = None

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()


def _close_all() -> None:
    for renderer in list(_open_renderers):
        renderer.close()


class _Sky:
    """The cube of six pictures around the scene."""

    def __init__(self, model: Any, context: Any) -> None:
        from OpenGL import GL  # only now is it known which library it shall load

        self._gl = GL
        skies = np.flatnonzero(model.tex_type == int(mujoco.mjtTexture.mjTEXTURE_SKYBOX))
        self._texture = int(context.texture[skies[0]]) if len(skies) else None
        self.size = int(model.tex_width[skies[0]]) if len(skies) else 0

    def show(self, picture: NDArray[np.uint8], faces: Any) -> None:
        """Puts one picture on some faces."""
        if self._texture is None:
            raise UserError("expected a task with a sky to put a video on, got one without; use variant plain")
        if picture.shape[:2] != (self.size, self.size):  # GL would read beyond it
            raise UserError(f"expected a picture of {self.size} x {self.size} for the sky, got {picture.shape[:2]}")
        gl_ = self._gl
        gl_.glBindTexture(gl_.GL_TEXTURE_CUBE_MAP, self._texture)
        gl_.glTexParameteri(gl_.GL_TEXTURE_CUBE_MAP, gl_.GL_TEXTURE_MIN_FILTER, gl_.GL_LINEAR)
        gl_.glPixelStorei(gl_.GL_UNPACK_ALIGNMENT, 1)
        size = self.size
        for face in faces:
            target = gl_.GL_TEXTURE_CUBE_MAP_POSITIVE_X + face
            gl_.glTexSubImage2D(target, 0, 0, 0, size, size, gl_.GL_RGB, gl_.GL_UNSIGNED_BYTE, picture)


def _rotation(axis: NDArray[np.float64], angle: float) -> NDArray[np.float64]:
    """The matrix that turns around an axis (Rodrigues' formula)."""
    x, y, z = axis / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.asarray(np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * (cross @ cross))
