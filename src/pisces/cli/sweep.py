"""`pisces sweep`: many runs of an experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pisces.cli.lists import parse_list, parse_names, parse_seeds
from pisces.cli.options import Option, given_options, given_settings, make_options, option, plain_options
from pisces.cli.terminal import console, note_compilation
from pisces.errors import UserError
from pisces.experiments.experiment import Experiment


@dataclass(frozen=True)
class SweepOptions:
    """Where and how the runs are done."""

    workers: int = 2
    """Number of worker processes; with Ray, of runs at a time."""
    engine: str = "local"
    """Engine: local, or ray for a cluster (needs the extra `ray`)."""
    address: str | None = None
    """Address of a Ray cluster; without it one is started on this machine."""
    device: str = "cpu"
    """Device to compute on: cpu or cuda."""
    list: bool = False
    """Print one command per run instead of running them, for job arrays."""
    out: Path = Path("runs")
    """Root of the run folders; runs that are finished there are not run again."""


def plural(name: str) -> str:
    """Returns the option's name for several values."""
    if name.endswith("s"):
        return name
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"


def sweep_options(experiment: Experiment[Any]) -> type:
    """Returns the options of ``pisces sweep EXPERIMENT``: axes take several values, separated by commas."""
    kind = experiment.config_class
    own: list[Option] = [
        option(kind, "methods", kind.methods[0], hint=str, text=f"Separated by commas: {', '.join(kind.methods)}."),
        option(kind, "preset", kind.presets[0], text=f"{', '.join(kind.presets)}."),
        option(kind, "seeds", "0-4", hint=str, text="Seeds, e.g. 0-99 or 0,3,5-7."),
    ]
    for entry in plain_options(experiment):
        single = option(kind, entry.name, entry.default)
        if entry.name in experiment.axes:
            text = f"Separated by commas. {single[1].__metadata__[-1].help}"
            single = option(kind, plural(entry.name), str(entry.default), hint=str, text=text)
        own.append(single)
    return make_options("sweep", experiment, own, SweepOptions)


def sweep(experiment: Experiment[Any], options: Any) -> None:
    """Trains all combinations of methods, axes and seeds."""
    axes = {name: parse_list(getattr(options, plural(name))) for name in experiment.axes}
    rest = [entry.name for entry in plain_options(experiment) if entry.name not in experiment.axes]
    configs = experiment.sweep_configs(
        parse_names(options.methods),
        parse_seeds(options.seeds),
        options.preset,
        axes,
        given_settings(options),
        **given_options(options, experiment, rest),
    )
    run_sweep(experiment, configs, options.common)


def run_sweep(experiment: Experiment[Any], configs: Sequence[Any], common: SweepOptions) -> None:
    """Does the runs with a live display, or prints their commands."""
    from pisces.cli.displays import SweepDisplay, sweep_summary
    from pisces.runs.job import Job, check_device
    from pisces.runs.sweep import sweep

    if not configs:
        raise UserError("no runs selected")
    if common.list:
        device = "" if common.device == "cpu" else f" --device {common.device}"
        for config in configs:
            print(f"{config.command(common.out)}{device}")
        return
    check_device(common.device, experiment)
    note_compilation()
    jobs = [Job(experiment, config, common.device) for config in configs]
    with SweepDisplay(jobs, experiment.describe, console) as display:
        state = sweep(
            jobs, common.out, common.workers, report=display.update, engine=common.engine, address=common.address
        )
    console.print(sweep_summary(jobs, state), soft_wrap=True)
    if state.failed:
        raise SystemExit(1)
