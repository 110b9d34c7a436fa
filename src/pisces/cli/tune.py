"""`pisces tune`: searches for settings on validation data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tyro

from pisces.cli.terminal import console, errors, parse_settings

tune = tyro.extras.SubcommandApp()


@tune.command(name="jumping")
def tune_jumping(
    method: str = "randconv+pse",
    grid: str = "wide",
    preset: str = "paper",
    seeds: str = "1000-1001",
    trials: int = 50,
    colors: bool = False,
    epsilon: float = 0.0,
    training_tasks: int = 18,
    set: tuple[str, ...] = (),
    search: tuple[str, ...] = (),
    sampler: str = "tpe",
    pruner: str = "median",
    workers: int = 1,
    out: Path = Path("tuning"),
) -> None:
    """Search for settings that solve the most validation tasks; the test tasks are not looked at.

    The same command goes on with a study that was stopped, and several commands at once share the work.

    Args:
        method: see `pisces train jumping --help`.
        grid: wide, narrow or random; on the random grid every seed has its own tasks.
        preset: paper (in full, 2000 epochs for the paper's methods), quick (minutes) or smoke (seconds).
        seeds: every trial trains all of them and is scored by the mean; keep them apart from the seeds you report.
        trials: number of trials in all; a larger number later goes on with the same study.
        colors: red and green obstacles.
        epsilon: suboptimality of the metric's policies.
        training_tasks: number of training tasks.
        set: settings of all trials as name=value.
        search: what to search instead of the method's usual space: name=low:high, name=low:high:log or name=a,b,c.
        sampler: tpe, random, or grid (choices only).
        pruner: median, halving or none: when to give up on a trial early.
        workers: worker processes, one thread each.
        out: root of the studies.
    """
    options: dict[str, Any] = {"grid": grid, "colors": colors, "training_tasks": training_tasks}
    options |= {"epsilon": epsilon} if epsilon else {}
    _tune("jumping", method, preset, seeds, options, set, search, sampler, pruner, trials, workers, out)


@tune.command(name="lqr")
def tune_lqr(
    method: str = "psm",
    distractors: int = 500,
    preset: str = "paper",
    seeds: str = "1000-1009",
    trials: int = 30,
    environments: int = 2,
    set: tuple[str, ...] = (),
    search: tuple[str, ...] = (),
    sampler: str = "tpe",
    pruner: str = "median",
    workers: int = 1,
    out: Path = Path("tuning"),
) -> None:
    """Search for settings with the lowest error in validation environments.

    The same command goes on with a study that was stopped, and several commands at once share the work.

    Args:
        method: overparametrized, ipo, l1 or psm.
        distractors: number of distractors, at least 20.
        preset: paper or smoke (seconds).
        seeds: every trial trains all of them and is scored by the mean; keep them apart from the seeds you report.
        trials: number of trials in all; a larger number later goes on with the same study.
        environments: number of training environments.
        set: settings of all trials as name=value.
        search: what to search instead of the method's usual space: name=low:high, name=low:high:log or name=a,b,c.
        sampler: tpe, random, or grid (choices only).
        pruner: median, halving or none; a trial can be given up after every five seeds.
        workers: worker processes, one thread each.
        out: root of the studies.
    """
    options = {"distractors": distractors, "environments": environments}
    _tune("lqr", method, preset, seeds, options, set, search, sampler, pruner, trials, workers, out)


@tune.command(name="distracting")
def tune_distracting(
    task: str = "cartpole-swingup",
    method: str = "drq+pse",
    init: str = "random",
    preset: str = "paper",
    variant: str = "paper",
    davis: str = "",
    seeds: str = "1000",
    trials: int = 9,
    set: tuple[str, ...] = (),
    search: tuple[str, ...] = (),
    sampler: str = "grid",
    pruner: str = "median",
    workers: int = 1,
    out: Path = Path("tuning"),
) -> None:
    """Search for settings with the highest return in front of validation videos, which neither train nor test.

    The trials of a seed share one pretraining run. The same command goes on with a study that was stopped.

    Args:
        task: domain and task of dm_control's suite, e.g. walker-walk.
        method: drq+pse (the paper's grid of 9) or drq.
        init: random or pretrained.
        preset: paper (a GPU), cpu (hours per trial) or smoke (seconds).
        variant: paper, plain, dcs-easy, dcs-medium or dcs-hard.
        davis: a DAVIS 2017 folder; without it built-in clips are used.
        seeds: every trial trains all of them and is scored by the mean.
        trials: number of trials in all; a larger number later goes on with the same study.
        set: settings of all trials as name=value.
        search: what to search instead of the method's usual space: name=low:high, name=low:high:log or name=a,b,c.
        sampler: grid (choices only), tpe or random.
        pruner: median, halving or none: when to give up on a trial early.
        workers: worker processes, one thread each.
        out: root of the studies.
    """
    options = {"task": task, "init": init, "variant": variant, "davis": davis}
    _tune("distracting", method, preset, seeds, options, set, search, sampler, pruner, trials, workers, out)


@tune.command(name="grid")
def tune_grid(
    method: str = "ppo+pse",
    preset: str = "standard",
    seeds: str = "1000-1003",
    trials: int = 30,
    set: tuple[str, ...] = (),
    search: tuple[str, ...] = (),
    sampler: str = "tpe",
    pruner: str = "median",
    workers: int = 1,
    out: Path = Path("tuning"),
) -> None:
    """Search for settings of PPO and its similarity loss that solve the most validation levels of the grid.

    The same command goes on with a study that was stopped, and several commands at once share the work.

    Args:
        method: ppo, or ppo+pse with policy similarity embeddings.
        preset: standard (about ten seconds of one core per seed) or smoke.
        seeds: every trial trains all of them and is scored by the mean; keep them apart from the seeds you report.
        trials: number of trials in all; a larger number later goes on with the same study.
        set: settings of all trials as name=value.
        search: what to search instead of the method's usual space: name=low:high, name=low:high:log or name=a,b,c.
        sampler: tpe, random, or grid (choices only).
        pruner: median, halving or none: when to give up on a trial early.
        workers: worker processes, one thread each.
        out: root of the studies.
    """
    _tune("grid", method, preset, seeds, {}, set, search, sampler, pruner, trials, workers, out)


def _tune(
    experiment: str,
    method: str,
    preset: str,
    seeds: str,
    options: Mapping[str, Any],
    fixed: tuple[str, ...],
    search: tuple[str, ...],
    sampler: str,
    pruner: str,
    trials: int,
    workers: int,
    out: Path,
) -> None:
    from pisces.experiments.lists import parse_seeds
    from pisces.experiments.search_space import parse_space
    from pisces.experiments.tunable import TuningConfig, tunable
    from pisces.experiments.tuning_workers import tune as run_study
    from pisces.reports.tuning import TuningDisplay, best_command, tuning_table

    chosen = tunable(experiment)
    space = parse_space(search, chosen.settings) if search else chosen.space(method)
    changes = parse_settings(fixed)
    config = TuningConfig(
        experiment, method, preset, tuple(parse_seeds(seeds)), space, changes, options, sampler, pruner
    )
    with TuningDisplay(config, trials, console) as display:
        study = run_study(config, out, trials, workers, display.update)
    state = study.state()
    console.print(tuning_table(config, state))
    console.print(f"study: {study.folder.path}", soft_wrap=True)
    if state.best is None:
        errors.print("pisces: no trial has a score yet; tuning.json says what became of each", markup=False)
        raise SystemExit(1)
    console.print(f"best settings: {best_command(config, state.best)}", soft_wrap=True, markup=False)
