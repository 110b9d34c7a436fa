"""The jumping task: an agent must jump over an obstacle, seen as pixels (Sec. 5 and App. F, arXiv:2101.05265).

Lengths are pixels, heights are measured from the floor, and the screen is 60 x 60 with row 0 at its top.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, SupportsFloat, get_args

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from pisces.errors import UserError, unknown_name

Color = Literal["white", "red", "green"]

SCREEN = 60
AGENT_WIDTH, AGENT_HEIGHT = 5, 10
OBSTACLE_WIDTH, OBSTACLE_HEIGHT = 9, 10
JUMP_HEIGHT = 15
JUMP_DISTANCE = 14
"""The optimal agent jumps when the obstacle's left edge is this far ahead of its own."""
DECISIONS = SCREEN - AGENT_WIDTH + 1
"""Decisions in a successful episode."""
OBSTACLE_POSITIONS = range(JUMP_DISTANCE, 48)
FLOOR_HEIGHTS = range(41)
RIGHT, JUMP = 0, 1
CHANNEL_OF_COLOR = {"red": 0, "green": 1}
HALVES = np.float32(0.5)
"""Frames are drawn as whole halves (0, 1, 2), which stand for the grey values 0, 0.5 and 1."""


@dataclass(frozen=True, order=True)
class JumpingTask:
    """One task of the family: where the obstacle stands, how high the floor is, and what the obstacle means."""

    obstacle_position: int
    """Left edge of the obstacle, 14..47."""
    floor_height: int
    """Height of the floor above the screen's lower edge, 0..40."""
    color: Color = "white"
    """White and red obstacles must be jumped over; green ones must be struck."""

    def __post_init__(self) -> None:
        if self.color not in get_args(Color):
            raise unknown_name("color", self.color, get_args(Color))
        _check_range("obstacle_position", self.obstacle_position, OBSTACLE_POSITIONS)
        _check_range("floor_height", self.floor_height, FLOOR_HEIGHTS)

    @property
    def jump_step(self) -> int:
        """The step at which the optimal agent jumps; for green obstacles a step that never comes."""
        return DECISIONS if self.color == "green" else self.obstacle_position - JUMP_DISTANCE

    @property
    def steps_to_obstacle(self) -> int:
        """How many states an agent that never jumps sees before it strikes the obstacle."""
        return self.obstacle_position - AGENT_WIDTH + 1


def optimal_actions(task: JumpingTask) -> NDArray[np.int64]:
    """Returns the actions of the optimal episode, [56]: jump once (never, if green), else right."""
    return np.asarray(np.arange(DECISIONS) == task.jump_step, dtype=np.int64)


def optimal_heights(task: JumpingTask) -> NDArray[np.int64]:
    """Returns the agent's height above the floor at each step of the optimal episode, [56]; its x equals the step."""
    since_jump = np.maximum(np.arange(DECISIONS) - task.jump_step, 0)
    heights = np.minimum(since_jump, 2 * (JUMP_HEIGHT + 1) - since_jump)
    return np.asarray(np.maximum(heights, 0), dtype=np.int64)


def optimal_rewards(task: JumpingTask) -> NDArray[np.float64]:
    """Returns the rewards of the optimal episode, [56]: +1 per pixel, +100 at the end, and 99 for striking green."""
    rewards = np.ones(DECISIONS)
    if task.color == "green":
        rewards[task.steps_to_obstacle - 1] = 99.0
    rewards[-1] += 100.0
    return rewards


