"""Renders a MuJoCo scene with an image on its skybox, fast in software too.

Multisampling, shadows and reflections are off, and Mesa renders in the calling thread. MuJoCo's own texture upload
makes mipmaps for all six faces of the skybox, which takes several times as long as rendering the scene; here an image
is written directly to the faces that the camera sees.
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

from pisces.envs.distracting import gl
from pisces.envs.distracting.distractions import View
from pisces.errors import UserError, import_extra

BACKEND = gl.prepare()  # before MuJoCo is imported, which looks for a display otherwise
mujoco = import_extra("mujoco", "control")
suite = import_extra("dm_control.suite", "control")
common = import_extra("dm_control.suite.common", "control")

MAXIMUM_GEOMS = 1000
FACES = 6
TENDON_SLICES, TENDON_STACKS = 12, 6
"""Detail of round shapes in models that draw tendons. MuJoCo draws a tendon as a chain of as many capsules as it has
slices, each with as many sides: with its 28 slices, the string of ball_in_cup takes most of the time of a frame."""
SKY_FILE = "./common/skybox.xml"
SKY_IMAGE = "pisces_sky.png"
GROUND_CLEARANCE = 0.05
"""Smallest height of a moving camera above the floor."""
_assets_lock = Lock()
_open_renderers: WeakSet[SceneRenderer] = WeakSet()


def load_task(domain: str, task: str, sky_size: int | None) -> Any:
    """Loads a task of dm_control's suite, with a black square image of `sky_size` as its skybox if that is given."""
    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.ERROR)  # the suite's models use deprecated features of MuJoCo
    try:
        with nullcontext() if sky_size is None else _sky_of_size(sky_size):
            env = suite.load(domain, task)
    finally:
        logger.setLevel(level)
    if env.physics.model.nhfield:
        # A task that changes its terrain would create a second GL context of dm_control to upload it to; ours gets it
        # from `upload_terrain`.
        kind = type(env.physics)
        env.physics.__class__ = type(kind.__name__, (kind,), {"contexts": None})
    return env


@contextmanager
def _sky_of_size(size: int) -> Iterator[None]:
    """Replaces the skybox of the suite's models by an image that can be changed quickly."""
    texture = f'<texture name="skybox" type="skybox" file="{SKY_IMAGE}"/>'.encode()
    with _assets_lock:
        before, read = common.ASSETS[SKY_FILE], common.read_model
        common.ASSETS[SKY_FILE] = b"<mujoco><asset>" + texture + b"</asset></mujoco>"
        common.ASSETS[SKY_IMAGE] = _black_png(size)
        # The fish has a skybox of its own in its model.
        common.read_model = lambda name: re.sub(rb'<texture[^>]*type="skybox"[^>]*/>', texture, read(name))
        try:
            yield
        finally:
            common.ASSETS[SKY_FILE], common.read_model = before, read
            del common.ASSETS[SKY_IMAGE]


def _black_png(size: int) -> bytes:
    import io

    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", (size, size)).save(buffer, "PNG")
    return buffer.getvalue()


