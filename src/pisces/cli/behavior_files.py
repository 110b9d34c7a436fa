"""Two agents' episodes as files: reading, comparing, and writing a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pisces.cli.metric_files import make_output_folder, trajectory_cost
from pisces.errors import UserError
from pisces.files import printable
from pisces.metrics import BehaviorComparison, compare_behavior
from pisces.metrics.sequence import Last
from pisces.reports.behavior_page import Agent, behavior_page, states_table
from pisces.trajectories import Trajectory


def agent_files(paths: Sequence[Path]) -> tuple[list[Path], list[Path]] | None:
    """Returns the episode files of two agents, or None for two single files.

    Args:
        paths: two folders of npz files, or the files of two folders.
    """
    if len(paths) == 2 and not any(path.is_dir() for path in paths):
        return None
    folders: dict[Path, list[Path]] = {}
    for path in paths:
        if path.is_dir():
            folders[path] = sorted(path.glob("*.npz"))
        else:
            folders.setdefault(path.parent, []).append(path)
    if len(folders) != 2:
        got = "one file" if len(paths) == 1 and not paths[0].is_dir() else f"{len(folders)} different folders"
        raise UserError(f"expected two files, two folders, or the files of two folders, got {got}")
    empty = [str(folder) for folder, files in folders.items() if not files]
    if empty:
        raise UserError(f"expected trajectories (npz) in {empty[0]!r}, got none")
    first, second = folders.values()
    return first, second


def compare_agents(
    files: tuple[list[Path], list[Path]], discount: float, cost: str, last: Last | None, threshold: float
) -> BehaviorComparison:
    """Compares the episodes of two agents; see `compare_behavior`."""
    episodes = [[Trajectory.load(path) for path in part] for part in files]
    return compare_behavior(
        *episodes, discount=discount, cost=trajectory_cost(cost), last=last or "stop", threshold=threshold
    )


def write_comparison(found: BehaviorComparison, files: tuple[list[Path], list[Path]], out: Path) -> list[Path]:
    """Writes the page and the table of states."""
    make_output_folder(out)
    names = [part[0].parent.name or "." for part in files]
    if names[0] == names[1]:
        names = [str(part[0].parent) for part in files]
    sides = zip(names, files, (found.states_a, found.states_b), strict=True)
    first, second = (
        Agent(printable(name), [printable(path.stem) for path in part], states) for name, part, states in sides
    )
    paths = [out / "behavior.html", out / "states.csv"]
    paths[0].write_text(behavior_page(found, (first, second)), encoding="utf-8")
    paths[1].write_text(states_table((first, second)), encoding="utf-8")
    return paths
