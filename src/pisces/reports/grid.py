"""The table of the grid benchmark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pisces.experiments.grid_transfer import METHODS
from pisces.reports.results import GRID_NUMBERS
from pisces.reports.statistics import mean_interval
from pisces.reports.tables import markdown, summary

COLUMNS = dict(
    zip(GRID_NUMBERS, (f"{name} levels solved (%)" for name in ("training", "validation", "unseen")), strict=True)
)


def grid_table(results: Iterable[Mapping[str, Any]]) -> str:
    """Levels solved by each method, and the gain of `ppo+pse` over `ppo` seed by seed."""
    runs = _runs(results)
    rows = [
        [f"`{method}`", *(summary([run[column] for run in found.values()]) for column in COLUMNS)]
        for method, found in runs.items()
        if found
    ]
    seeds = sorted(runs["ppo"].keys() & runs["ppo+pse"].keys())
    if len(seeds) > 1:
        cells = []
        for column in COLUMNS:
            gains = [runs["ppo+pse"][seed][column] - runs["ppo"][seed][column] for seed in seeds]
            interval = mean_interval(gains)
            ends = "" if interval is None else f" [{interval.low:+.1f}, {interval.high:+.1f}]"
            better = sum(gain > 0 for gain in gains)
            cells.append(f"{sum(gains) / len(gains):+.1f}{ends}, better in {better} of {len(gains)}")
        rows.append(["gain, same seeds", *cells])
    return markdown(["method", *COLUMNS.values()], rows)


def grid_source(config: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """What a run counts for in the table: its method; None if anything was changed."""
    return None if config.get("study") or config.get("preset") != "standard" else (config["method"],)


def _runs(results: Iterable[Mapping[str, Any]]) -> dict[str, dict[int, Mapping[str, Any]]]:
    """The methods' own runs (standard preset, nothing changed) by method and seed."""
    runs: dict[str, dict[int, Mapping[str, Any]]] = {method: {} for method in METHODS}
    for result in results:
        config = result["config"]
        if "test_levels_percent" in result and grid_source(config) is not None:
            runs.setdefault(config["method"], {})[config["seed"]] = result
    return {method: dict(sorted(found.items())) for method, found in runs.items()}
