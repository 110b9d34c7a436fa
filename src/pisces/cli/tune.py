"""`pisces tune`: searches for settings on validation data."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pisces.cli.lists import parse_seeds
from pisces.cli.options import Option, given_options, given_settings, make_options, option, plain_options
from pisces.cli.terminal import console, errors, note_compilation
from pisces.experiments.experiment import Experiment


@dataclass(frozen=True)
class TuneOptions:
    """How to search, and where the studies are stored."""

    trials: int = 30
    """Number of trials in all; a larger number later continues the same study."""
    search: tuple[str, ...] = ()
    """What to search instead of the method's usual space: name=low:high, name=low:high:log or name=a,b,c."""
    sampler: str = "tpe"
    """Sampler: tpe, random, or grid (choices only)."""
    pruner: str = "median"
    """Pruner: median, halving or none."""
    workers: int = 1
    """Number of worker processes."""
    out: Path = Path("tuning")
    """Root of the studies."""


def tune_options(experiment: Experiment[Any]) -> type:
    """Returns the options of ``pisces tune EXPERIMENT``."""
    kind = experiment.config_class
    seeds = "Seeds of every trial, which is scored by their mean; use others than the seeds that you report."
    own: list[Option] = [
        option(kind, "method", kind.methods[0], text=f"{', '.join(kind.methods)}."),
        option(kind, "preset", kind.presets[0], text=f"{', '.join(kind.presets)}."),
        option(kind, "seeds", "1000", hint=str, text=seeds),
    ]
    own += [option(kind, entry.name, entry.default) for entry in plain_options(experiment)]
    return make_options("tune", experiment, own, TuneOptions)


def tune(experiment: Experiment[Any], options: Any) -> None:
    """Searches, or resumes a search, and prints the best settings."""
    from pisces.cli.displays import TuningDisplay, tuning_table
    from pisces.runs.search_space import parse_space
    from pisces.runs.tuning import tune as run_study
    from pisces.runs.tuning_config import TuningConfig

    common, seeds = options.common, tuple(parse_seeds(options.seeds))
    fixed = {**experiment.tuning_changes, **given_settings(options)}
    chosen = given_options(options, experiment)
    standard = experiment.make_config(options.method, preset=options.preset, seed=seeds[0], **chosen)
    values = {name: value for group in standard.groups.values() for name, value in vars(group).items()}
    space = parse_space(common.search, values) if common.search else experiment.search_space(options.method)
    config = TuningConfig(
        experiment, options.method, options.preset, seeds, space, fixed, chosen, common.sampler, common.pruner
    )
    note_compilation()
    with TuningDisplay(config, common.trials, console) as display:
        study = run_study(config, common.out, common.trials, common.workers, display.update)
    state = study.state()
    console.print(tuning_table(config, state))
    console.print(f"study: {study.folder.path}", soft_wrap=True)
    if state.best is None:
        errors.print("pisces: no trial has a score yet; tuning.json lists their errors")
        raise SystemExit(1)
    unused = next(seed for seed in itertools.count() if seed not in seeds)  # a result has a seed that chose nothing
    best = replace(standard, seed=unused).override({**given_settings(options), **state.best.settings})
    console.print(f"best settings: {best.command()}", soft_wrap=True)
