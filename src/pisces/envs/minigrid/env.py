"""Levels of MiniGrid as Gymnasium environments."""

from __future__ import annotations

import copy
from typing import Any, Literal, get_args

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from pisces.envs.minigrid.dynamics import Dynamics, State
from pisces.envs.minigrid.experts import optimal_action, steps_to_goal
from pisces.envs.minigrid.levels import make_level
from pisces.envs.minigrid.render import Renderer
from pisces.envs.minigrid.themes import PLAIN, make_theme
from pisces.envs.minigrid.views import SIZE, egocentric_view
from pisces.errors import UserError, unknown_name

Observation = Literal["rgb", "egocentric", "state"]
"""What an environment shows."""
MAX_STEPS = 100
"""Steps after which an episode is truncated."""


class LevelEnv(gym.Env[NDArray[Any], np.int64]):
    """One level of MiniGrid, always the same: `reset` puts the agent back to the level's start.

    The rules are those of the package `minigrid` with two differences: the goal gives a reward of 1 at any time, so
    that the agent's place, direction, key and doors are the whole state, and there are no actions to drop objects and
    to do nothing. `info["solved"]` says whether the goal was reached.

    Args:
        family: "crossing", "lava", "rooms", "doorkey" or "multiroom".
        level: number of the level, 0 to 349; see `VALIDATION_LEVELS`, `TEST_LEVELS` and `TRAINING_LEVELS`.
        theme: number of the theme of RGB frames; 0 has MiniGrid's colors on a black floor.
        observation: "rgb" for the whole level as a frame uint8 [H, W, 3], "egocentric" for the agent's view in
            MiniGrid's encoding, uint8 [7, 7, 3], or "state" for column, row, direction, key and doors, int64.
        max_steps: steps after which an episode is truncated.
        render_mode: None or "rgb_array".
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 (Gymnasium's convention)

    def __init__(
        self,
        family: str = "crossing",
        level: int = 0,
        theme: int = PLAIN,
        observation: Observation = "rgb",
        max_steps: int = MAX_STEPS,
        render_mode: str | None = None,
    ) -> None:
        if observation not in get_args(Observation):
            raise unknown_name("observation", observation, get_args(Observation))
        if render_mode not in (None, "rgb_array"):
            raise UserError(f"render_mode must be None or 'rgb_array', got {render_mode!r}")
        if max_steps < 1:
            raise UserError(f"max_steps must be at least 1, got {max_steps}")
        self.level = make_level(family, level)
        self.dynamics = Dynamics(self.level)
        self.observation, self.max_steps, self.render_mode = observation, max_steps, render_mode
        self.renderer = Renderer(self.dynamics, make_theme(theme))
        self.action_space = gym.spaces.Discrete(len(self.level.family.actions))
        self.observation_space = self._space()
        self.state, self.time = self.dynamics.start, 0
        self._seen: dict[State, NDArray[Any]] = {}
        self._steps: dict[State, int] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> LevelEnv:
        # States are tuples and everything else never changes, so that a search over states can copy cheaply.
        return copy.copy(self)

    def _space(self) -> gym.spaces.Box:
        if self.observation == "rgb":
            return gym.spaces.Box(0, 255, self.renderer.shape, np.uint8)
        if self.observation == "egocentric":
            return gym.spaces.Box(0, 255, (SIZE, SIZE, 3), np.uint8)
        highest = [*self.level.grid.shape[:2], 3, 1, *(2 for _ in self.dynamics.doors)]
        return gym.spaces.Box(np.zeros(len(highest), np.int64), np.array(highest), dtype=np.int64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Puts the agent back to the start; the seed changes nothing, and there are no options."""
        if options:
            raise UserError(f"expected no options, got {', '.join(map(str, options))}")
        super().reset(seed=seed)
        self.state, self.time = self.dynamics.start, 0
        return self.observe(self.state), {"solved": False}

    def step(self, action: np.int64 | int) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        """Takes an action: 0 turns left, 1 turns right, 2 goes forward; pickup and toggle follow if there are any."""
        count = len(self.level.family.actions)
        if np.ndim(action) or action not in range(count):
            raise UserError(f"action must be an integer in 0..{count - 1}, got {action!r}")
        outcome = self.dynamics.step(self.state, int(action))
        self.state, self.time = outcome.state, self.time + 1
        truncated = self.time >= self.max_steps and not outcome.terminated
        solved = {"solved": outcome.reward > 0}
        return self.observe(self.state), outcome.reward, outcome.terminated, truncated, solved

    def optimal_action(self) -> int:
        """Returns the first action that is on a shortest way to the goal from the current state."""
        if not self._steps:
            self._steps.update(steps_to_goal(self.dynamics))
        return optimal_action(self.dynamics, self._steps, self.state)

    def observe(self, state: State) -> NDArray[Any]:
        """Returns the observation of a state."""
        if state not in self._seen:
            self._seen[state] = self._observation(state)
        return self._seen[state].copy()

    def _observation(self, state: State) -> NDArray[Any]:
        if self.observation == "rgb":
            return self.renderer.frame(state)
        if self.observation == "egocentric":
            return egocentric_view(self.dynamics, state)
        return np.array(state)

    def render(self) -> NDArray[np.uint8] | None:
        """Returns the RGB frame of the current state; None without a render mode."""
        return None if self.render_mode is None else self.renderer.frame(self.state)