class SceneRenderer:
    """Renders the states of one model.

    Args:
        model: the model; its rendering quality is lowered.
        size: height and width of the frames.
        camera: index of the camera.
        supersampling: frames are rendered this many times as high and wide, and averaged.
    """

    def __init__(self, model: Any, size: int, camera: int = 0, supersampling: int = 1) -> None:
        if not 0 <= camera < model.ncam:
            raise UserError(f"expected a camera in 0..{model.ncam - 1}, got {camera}")
        self._model, self._supersampling = model, supersampling
        self._size = size = size * supersampling
        model.vis.quality.offsamples, model.vis.quality.shadowsize = 0, 0
        if (model.wrap_type[model.tendon_adr] != mujoco.mjtWrap.mjWRAP_JOINT).any():  # others are not drawn
            model.vis.quality.numslices, model.vis.quality.numstacks = TENDON_SLICES, TENDON_STACKS
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
        """Renders a state.

        Args:
            data: MuJoCo's state.
            sky: image for the skybox, of the skybox's size; None leaves it unchanged.
            view: pose of the camera relative to its default.

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
        return _shrink(self._pixels(), self._supersampling)[::-1].copy()

    def _pixels(self) -> NDArray[np.uint8]:
        """Renders the scene as it is; row 0 is at the bottom."""
        mujoco.mjr_render(self._rectangle, self._scene, self._context)
        frame = np.empty((self._size, self._size, 3), dtype=np.uint8)
        mujoco.mjr_readPixels(frame, None, self._rectangle, self._context)
        return frame

    def upload_terrain(self) -> None:
        """Uploads height fields that have changed."""
        self._gl.make_current()
        for index in range(self._model.nhfield):
            mujoco.mjr_uploadHField(self._model, self._context, index)

    def _visible_faces(self) -> list[int]:
        """Finds the visible faces of the skybox by rendering each in its own color; a camera that turns sees all."""
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
        values = self._pixels()[..., 0].astype(int)
        self._scene.ngeom = geoms
        # Colors blend where faces meet, so a face also counts as visible near its own color.
        return [face for face in range(FACES) if (abs(values - 40 * (face + 1)) <= 20).any()]

    def _move_camera(self, data: Any, view: View) -> None:
        default = self._scene.camera[0]
        forward, up = np.array(default.forward, float), np.array(default.up, float)
        place = (np.array(default.pos, float) + np.array(self._scene.camera[1].pos, float)) / 2
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
        """Returns the center of mass of everything that moves."""
        return np.array(data.subtree_com[1 if self._model.nbody > 1 else 0])

    def close(self) -> None:
        """Frees the GL context."""
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
    """The skybox: six images around the scene."""

    def __init__(self, model: Any, context: Any) -> None:
        from OpenGL import GL  # which library it loads depends on the backend

        self._gl = GL
        skies = np.flatnonzero(model.tex_type == int(mujoco.mjtTexture.mjTEXTURE_SKYBOX))
        self._texture = int(context.texture[skies[0]]) if len(skies) else None
        self.size = int(model.tex_width[skies[0]]) if len(skies) else 0

    def show(self, image: NDArray[np.uint8], faces: Any) -> None:
        """Shows one image on some faces."""
        if self._texture is None:
            raise UserError("the task has no skybox to show a video on; use variant='plain'")
        if image.shape[:2] != (self.size, self.size):  # GL would read beyond it
            raise UserError(f"expected an image of {self.size} x {self.size} for the skybox, got {image.shape[:2]}")
        gl_ = self._gl
        gl_.glBindTexture(gl_.GL_TEXTURE_CUBE_MAP, self._texture)
        gl_.glTexParameteri(gl_.GL_TEXTURE_CUBE_MAP, gl_.GL_TEXTURE_MIN_FILTER, gl_.GL_LINEAR)
        gl_.glPixelStorei(gl_.GL_UNPACK_ALIGNMENT, 1)
        size = self.size
        for face in faces:
            target = gl_.GL_TEXTURE_CUBE_MAP_POSITIVE_X + face
            gl_.glTexSubImage2D(target, 0, 0, 0, size, size, gl_.GL_RGB, gl_.GL_UNSIGNED_BYTE, image)


def _shrink(frame: NDArray[np.uint8], factor: int) -> NDArray[np.uint8]:
    """Averages squares of factor x factor pixels, rounded to the nearest byte."""
    if factor == 1:
        return frame
    total = np.zeros((len(frame) // factor, frame.shape[1] // factor, frame.shape[2]), np.uint32)
    for row in range(factor):
        for column in range(factor):
            total += frame[row::factor, column::factor]
    return ((total + factor * factor // 2) // (factor * factor)).astype(np.uint8)


def _rotation(axis: NDArray[np.float64], angle: float) -> NDArray[np.float64]:
    """Returns the rotation matrix around an axis (Rodrigues' formula)."""
    x, y, z = axis / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.asarray(np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * (cross @ cross))
