"""The jumping task as a Gymnasium environment."""

from __future__ import annotations

from typing import Any, Literal, SupportsFloat

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from pisces.envs.jumping.dynamics import JumpingState, is_success, transition
from pisces.envs.jumping.render import decode_frames, render_frames
from pisces.envs.jumping.tasks import JUMP, RIGHT, SCREEN, Color, JumpingTask
from pisces.errors import UserError, import_extra, unknown_name


class JumpingEnv(gym.Env[NDArray[np.float32], np.int64]):
    """The jumping task: an agent that walks to the right must jump over an obstacle, seen as pixels.

    Actions are 0 = right and 1 = jump, ignored in the air. Observations are single frames, float32 [60, 60], or
    [60, 60, 3] with a red or green obstacle. `step` reports two booleans:

    - `info["collision"]`: the agent struck the obstacle in this step.
    - `info["success"]`: the agent has reached the right edge, without a collision or, if the obstacle is green, after
      striking it on the floor. An episode succeeds exactly if its return is optimal.

    Tables of results count a task as *solved* if the agent's actions are optimal in all states on the floor up to the
    optimal jump, or up to a green obstacle. A solved task is a success. The reverse fails only for an agent that jumps
    too early, lands before the obstacle and then acts optimally: with obstacles at 46 and 47, which are not among the
    286 tasks, and with green obstacles from 36 on.

    Args:
        obstacle_position: left edge of the obstacle, 14..47.
        floor_height: height of the floor above the screen's lower edge, 0..40.
        color: color of the obstacle; white and red ones must be jumped over, green ones struck.
        render_mode: "rgb_array", "human" (a window; needs the extra `render`) or None.
    """

    metadata = {"render_modes": ["rgb_array", "human"], "render_fps": 15}  # noqa: RUF012 (Gymnasium's convention)

    def __init__(
        self,
        obstacle_position: int = 30,
        floor_height: int = 10,
        color: Color = "white",
        render_mode: Literal["rgb_array", "human"] | None = None,
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise unknown_name("render_mode", render_mode, self.metadata["render_modes"])
        self.task = JumpingTask(obstacle_position, floor_height, color)
        self.render_mode = render_mode
        shape = (SCREEN, SCREEN) if color == "white" else (SCREEN, SCREEN, 3)
        self.observation_space = gym.spaces.Box(0.0, 1.0, shape, np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self._state = JumpingState()
        self._window: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Starts an episode; `options` may name another `obstacle_position` or `floor_height`."""
        super().reset(seed=seed)
        settings = {"obstacle_position": self.task.obstacle_position, "floor_height": self.task.floor_height}
        for name, value in (options or {}).items():
            if name not in settings:
                raise unknown_name("option", name, settings)
            settings[name] = value
        self.task = JumpingTask(**settings, color=self.task.color)
        self._state = JumpingState()
        return self._observe(), {}

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.float32], SupportsFloat, bool, bool, dict[str, Any]]:
        """Moves one pixel to the right, and up or down during a jump."""
        if np.ndim(action) or action not in (RIGHT, JUMP):
            raise UserError(f"expected action 0 (right) or 1 (jump), got {action!r}")
        self._state, reward, collided, terminated = transition(self.task, self._state, int(action))
        if self.render_mode == "human":
            self.render()
        info = {"collision": collided, "success": is_success(self.task, self._state)}
        return self._observe(), reward, terminated, False, info

    def _observe(self) -> NDArray[np.float32]:
        x, height = self._state[:2]
        return decode_frames(render_frames(self.task, np.array([x]), np.array([height]))[0])

    def render(self) -> NDArray[np.uint8] | None:
        """Returns the screen as RGB (`rgb_array`), or shows it in a window (`human`, needs the extra `render`)."""
        observation = self._observe()
        if self.task.color == "white":
            observation = np.repeat(observation[..., None], 3, axis=-1)
        frame = np.asarray(255 * observation, dtype=np.uint8)
        if self.render_mode != "human":
            return frame
        self._show(frame)
        return None

    def _show(self, frame: NDArray[np.uint8]) -> None:
        pygame = import_extra("pygame", "render")
        if self._window is None:
            pygame.display.init()
            self._window = pygame.display.set_mode((8 * SCREEN, 8 * SCREEN))
        surface = pygame.surfarray.make_surface(frame.swapaxes(0, 1))
        self._window.blit(pygame.transform.scale(surface, self._window.get_size()), (0, 0))
        pygame.event.pump()
        pygame.display.flip()
        pygame.time.Clock().tick(self.metadata["render_fps"])

    def close(self) -> None:
        """Closes the window, if there is one."""
        if self._window is not None:
            import_extra("pygame", "render").display.quit()
            self._window = None
