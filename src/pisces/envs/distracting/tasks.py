"""Names of the control tasks and of the variants of distraction; light to import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pisces.errors import UserError, unknown_name

# Action repeats of the paper's six tasks (App. H, arXiv:2101.05265).
PAPER_TASKS: Mapping[str, int] = {
    "ball_in_cup-catch": 4,
    "cartpole-swingup": 8,
    "cheetah-run": 4,
    "finger-spin": 2,
    "reacher-easy": 4,
    "walker-walk": 2,
}
OTHER_ACTION_REPEAT = 2
# The tasks of dm_control's suite, domain by domain, without lqr: its actions have no bounds and its episodes no end.
_SUITE = {
    "acrobot": "swingup swingup_sparse",
    "ball_in_cup": "catch",
    "cartpole": "balance balance_sparse swingup swingup_sparse three_poles two_poles",
    "cheetah": "run",
    "dog": "fetch run stand trot walk",
    "finger": "spin turn_easy turn_hard",
    "fish": "swim upright",
    "hopper": "hop stand",
    "humanoid": "run run_pure_state stand walk",
    "humanoid_CMU": "run stand walk",
    "manipulator": "bring_ball bring_peg insert_ball insert_peg",
    "pendulum": "swingup",
    "point_mass": "easy hard",
    "quadruped": "escape fetch run walk",
    "reacher": "easy hard",
    "stacker": "stack_2 stack_4",
    "swimmer": "swimmer15 swimmer6",
    "walker": "run stand walk",
}
TASKS = tuple(f"{domain}-{task}" for domain, tasks in _SUITE.items() for task in tasks.split())


@dataclass(frozen=True)
class Variant:
    """Strengths of the distractions."""

    background: bool = True
    """Whether a video is shown on the skybox; without it the task looks as in dm_control."""
    grid_alpha: Mapping[str, float] | None = None
    """Opacity of the floor by domain; it is 0.3 for other domains."""
    train_videos: int | None = None
    """Number of training videos; the paper's 2 if None."""
    color: float = 0.0
    """Strength of the color changes."""
    camera: float = 0.0
    """Strength of the camera movement."""

    def floor_alpha(self, domain: str) -> float:
        """Returns the opacity of the floor in a domain."""
        return (self.grid_alpha or {}).get(domain, FLOOR_ALPHA)


FLOOR_ALPHA = 0.3
_SUITE_ALPHA = {"reacher": 0.0, "walker": 1.0, "cheetah": 1.0}
VARIANTS: Mapping[str, Variant] = {
    "plain": Variant(background=False),
    "paper": Variant(),
    "dcs-easy": Variant(True, _SUITE_ALPHA, 4, 0.1, 0.1),
    "dcs-medium": Variant(True, _SUITE_ALPHA, 8, 0.2, 0.2),
    "dcs-hard": Variant(True, _SUITE_ALPHA, 60, 0.3, 0.3),
}


def check_task(task: str) -> None:
    """Raises unless the task is one of dm_control's suite, written as domain-task."""
    if task not in TASKS:
        raise unknown_name("task", task, TASKS)


def find_variant(name: str) -> Variant:
    """Finds a variant by name."""
    if name not in VARIANTS:
        raise unknown_name("variant", name, VARIANTS)
    return VARIANTS[name]


def action_repeat(task: str) -> int:
    """Returns how often an action is repeated: the paper's number, or 2 for tasks that are not in the paper."""
    check_task(task)
    return PAPER_TASKS.get(task, OTHER_ACTION_REPEAT)


def environment_id(task: str) -> str:
    """Returns the Gymnasium id of a task, e.g. pisces/DistractingCartpoleSwingup-v0."""
    words = task.replace("-", "_").split("_")
    return f"pisces/Distracting{''.join(word[:1].upper() + word[1:] for word in words)}-v0"


def check_size(frame_size: int, frame_stack: int, repeat: int, supersampling: int) -> None:
    """Raises unless the sizes can be rendered and stacked."""
    whole = all(isinstance(value, int | np.integer) for value in (frame_size, frame_stack, repeat, supersampling))
    if not whole or not 16 <= frame_size <= 480 or frame_stack < 1 or repeat < 1 or not 1 <= supersampling <= 4:
        raise UserError(
            "expected a frame size in 16..480, a frame stack and action repeat of at least 1, supersampling in 1..4, "
            f"got {frame_size}, {frame_stack}, {repeat} and {supersampling}"
        )
