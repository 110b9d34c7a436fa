"""The jumping task from pixels: environment, tasks, dynamics, frames."""

from pisces.envs.jumping.dynamics import JumpingState, optimal_heights, optimal_rewards, play, transition
from pisces.envs.jumping.env import JumpingEnv
from pisces.envs.jumping.grids import Grid, TaskSplit, all_tasks, split_tasks
from pisces.envs.jumping.render import decode_frames, optimal_frames, render_frames, stack_frames
from pisces.envs.jumping.tasks import Color, JumpingTask, optimal_actions

__all__ = [
    "Color",
    "Grid",
    "JumpingEnv",
    "JumpingState",
    "JumpingTask",
    "TaskSplit",
    "all_tasks",
    "decode_frames",
    "optimal_actions",
    "optimal_frames",
    "optimal_heights",
    "optimal_rewards",
    "play",
    "render_frames",
    "split_tasks",
    "stack_frames",
    "transition",
]