def render_halves(task: JumpingTask, x: NDArray[np.int64], height: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Draws many frames of one task at once, as halves.

    Args:
        task: the task.
        x: left edges of the agent, [n].
        height: heights of the agent above the floor, [n].

    Returns:
        Frames [n, 60, 60] with values 0, 1, 2, or [n, 60, 60, 3] if the obstacle has a color.
    """
    columns, rows = np.arange(SCREEN), SCREEN - 1 - np.arange(SCREEN)
    bottom = height + task.floor_height
    in_columns = (columns >= x[:, None]) & (columns < x[:, None] + AGENT_WIDTH)
    in_rows = (rows >= bottom[:, None]) & (rows < bottom[:, None] + AGENT_HEIGHT)
    frames = 2 * (in_rows[:, :, None] & in_columns[:, None, :]).astype(np.uint8)
    if task.color != "white":
        frames = np.repeat(frames[..., None], 3, axis=-1)
    left, top = task.obstacle_position, SCREEN - task.floor_height - OBSTACLE_HEIGHT
    obstacle = frames[:, top : top + OBSTACLE_HEIGHT, left : left + OBSTACLE_WIDTH]
    if task.color == "white":
        obstacle[:] = 1
    else:
        obstacle[:] = np.eye(3, dtype=np.uint8)[CHANNEL_OF_COLOR[task.color]]
    frames[:, [0, -1]] = 2
    frames[:, :, [0, -1]] = 2
    frames[:, SCREEN - 1 - task.floor_height] = 2
    return frames


def optimal_halves(task: JumpingTask) -> NDArray[np.uint8]:
    """Draws the 56 states of the optimal episode, as halves."""
    return render_halves(task, np.arange(DECISIONS), optimal_heights(task))


def stack_frames(frames: NDArray[Any]) -> NDArray[Any]:
    """Pairs each frame of an episode with the one before it: what the agent sees.

    Args:
        frames: consecutive frames from the first one on, [n, 60, 60] or [n, 60, 60, 3].

    Returns:
        Observations [n, 60, 60, 2] or [n, 60, 60, 6], previous frame first; the frame before the first is all zeros.
    """
    current = frames[..., None] if frames.ndim == 3 else frames
    previous = np.concatenate([np.zeros_like(current[:1]), current[:-1]])
    return np.concatenate([previous, current], axis=-1)


class JumpingEnv(gym.Env[NDArray[np.float32], np.int64]):
    """The jumping task as a Gymnasium environment; actions are 0 = right and 1 = jump, ignored in the air."""

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
        self._window: Any = None
        self._start()

    def _start(self) -> None:
        self._x, self._height, self._vertical_speed = 0, 0, 0
        self._struck = False

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
        self._start()
        return self._observe(), {}

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.float32], SupportsFloat, bool, bool, dict[str, Any]]:
        """Moves one pixel to the right, and up or down during a jump."""
        if np.ndim(action) or action not in (RIGHT, JUMP):
            raise UserError(f"expected action 0 (right) or 1 (jump), got {action!r}")
        self._move(int(action))
        collided = self._overlaps()
        exited = self._x + AGENT_WIDTH > SCREEN
        reward = 1.0 + 100.0 * exited
        if collided:
            reward = -1.0
            if self.task.color == "green" and self._height == 0:
                reward += 100.0
        self._struck = self._struck or collided
        terminated = exited or (collided and self.task.color != "green")
        if self.render_mode == "human":
            self.render()
        return self._observe(), reward, terminated, False, {"collision": collided, "success": self._succeeded(exited)}

    def _move(self, action: int) -> None:
        if self._height == 0 and action == JUMP:
            self._vertical_speed = 1
        if self._height > JUMP_HEIGHT:
            self._vertical_speed = -1
        self._x += 1
        self._height += self._vertical_speed
        if self._height == 0:
            self._vertical_speed = 0

    def _overlaps(self) -> bool:
        if self.task.color == "green" and self._struck:
            return False
        left = self.task.obstacle_position
        return left - AGENT_WIDTH < self._x < left + OBSTACLE_WIDTH and self._height < OBSTACLE_HEIGHT

    def _succeeded(self, exited: bool) -> bool:
        return exited and (self._struck if self.task.color == "green" else True)

    def _observe(self) -> NDArray[np.float32]:
        halves = render_halves(self.task, np.array([self._x]), np.array([self._height]))[0]
        return np.asarray(halves * HALVES, dtype=np.float32)

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
        try:
            import pygame
        except ImportError as error:
            raise UserError("render_mode='human' needs pygame: pip install 'pisces-rl[render]'") from error
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
            import pygame

            pygame.display.quit()
            self._window = None


def _check_range(name: str, value: int, allowed: range) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value not in allowed:
        raise UserError(f"expected {name} to be a whole number in {allowed[0]}..{allowed[-1]}, got {value!r}")
