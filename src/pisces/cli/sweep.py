"""`pisces sweep`: many runs of an experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from pisces.cli.terminal import console, parse_settings
from pisces.errors import UserError

sweep = tyro.extras.SubcommandApp()


@dataclass(frozen=True)
class Runner:
    """By what the runs are done, and where they are kept."""

    workers: int = 2
    """worker processes, one thread each unless told otherwise; with ray, runs at a time."""
    engine: str = "local"
    """local, or ray for a cluster (needs the extra `ray`)."""
    address: str | None = None
    """of a Ray cluster; without it one is started on this machine."""
    list: bool = False
    """print one command per run instead of running them, for job arrays."""
    out: Path = Path("runs")
    """root of the run folders; what is finished there is not run again."""

    def run(self, jobs: Sequence[Any]) -> None:
        """Does the runs, or prints their commands."""
        from pisces.experiments.engines import run_sweep
        from pisces.reports.sweeps import SweepDisplay, sweep_summary

        if not jobs:
            raise UserError("expected at least one run, got an empty list of something to combine")
        if self.list:
            for job in jobs:
                print(job.experiment.command_line(job.config, self.out))
            return
        with SweepDisplay(jobs, console) as display:
            state = run_sweep(self.engine, jobs, self.out, self.workers, display.update, self.address)
        console.print(sweep_summary(jobs, state), soft_wrap=True)
        if state.failed:
            raise SystemExit(1)


Options = Annotated[Runner, tyro.conf.arg(name="")]
RUNNER = Runner()
STUDY_RUNNER = Runner(out=Path("results"))


@sweep.command(name="jumping")
def sweep_jumping(
    methods: str = "randconv,randconv+pse",
    grids: str = "wide",
    seeds: str = "0-4",
    preset: str = "paper",
    epsilons: tuple[float, ...] = (0.0,),
    colors: bool = False,
    unweighted: bool = False,
    training_tasks: tuple[int, ...] = (18,),
    set: tuple[str, ...] = (),
    runner: Options = RUNNER,
) -> None:
    """Train all combinations of methods, grids and seeds on the jumping task.

    Args:
        methods: names separated by commas; see `pisces train jumping --help`.
        grids: wide, narrow, random, separated by commas.
        seeds: e.g. 0-99 or 0,3,5-7.
        preset: paper (in full, 2000 epochs for the paper's methods), quick (minutes) or smoke (seconds).
        epsilons: suboptimalities of the metric's policies.
        colors: red and green obstacles.
        unweighted: the contrastive loss without Eq. 4's weights.
        training_tasks: numbers of training tasks.
        set: other settings as name=value, e.g. learning_rate=0.001 epochs=500.
        runner: what all sweeps have in common.
    """
    from pisces.experiments.lists import parse_names, parse_seeds
    from pisces.experiments.sweeps import jumping_jobs

    changes = parse_settings(set) | ({"weighted": False} if unweighted else {})
    jobs = jumping_jobs(
        parse_names(methods), parse_names(grids), parse_seeds(seeds), preset, colors, epsilons, training_tasks, changes
    )
    runner.run(jobs)


@sweep.command(name="jumping-study")
def sweep_jumping_study(
    parts: str = "main,recipe,table1,table2,colors,epsilon,coin,tasks,loss",
    runner: Options = STUDY_RUNNER,
) -> None:
    """Train everything behind the tables and figures of the jumping task; hours, part after part.

    Args:
        parts: main (20 seeds of randconv and randconv+pse), recipe (our own, and without its ingredients), table1,
            table2, colors, epsilon, coin (RandConv's coin once per run, as published), tasks (fewer training tasks),
            loss (weights, direction, discount), separated by commas.
        runner: what all sweeps have in common.
    """
    from pisces.experiments.jumping_study import study_jobs
    from pisces.experiments.lists import parse_names

    runner.run(study_jobs(parse_names(parts)))


@sweep.command(name="lqr")
def sweep_lqr(
    methods: str = "overparametrized,ipo,l1,psm",
    distractors: tuple[int, ...] = (500, 1000, 10_000),
    seeds: str = "0-99",
    preset: str = "paper",
    workers: int = 2,
    out: Path = Path("runs"),
) -> None:
    """Train all combinations of methods and numbers of distractors; the seeds of each are trained together.

    Args:
        methods: overparametrized, ipo, l1, psm, separated by commas.
        distractors: numbers of distractors.
        seeds: e.g. 0-99 or 0,3,5-7.
        preset: paper or smoke (seconds).
        workers: worker processes, one thread each.
        out: root of the run folders.
    """
    from pisces.experiments.lists import parse_names
    from pisces.experiments.lqr_run import reproduce

    reproduce(tuple(parse_names(methods)), distractors, seeds, preset, workers, out)


@sweep.command(name="distracting")
def sweep_distracting(
    tasks: str = "cartpole-swingup",
    methods: str = "drq,drq+pse",
    inits: str = "random",
    seeds: str = "0-4",
    preset: str = "paper",
    variant: str = "paper",
    davis: str = "",
    set: tuple[str, ...] = (),
    threads: int = 1,
    runner: Options = RUNNER,
) -> None:
    """Train all combinations of tasks, methods, initialisations and seeds in front of distracting videos.

    The runs of a task and seed share its pretraining run, which is `drq` from random weights.

    Args:
        tasks: of dm_control's suite, separated by commas, e.g. cartpole-swingup,walker-walk.
        methods: drq, drq+pse, separated by commas.
        inits: random, pretrained, separated by commas.
        seeds: e.g. 0-4 or 0,3,5-7.
        preset: paper (500,000 steps, a GPU), cpu (half an hour to an hour per run) or smoke (seconds).
        variant: paper, plain (no distraction), dcs-easy, dcs-medium or dcs-hard.
        davis: a DAVIS 2017 folder; without it built-in clips are used.
        set: other settings as name=value, e.g. temperature=0.01 steps=100000.
        threads: threads of each run.
        runner: what all sweeps have in common.
    """
    from pisces.experiments.lists import parse_names, parse_seeds
    from pisces.experiments.sweeps import distracting_jobs

    jobs = distracting_jobs(
        parse_names(tasks),
        parse_names(methods),
        parse_names(inits),
        parse_seeds(seeds),
        preset,
        variant,
        davis,
        threads,
        parse_settings(set),
    )
    runner.run(jobs)


@sweep.command(name="grid")
def sweep_grid(
    methods: str = "ppo,ppo+pse",
    seeds: str = "0-9",
    preset: str = "standard",
    set: tuple[str, ...] = (),
    runner: Options = RUNNER,
) -> None:
    """Train PPO with and without policy similarity embeddings on levels of a grid.

    Args:
        methods: ppo, ppo+pse, separated by commas.
        seeds: e.g. 0-9 or 0,3,5-7.
        preset: standard (about ten seconds of one core per run) or smoke.
        set: other settings as name=value, e.g. training_levels=4.
        runner: what all sweeps have in common.
    """
    from pisces.experiments.lists import parse_names, parse_seeds
    from pisces.experiments.sweeps import grid_jobs

    jobs = grid_jobs(parse_names(methods), parse_seeds(seeds), preset, parse_settings(set))
    runner.run(jobs)
