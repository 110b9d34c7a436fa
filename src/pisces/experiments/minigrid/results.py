"""Checks of stored results of MiniGrid runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pisces.envs.minigrid.families import FAMILIES
from pisces.reports.results import is_number

SHARES = ("test_matched_share", "test_rank_correlation", "test_neighbor_agreement")
LARGEST = 2**31
"""Levels and themes have smaller numbers."""


def problem(result: Mapping[str, Any], family: str) -> str | None:
    """Says why a stored result cannot be shown, None if it can."""
    for name in SHARES:
        if name in result and not is_number(result[name]):
            return f"{name} is not a finite number"
    episodes = result.get("episodes")
    if episodes is not None and not _are_episodes(episodes, str(len(FAMILIES[family].actions) - 1)):
        return "its episodes are not tasks, actions and whether they were solved"
    return None


def _are_episodes(episodes: Any, last_action: str) -> bool:
    if not isinstance(episodes, dict):
        return False
    tasks, actions, solved = (episodes.get(name) for name in ("tasks", "actions", "solved"))
    if not (isinstance(tasks, list) and isinstance(actions, list) and isinstance(solved, str)):
        return False
    return (
        len(tasks) == len(actions) == len(solved)
        and set(solved) <= {"0", "1"}
        and all(isinstance(one, str) and all("0" <= action <= last_action for action in one) for one in actions)
        and all(isinstance(task, list) and len(task) == 2 and all(map(_is_place, task)) for task in tasks)
    )


def _is_place(number: Any) -> bool:
    return type(number) is int and 0 <= number < LARGEST
