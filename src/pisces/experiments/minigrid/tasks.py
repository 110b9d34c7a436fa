"""Which levels and themes a run trains on and is evaluated on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pisces.envs.minigrid.dynamics import Dynamics
from pisces.envs.minigrid.levels import TEST_LEVELS, TRAINING_LEVELS, VALIDATION_LEVELS, make_level
from pisces.envs.minigrid.render import Renderer
from pisces.envs.minigrid.themes import PLAIN, make_theme
from pisces.experiments.minigrid.config import MiniGridConfig

VALIDATION_THEMES = range(1, 51)
"""Themes that settings are chosen on."""
TEST_THEMES = range(51, 151)
"""Themes that results are reported on."""
TRAINING_THEMES = range(1000, 2000)
"""Themes that training themes are drawn from."""
THEMES_PER_LEVEL = 8
"""Unseen themes in which each training level is evaluated if only the appearance changes."""
TASK_SEED = 23
"""Seed of the training levels and themes, used together with the run's."""


@dataclass(frozen=True)
class Task:
    """A level in a theme."""

    level: int
    """Number of the level."""
    theme: int
    """Number of the theme."""


def training_tasks(config: MiniGridConfig) -> list[Task]:
    """Returns the tasks that a run trains on, level by level: each level in its own themes."""
    rng = np.random.default_rng([TASK_SEED, config.seed])
    levels = rng.choice(TRAINING_LEVELS, size=config.training_levels, replace=False).tolist()
    if config.shift == "layout":
        return [Task(level, PLAIN) for level in levels]
    themes = rng.choice(TRAINING_THEMES, size=(len(levels), config.training_themes), replace=False)
    return [Task(level, theme) for level, own in zip(levels, themes.tolist(), strict=True) for theme in own]


def unseen_tasks(config: MiniGridConfig, test: bool) -> list[Task]:
    """Returns the tasks that a run is evaluated on: validation tasks, or test tasks.

    With a shift of the layout these are unseen levels in the training theme, with one of the appearance the training
    levels in unseen themes, and with both unseen levels, each in an unseen theme.
    """
    levels: Sequence[int] = TEST_LEVELS if test else VALIDATION_LEVELS
    themes: Sequence[int] = TEST_THEMES if test else VALIDATION_THEMES
    if config.shift == "layout":
        return [Task(level, PLAIN) for level in levels]
    if config.shift == "both":
        return [Task(level, theme) for level, theme in zip(levels, themes, strict=True)]
    own = list(dict.fromkeys(task.level for task in training_tasks(config)))
    turn = len(themes) // THEMES_PER_LEVEL
    picked = [(level, k) for place, level in enumerate(own) for k in range(place % turn, len(themes), turn)]
    return [Task(level, themes[k]) for level, k in picked]


def make_renderer(family: str, task: Task) -> Renderer:
    """Returns what draws a task's states."""
    return Renderer(Dynamics(make_level(family, task.level)), make_theme(task.theme))
