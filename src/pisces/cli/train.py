"""`pisces train`: one run of an experiment."""

from __future__ import annotations

from pathlib import Path

import tyro

from pisces.cli.terminal import console, parse_settings

train = tyro.extras.SubcommandApp()


@train.command(name="jumping")
def train_jumping(
    method: str = "randconv+pse",
    grid: str = "wide",
    seed: int = 0,
    preset: str = "paper",
    epsilon: float = 0.0,
    colors: bool = False,
    unweighted: bool = False,
    training_tasks: int = 18,
    set: tuple[str, ...] = (),
    threads: int = 1,
    device: str = "cpu",
    tensorboard: bool = False,
    out: Path = Path("runs"),
) -> None:
    """Train one agent on the jumping task; the same command goes on with a run that was stopped.

    Args:
        method: dropout+l2, pse, randconv, randconv+pse, randconv+bisimulation, randconv+psm-l2,
            randconv+bisimulation-cme, randconv+psm-cme, randconv+true, or our own recipes, pisces and, without
            augmentation, pisces-plain and pisces-plain-5.
        grid: wide, narrow or random.
        seed: seed of the weights, of all draws and of the random grid.
        preset: paper (in full, 2000 epochs for the paper's methods), quick (minutes) or smoke (seconds).
        epsilon: suboptimality of the metric's policies, 0 to 0.5.
        colors: red and green obstacles.
        unweighted: the contrastive loss without Eq. 4's weights.
        training_tasks: number of training tasks.
        set: other settings as name=value, e.g. learning_rate=0.001 epochs=500.
        threads: threads of the computation.
        device: cpu or cuda.
        tensorboard: also write TensorBoard events into the run folder.
        out: root of the run folders.
    """
    from pisces.experiments.jumping import EXPERIMENT, make_config

    changes = parse_settings(set) | ({"weighted": False} if unweighted else {})
    config = make_config(method, grid, seed, preset, colors, epsilon, training_tasks, threads, changes)  # type: ignore[arg-type]
    from pisces.experiments.jumping_run import run
    from pisces.experiments.store import RunFolder
    from pisces.reports.console import RunDisplay, solved_text
    from pisces.reports.events import EventLog

    events = EventLog(RunFolder.open(out, EXPERIMENT, method, config).path if tensorboard else None)
    with RunDisplay([f"{method}, {grid}, seed {seed}"], console) as display, events:
        folder = run(config, out, device, [lambda progress: display.update(0, progress), events.update])
    console.print(f"{solved_text(folder.read_json('result.json'))}; run folder: {folder.path}", soft_wrap=True)


@train.command(name="distracting")
def train_distracting(
    task: str = "cartpole-swingup",
    method: str = "drq+pse",
    init: str = "random",
    stage: str = "all",
    seed: int = 0,
    preset: str = "paper",
    variant: str = "paper",
    davis: str = "",
    set: tuple[str, ...] = (),
    threads: int = 1,
    device: str = "cpu",
    out: Path = Path("runs"),
) -> None:
    """Train SAC + DrQ in front of distracting videos; the same command goes on with a run that was stopped.

    Args:
        task: domain and task of dm_control's suite, e.g. walker-walk.
        method: drq, or drq+pse with policy similarity embeddings.
        init: random, or pretrained for the policy of the seed's pretraining run.
        stage: all, or only pretrain (which is `drq` from random weights), pairs or train.
        seed: seed of the weights, of the episodes and of all draws.
        preset: paper (500,000 steps, a GPU), cpu (half an hour to an hour) or smoke (seconds).
        variant: paper, plain (no distraction), dcs-easy, dcs-medium or dcs-hard.
        davis: a DAVIS 2017 folder; without it built-in clips are used.
        set: other settings as name=value, e.g. temperature=0.01 steps=100000.
        threads: threads of the computation.
        device: cpu or cuda.
        out: root of the run folders.
    """
    from pisces.experiments.distracting import make_config

    config = make_config(method, task, seed, preset, init, variant, davis, threads, parse_settings(set))  # type: ignore[arg-type]
    from pisces.experiments.distracting_run import run
    from pisces.reports.console import RunDisplay, evaluation_text

    with RunDisplay([f"{task}, {method}, {init}, seed {seed}"], console) as display:
        folder = run(config, out, device, [lambda progress: display.update(0, progress)], stage)  # type: ignore[arg-type]
    console.print(f"{evaluation_text(folder.read_json('result.json'))}; run folder: {folder.path}", soft_wrap=True)


@train.command(name="lqr")
def train_lqr(
    method: str = "psm",
    distractors: int = 500,
    seed: int = 0,
    preset: str = "paper",
    environments: int = 2,
    set: tuple[str, ...] = (),
    threads: int = 1,
    out: Path = Path("runs"),
) -> None:
    """Train one linear agent on linear-quadratic control with distractors.

    Args:
        method: overparametrized, ipo, l1 or psm.
        distractors: number of distractors, at least 20.
        seed: seed of the system, its environments and the initial weights.
        preset: paper or smoke (seconds).
        environments: number of training environments.
        set: other settings as name=value, e.g. aggregation=1e5 optimizer=momentum.
        threads: threads of the computation.
        out: root of the run folders.
    """
    from pisces.experiments.lqr import make_config

    config = make_config(method, distractors, (seed,), preset, environments, parse_settings(set))
    from pisces.reports.lqr import train_with_display

    console.print(train_with_display(config, out, threads, console), soft_wrap=True)


@train.command(name="grid")
def train_grid(
    method: str = "ppo+pse",
    seed: int = 0,
    preset: str = "standard",
    set: tuple[str, ...] = (),
    out: Path = Path("runs"),
) -> None:
    """Train PPO of Stable-Baselines3 on a few levels of a grid and evaluate it on unseen ones.

    Args:
        method: ppo, or ppo+pse with policy similarity embeddings.
        seed: seed of the training levels, of the weights and of all draws.
        preset: standard (about ten seconds of one core) or smoke.
        set: other settings as name=value, e.g. training_levels=4 similarity_rate=0.001.
        out: root of the run folders.
    """
    from pisces.experiments.grid_transfer import make_config

    config = make_config(method, seed, preset, parse_settings(set))
    from pisces.experiments.grid_transfer_run import run
    from pisces.reports.console import RunDisplay, evaluation_text

    with RunDisplay([f"{method}, seed {seed}"], console) as display:
        folder = run(config, out, [lambda progress: display.update(0, progress)])
    console.print(f"{evaluation_text(folder.read_json('result.json'))}; run folder: {folder.path}", soft_wrap=True)
