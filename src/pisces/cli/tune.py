"""`pisces tune`: searches for settings on validation data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from pisces.cli.terminal import console, errors, parse_settings

tune = tyro.extras.SubcommandApp()


@dataclass(frozen=True)
class Search:
    """How to search, and where the studies are kept."""

    trials: int = 30
    """number of trials in all; a larger number later goes on with the same study."""
    set: tuple[str, ...] = ()
    """settings of all trials as name=value."""
    search: tuple[str, ...] = ()
    """what to search instead of the method's usual space: name=low:high, name=low:high:log or name=a,b,c."""
    sampler: str = "tpe"
    """tpe, random, or grid (choices only)."""
    pruner: str = "median"
    """median, halving or none: when to give up on a trial early."""
    workers: int = 1
    """worker processes, one thread each."""
    out: Path = Path("tuning")
    """root of the studies."""

    def run(self, experiment: str, method: str, preset: str, seeds: str, options: Mapping[str, Any]) -> None:
        """Searches, or goes on with a search, and prints what was found."""
        from pisces.experiments.lists import parse_seeds
        from pisces.experiments.search_space import parse_space
        from pisces.experiments.tunable import TuningConfig, tunable
        from pisces.experiments.tuning_workers import tune as run_study
        from pisces.reports.tuning import TuningDisplay, best_command, tuning_table

        chosen = tunable(experiment)
        space = parse_space(self.search, chosen.settings) if self.search else chosen.space(method)
        changes = parse_settings(self.set)
        config = TuningConfig(
            experiment, method, preset, tuple(parse_seeds(seeds)), space, changes, options, self.sampler, self.pruner
        )
        with TuningDisplay(config, self.trials, console) as display:
            study = run_study(config, self.out, self.trials, self.workers, display.update)
        state = study.state()
        console.print(tuning_table(config, state))
        console.print(f"study: {study.folder.path}", soft_wrap=True)
        if state.best is None:
            errors.print("pisces: no trial has a score yet; tuning.json says what became of each", markup=False)
            raise SystemExit(1)
        console.print(f"best settings: {best_command(config, state.best)}", soft_wrap=True, markup=False)


Options = Annotated[Search, tyro.conf.arg(name="")]
SEARCH, LONG_SEARCH, GRID_SEARCH = Search(), Search(trials=50), Search(trials=9, sampler="grid")


@tune.command(name="jumping")
def tune_jumping(
    method: str = "randconv+pse",
    grid: str = "wide",
    preset: str = "paper",
    seeds: str = "1000-1001",
    colors: bool = False,
    epsilon: float = 0.0,
    training_tasks: int = 18,
    search: Options = LONG_SEARCH,
) -> None:
    """Search for settings that solve the most validation tasks; the test tasks are not looked at.

    The same command goes on with a study that was stopped, and several commands at once share the work.

    Args:
        method: see `pisces train jumping --help`.
        grid: wide, narrow or random; on the random grid every seed has its own tasks.
        preset: paper (in full, 2000 epochs for the paper's methods), quick (minutes) or smoke (seconds).
        seeds: every trial trains all of them and is scored by the mean; keep them apart from the seeds you report.
        colors: red and green obstacles.
        epsilon: suboptimality of the metric's policies.
        training_tasks: number of training tasks.
        search: what all searches have in common.
    """
    options: dict[str, Any] = {"grid": grid, "colors": colors, "training_tasks": training_tasks}
    options |= {"epsilon": epsilon} if epsilon else {}
    search.run("jumping", method, preset, seeds, options)


@tune.command(name="lqr")
def tune_lqr(
    method: str = "psm",
    distractors: int = 500,
    preset: str = "paper",
    seeds: str = "1000-1009",
    environments: int = 2,
    search: Options = SEARCH,
) -> None:
    """Search for settings with the lowest error in validation environments; a trial may be given up every five seeds.

    The same command goes on with a study that was stopped, and several commands at once share the work.

    Args:
        method: overparametrized, ipo, l1 or psm.
        distractors: number of distractors, at least 20.
        preset: paper or smoke (seconds).
        seeds: every trial trains all of them and is scored by the mean; keep them apart from the seeds you report.
        environments: number of training environments.
        search: what all searches have in common.
    """
    options = {"distractors": distractors, "environments": environments}
    search.run("lqr", method, preset, seeds, options)


@tune.command(name="distracting")
def tune_distracting(
    task: str = "cartpole-swingup",
    method: str = "drq+pse",
    init: str = "random",
    preset: str = "paper",
    variant: str = "paper",
    davis: str = "",
    seeds: str = "1000",
    search: Options = GRID_SEARCH,
) -> None:
    """Search for settings with the highest return in front of validation videos, which neither train nor test.

    The trials of a seed share one pretraining run. The same command goes on with a study that was stopped.

    Args:
        task: domain and task of dm_control's suite, e.g. walker-walk.
        method: drq+pse (the paper's grid of 9) or drq.
        init: random or pretrained.
        preset: paper (a GPU), cpu (an hour per seed and trial) or smoke (seconds).
        variant: paper, plain, dcs-easy, dcs-medium or dcs-hard.
        davis: a DAVIS 2017 folder; without it built-in clips are used.
        seeds: every trial trains all of them and is scored by the mean.
        search: what all searches have in common.
    """
    options = {"task": task, "init": init, "variant": variant, "davis": davis}
    search.run("distracting", method, preset, seeds, options)


@tune.command(name="grid")
def tune_grid(
    method: str = "ppo+pse",
    preset: str = "standard",
    seeds: str = "1000-1003",
    search: Options = SEARCH,
) -> None:
    """Search for settings of PPO and its similarity loss that solve the most validation levels of the grid.

    The same command goes on with a study that was stopped, and several commands at once share the work.

    Args:
        method: ppo, or ppo+pse with policy similarity embeddings.
        preset: standard (about ten seconds of one core per seed) or smoke.
        seeds: every trial trains all of them and is scored by the mean; keep them apart from the seeds you report.
        search: what all searches have in common.
    """
    search.run("grid", method, preset, seeds, {})
