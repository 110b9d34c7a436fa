"""A family of tiny environments: action 0 until the level's turn, action 1 from there on; eight steps."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

STEPS = 8
SIDE = 36


class ToyEnv(gym.Env):
    """Observations tell the steps left until the turn, behind a pattern of the level that means nothing."""

    def __init__(self, level: int, kind: str = "vector", continuous: bool = False) -> None:
        self.turn, self.kind, self.continuous = 2 + level % 4, kind, continuous
        rng = np.random.default_rng(level)
        self.pattern = rng.normal(size=4).astype(np.float32)
        self.texture = rng.integers(0, 100, (SIDE, SIDE, 3)).astype(np.uint8)
        if kind == "image":
            self.observation_space = gym.spaces.Box(0, 255, (SIDE, SIDE, 3), np.uint8)
        else:
            self.observation_space = gym.spaces.Box(-10, 10, (5,), np.float32)
        self.action_space = gym.spaces.Box(-1, 1, (1,), np.float32) if continuous else gym.spaces.Discrete(2)
        self.time = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.observe(), {}

    def step(self, action):
        chosen = float(np.asarray(action).ravel()[0]) > 0 if self.continuous else bool(action)
        reward = float(chosen == (self.time >= self.turn))
        self.time += 1
        return self.observe(), reward, self.time == STEPS, False, {}

    def observe(self):
        if self.kind == "image":
            picture = self.texture.copy()
            picture[:, 4 * (self.turn - self.time + STEPS) % SIDE] = 255
            return picture
        return np.concatenate([[(self.turn - self.time) / 4], self.pattern]).astype(np.float32)


def expert(env: ToyEnv):
    """The right action, which the environment's own clock tells."""

    def act(observation):
        right = env.time >= env.turn
        return np.array([1.0 if right else -1.0], np.float32) if env.continuous else int(right)

    return act
