"""Further tables of MiniGrid: trials on validation tasks, PPO, many levels, and the callback's overhead."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from minigrid_study import MANY_LEVELS, part_configs
from pisces.experiments.minigrid.tables import (
    MEASURE,
    Counted,
    base_method,
    by_cell,
    gains_table,
    has_usual_settings,
    paired_gains,
)
from pisces.reports.results import StoredRun
from pisces.reports.tables import Cell, Table, paired_difference

TRIALS, OTHER = Path("benchmarks/minigrid_trials.json"), Path("benchmarks/minigrid_other_rule.json")
OVERHEAD = Path("benchmarks/sb3_overhead.json")
HEADLINE = ("bc", "bc+colors", "bc+pse-states", "bc+colors+pse-states")
NOISE = 0.05
"""Overhead below which a short run on a busy machine measures nothing."""


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
    """Unseen tasks that PPO solves without and with the callback, by the episodes that the callback compares."""
    pairs = {"ppo+pse": "the agent's own", "ppo+pse-expert": "an expert's"}
    rows = [(words, *row) for method, words in pairs.items() for row in _comparison(runs, method)]
    header = ("compared episodes", "levels, shift", "PPO (%)", "with the callback (%)", "difference (points)")
    return Table("ppo", "", "", header, tuple(rows)).body() if rows else "PPO has not been run.\n"


def headline_table(runs: Sequence[StoredRun]) -> str:
    """What mixed colors and PSEs between all states gain at default settings, where only the appearance changes."""

    def counted(run: StoredRun) -> bool:
        return run.config.method in HEADLINE and run.config.shift == "appearance" and has_usual_settings(run)

    table = gains_table(runs, counted)
    return table.body() if table.rows else "Not run yet.\n"


def levels_table(runs: Sequence[StoredRun]) -> str:
    """Unseen layouts that cloning solves without and with PSEs after training on many levels."""
    wanted = set(part_configs(MANY_LEVELS))
    rows = _comparison(runs, "bc+pse", lambda run: run.config in wanted)
    header = ("levels, shift", "`bc` (%)", "`bc+pse` (%)", "difference (points)")
    return Table("levels", "", "", header, tuple(rows)).body() if rows else "No run has many levels.\n"


def _comparison(
    runs: Sequence[StoredRun], method: str, counted: Counted = has_usual_settings
) -> list[tuple[str | Cell, ...]]:
    """What the method without its last part and the method solve, and the difference; a row per column with both."""
    found, columns = by_cell(runs, counted)
    base = base_method(method)
    rows: list[tuple[str | Cell, ...]] = []
    for column in columns:
        own = [found.get((name, column), {}) for name in (base, method)]
        if all(own):
            solved = [Cell(tuple(float(run[MEASURE]) for run in part.values()), compared=False) for part in own]
            gain = paired_difference(paired_gains(found, method, base, column), (-100.0, 100.0))
            rows.append((column, *solved, gain))
    return rows


def overhead_table(root: Path) -> str:
    """The callback's share of the training time."""
    lines = ["| agent | steps | updates | overhead | an update takes as long as |", "|---|---:|---:|---:|---:|"]
    for row in json.loads((root / OVERHEAD).read_text()):
        share, steps = f"{row['overhead']:+.0%}", f"{row['update_in_agent_steps']:.0f} steps"
        if row["overhead"] < NOISE:
            share, steps = f"below {NOISE:.0%}", "–"
        lines.append(f"| {row['agent']} | {row['steps']} | {row['updates']} | {share} | {steps} |")
    return "\n".join(lines) + "\n"
