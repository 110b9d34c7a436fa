"""Control tasks with distracting video backgrounds (Sec. 6.2 and App. H, arXiv:2101.05265)."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from pisces.envs.distracting.distractions import Background, CameraWalk, ColorWalk
from pisces.envs.distracting.tasks import action_repeat as default_repeat
from pisces.envs.distracting.tasks import check_size, check_task, find_variant
from pisces.envs.distracting.videos import find_videos
from pisces.errors import UserError, unknown_name

SKY_SCALE = 2.4
"""Size of a face of the sky relative to a frame: a default camera sees 41 % of a face's width."""
OPTIONS = ("background_seed", "video")
GRID = "grid"


class DistractingEnv(gym.Env[NDArray[np.uint8], NDArray[np.float32]]):
    """A task of dm_control's suite, seen as pixels with a video background.

    The video, its first frame and its direction are sampled at every reset, and it advances by one frame per simulator
    step. The physics does not depend on it: the same seed and actions give the same states and rewards with any
    background. `reset` takes the options `background_seed`, which determines all distractions of the episode, and
    `video`, the index of the video to show.

    Args:
        task: domain and task, e.g. "cartpole-swingup".
        variant: "paper", "plain" (no distraction), "dcs-easy", "dcs-medium" or "dcs-hard" (colors and camera too).
        videos: "train", "test" or "validation" for the built-in clips, or a folder of image sequences or video files.
        davis: a DAVIS 2017 folder, to which "train", "test" and "validation" then refer.
        frame_size: height and width of the frames.
        frame_stack: consecutive frames in an observation, the newest one last.
        action_repeat: simulator steps per action; the paper's number if None.
        dynamic: False freezes the distractions within an episode.
        camera: index of the camera.
        supersampling: how many times as high and wide frames are rendered before they are averaged.
        render_mode: "rgb_array" or None.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012 (Gymnasium's convention)

    def __init__(
        self,
        task: str = "cartpole-swingup",
        variant: str = "paper",
        videos: str | Path = "train",
        davis: str | Path | None = None,
        frame_size: int = 84,
        frame_stack: int = 3,
        action_repeat: int | None = None,
        dynamic: bool = True,
        camera: int = 0,
        supersampling: int = 2,
        render_mode: str | None = None,
    ) -> None:
        check_task(task)
        self.variant, self._dynamic = find_variant(variant), dynamic
        self.action_repeat = default_repeat(task) if action_repeat is None else action_repeat
        check_size(frame_size, frame_stack, self.action_repeat, supersampling)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise UserError(f"expected render_mode 'rgb_array' or None, got {render_mode!r}")
        if not isinstance(dynamic, bool) or not isinstance(camera, int | np.integer):
            raise UserError(f"expected True or False for dynamic, a number for camera, got {dynamic!r} and {camera!r}")
        self._sky_size = round(SKY_SCALE * frame_size / 8) * 8
        self.videos = find_videos(videos, davis, self.variant.train_videos) if self.variant.background else None
        if self.videos is not None:
            self.videos.load(0, self._sky_size)  # reports a damaged folder now, not at the first reset
        self._build(task, frame_size, camera, supersampling)
        self.render_mode = render_mode
        self._frames: deque[NDArray[np.uint8]] = deque(maxlen=frame_stack)
        self.observation_space = gym.spaces.Box(0, 255, (frame_size, frame_size, 3 * frame_stack), np.uint8)
        self.action_space = gym.spaces.Box(-1.0, 1.0, self._low.shape, np.float32)
        self._walks: list[Background | ColorWalk | CameraWalk] = []
        self._background: Background | None = None
        self._colors: ColorWalk | None = None
        self._camera_walk: CameraWalk | None = None
        self._seed_streams(int(self.np_random.integers(2**31)))

    def _build(self, task: str, frame_size: int, camera: int, supersampling: int) -> None:
        from pisces.envs.distracting.render import SceneRenderer, load_task  # imports MuJoCo

        domain, name = task.split("-", 1)
        self._env = load_task(domain, name, self._sky_size if self.variant.background else None)
        self.physics = self._env.physics
        model = self.physics.model.ptr
        self._default_colors = np.array(model.mat_rgba[:, :3], dtype=np.float64)
        names = [model.mat(index).name for index in range(model.nmat)]
        if self.variant.background and GRID in names:
            model.mat_rgba[names.index(GRID), 3] = self.variant.floor_alpha(domain)
        self._renderer = SceneRenderer(model, frame_size, camera, supersampling)
        spec = self._env.action_spec()
        self._low = np.broadcast_to(spec.minimum, spec.shape).astype(np.float64)
        self._high = np.broadcast_to(spec.maximum, spec.shape).astype(np.float64)

    def _seed_streams(self, seed: int) -> None:
        self._background_rng = np.random.default_rng([seed, 1])
        self._env.task.random.seed(seed % 2**32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Starts an episode; see the class for `options`."""
        chosen = self._check_options(options or {})
        super().reset(seed=seed)
        if seed is not None:
            self._seed_streams(seed)
        # Sampled in any case, so that an option changes this episode alone.
        drawn = int(self._background_rng.integers(2**31))
        video = self._distract(chosen.get("background_seed", drawn), chosen.get("video"))
        self._env.reset()
        self._renderer.upload_terrain()
        frame = self._draw()
        self._frames.extend([frame] * self._frames.maxlen)  # type: ignore[operator]
        return self._observe(), {"video": video}

    def _check_options(self, options: dict[str, Any]) -> dict[str, int]:
        """Returns the given options as integers; raises before anything changes if one is invalid."""
        limits = {"background_seed": 2**63, "video": len(self.videos) if self.videos is not None else 2**31}
        for name, value in options.items():
            if name not in OPTIONS:
                raise unknown_name("option", name, OPTIONS)
            if not (isinstance(value, int | np.integer) and 0 <= value < limits[name]):
                raise UserError(f"expected a {name} in 0..{limits[name] - 1}, got {value!r}")
        return {name: int(value) for name, value in options.items()}

    def _distract(self, seed: int, video: int | None) -> int | None:
        """Samples the episode's distractions; returns the index of the video."""
        rng = np.random.default_rng([seed, 2])
        self._walks.clear()
        if self.videos is None:
            return None
        drawn = int(rng.integers(len(self.videos)))
        video = drawn if video is None else video
        self._background = Background(self.videos.load(video, self._sky_size), rng, self._dynamic)
        self._walks.append(self._background)
        if self.variant.color:
            self._colors = ColorWalk(self._default_colors, self.variant.color, rng, self._dynamic)
            self._walks.append(self._colors)
        if self.variant.camera:
            self._camera_walk = CameraWalk(self.variant.camera, rng, self._dynamic)
            self._walks.append(self._camera_walk)
        return video

    def step(self, action: NDArray[np.float32]) -> tuple[NDArray[np.uint8], SupportsFloat, bool, bool, dict[str, Any]]:
        """Repeats the action; the reward is the sum over the simulator's steps."""
        if not self._frames:
            raise UserError("the environment was not reset; call reset before step")
        values = np.asarray(action, dtype=np.float64)
        if values.shape != self._low.shape or not np.isfinite(values).all():
            raise UserError(f"expected a finite action of shape {self._low.shape}, got {action!r}")
        control = self._low + (np.clip(values, -1, 1) + 1) / 2 * (self._high - self._low)
        reward, last, steps = 0.0, False, 0
        while steps < self.action_repeat and not last:
            result = self._env.step(control)
            reward += float(result.reward or 0.0)
            last, steps = result.last(), steps + 1
            for walk in self._walks:
                walk.advance()
        self._frames.append(self._draw())
        terminated = last and result.discount == 0.0
        return self._observe(), reward, terminated, last and not terminated, {"steps": steps}

    def _draw(self) -> NDArray[np.uint8]:
        if self._colors is not None:
            self.physics.model.ptr.mat_rgba[:, :3] = self._colors.colors
        sky = None if self._background is None else self._background.frame
        view = None if self._camera_walk is None else self._camera_walk.view
        return self._renderer.draw(self.physics.data.ptr, sky, view)

    def _observe(self) -> NDArray[np.uint8]:
        return np.concatenate(self._frames, axis=-1)

    def state(self) -> NDArray[np.float64]:
        """Returns the state of the physics: positions, velocities, activations."""
        return np.array(self.physics.get_state())

    def render(self) -> NDArray[np.uint8]:
        """Returns the newest frame."""
        if not self._frames:
            raise UserError("the environment was not reset; call reset before render")
        return self._frames[-1].copy()

    def close(self) -> None:
        """Frees the GL context."""
        self._renderer.close()
