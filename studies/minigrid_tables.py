"""Further tables of MiniGrid: trials on validation tasks, PPO, and the callback's overhead."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pisces.experiments.minigrid.tables import MEASURE, by_cell, paired_gains
from pisces.reports.results import StoredRun
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


def ppo_table(runs: Sequence[StoredRun]) -> str:
    """Unseen tasks that PPO solves without and with the callback."""
    found, columns = by_cell(runs)
    rows = []
    for column in columns:
        own = [found.get((method, column), {}) for method in ("ppo", "ppo+pse")]
        if all(own):
            solved = [Cell(tuple(float(run[MEASURE]) for run in part.values()), compared=False) for part in own]
            gain = paired_difference(paired_gains(found, "ppo+pse", "ppo", column), (-100.0, 100.0))
            rows.append((column, *solved, gain))
    header = ("levels, shift", "PPO (%)", "with the callback (%)", "difference (points)")
    return Table("ppo", "", "", header, tuple(rows)).body() if rows else "PPO has not been run.\n"


def overhead_table(root: Path) -> str:
    """The callback's share of the training time."""
    lines = ["| agent | steps | updates | overhead | an update takes as long as |", "|---|---:|---:|---:|---:|"]
    for row in json.loads((root / OVERHEAD).read_text()):
        lines.append(
            f"| {row['agent']} | {row['steps']} | {row['updates']} | {row['overhead']:+.0%} | "
            f"{row['update_in_agent_steps']:.0f} steps |"
        )
    return "\n".join(lines) + "\n"
