"""Gymnasium environments; importing this package registers their ids."""

import gymnasium as gym

from pisces.envs.grids import TaskSplit, all_tasks, split_tasks
from pisces.envs.jumping import JumpingEnv, JumpingTask

gym.register("pisces/Jumping-v0", entry_point="pisces.envs.jumping:JumpingEnv")
gym.register("pisces/DistractorLQR-v0", entry_point="pisces.envs.lqr:DistractorLQREnv")

__all__ = ["JumpingEnv", "JumpingTask", "TaskSplit", "all_tasks", "split_tasks"]
