"""Tables of MiniGrid that are not of runs: trials on validation tasks, and the callback's overhead."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from pisces.reports.tables import Cell, Table, paired_difference

TRIALS, OTHER = Path("benchmarks/minigrid_trials.json"), Path("benchmarks/minigrid_other_rule.json")
OVERHEAD = Path("benchmarks/sb3_overhead.json")


def trials_table(root: Path) -> str:
    """All trials on validation tasks that the defaults were chosen by, in their order."""
    lines = ["| setting | seeds | training tasks solved (%) | validation tasks solved (%) |", "|---|---|---:|---:|"]
    for trial in json.loads((root / TRIALS).read_text()):
        seeds, runs = sorted(int(seed) for seed in trial["runs"]), list(trial["runs"].values())
        trained, solved = (np.array([run[name] for run in runs]) for name in ("train", "validation"))
        spread = f" ({solved.std(ddof=1):.1f})" if len(runs) > 1 else ""
        lines.append(
            f"| {trial['setting']} | {seeds[0]}-{seeds[-1]} | {trained.mean():.1f} | {solved.mean():.1f}{spread} |"
        )
    return "\n".join(lines) + "\n"


def other_rule_table(root: Path) -> str:
    """A test of another rule for pairs."""
    found = json.loads((root / OTHER).read_text())
    methods = ("bc", "bc+pse")
    values = {method: {int(seed): value for seed, value in found[method].items()} for method in methods}
    seeds = sorted(values["bc"].keys() & values["bc+pse"].keys())
    solved = [Cell(tuple(values[method][seed] for seed in seeds), compared=False) for method in methods]
    gain = paired_difference([values["bc+pse"][seed] - values["bc"][seed] for seed in seeds], (-100.0, 100.0))
    header = ("", "`bc`", "`bc+pse`, other rule", "difference")
    return Table("first", "", "", header, ((f"seeds {seeds[0]}-{seeds[-1]}", *solved, gain),)).body()


def overhead_table(root: Path) -> str:
    """The callback's share of the training time."""
    lines = ["| agent | steps | updates | overhead | an update takes as long as |", "|---|---:|---:|---:|---:|"]
    for row in json.loads((root / OVERHEAD).read_text()):
        lines.append(
            f"| {row['agent']} | {row['steps']} | {row['updates']} | {row['overhead']:+.0%} | "
            f"{row['update_in_agent_steps']:.0f} steps |"
        )
    return "\n".join(lines) + "\n"
