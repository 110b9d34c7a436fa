"""Gymnasium environments; importing this package registers their ids."""

import gymnasium as gym

from pisces.envs.distracting_tasks import TASKS, environment_id
from pisces.envs.grids import TaskSplit, all_tasks, split_tasks
from pisces.envs.jumping import JumpingEnv, JumpingTask

gym.register("pisces/Jumping-v0", entry_point="pisces.envs.jumping:JumpingEnv")
gym.register("pisces/Crossing-v0", entry_point="pisces.envs.crossing:CrossingEnv")
gym.register("pisces/DistractorLQR-v0", entry_point="pisces.envs.lqr:DistractorLQREnv")
for _task in TASKS:
    # The entry point is imported by `gym.make`, so MuJoCo is loaded only if such a task is used.
    gym.register(environment_id(_task), entry_point="pisces.envs.distracting:DistractingEnv", kwargs={"task": _task})

__all__ = ["JumpingEnv", "JumpingTask", "TaskSplit", "all_tasks", "split_tasks"]
