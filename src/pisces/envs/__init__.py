"""Gymnasium environments; importing this package registers their ids."""

import gymnasium as gym

from pisces.envs.distracting.tasks import TASKS, environment_id
from pisces.envs.jumping import JumpingEnv, JumpingTask, TaskSplit, all_tasks, split_tasks
from pisces.envs.minigrid.families import FAMILIES

gym.register("pisces/Jumping-v0", entry_point="pisces.envs.jumping.env:JumpingEnv")
gym.register("pisces/DistractorLQR-v0", entry_point="pisces.envs.lqr:DistractorLQREnv")
for _family in FAMILIES:
    gym.register(
        f"pisces/MiniGrid{_family.capitalize()}-v0",
        entry_point="pisces.envs.minigrid.env:LevelEnv",
        kwargs={"family": _family},
    )
for _task in TASKS:
    # The entry point is imported by `gym.make`, so MuJoCo is loaded only if such a task is used.
    gym.register(
        environment_id(_task), entry_point="pisces.envs.distracting.env:DistractingEnv", kwargs={"task": _task}
    )

__all__ = ["JumpingEnv", "JumpingTask", "TaskSplit", "all_tasks", "split_tasks"]
