"""Numbered levels of MiniGrid: fast, deterministic, with views as symbols and as RGB frames in many themes."""

from pisces.envs.minigrid.env import LevelEnv
from pisces.envs.minigrid.families import FAMILIES, Family
from pisces.envs.minigrid.levels import TEST_LEVELS, TRAINING_LEVELS, VALIDATION_LEVELS, Level, make_level
from pisces.envs.minigrid.themes import PLAIN, Theme, make_theme

__all__ = [
    "FAMILIES",
    "PLAIN",
    "TEST_LEVELS",
    "TRAINING_LEVELS",
    "VALIDATION_LEVELS",
    "Family",
    "Level",
    "LevelEnv",
    "Theme",
    "make_level",
    "make_theme",
]
