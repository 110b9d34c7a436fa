"""The command `pisces`: parses arguments and hands over; slow imports wait for the command that needs them."""

from __future__ import annotations

import ast
import errno
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

import pisces
from pisces.errors import UserError

DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO)
console = Console(highlight=False)
errors = Console(stderr=True, highlight=False, soft_wrap=True)

app = tyro.extras.SubcommandApp()
train = tyro.extras.SubcommandApp()
app.command(train, name="train", help="Run one experiment.")
sweep = tyro.extras.SubcommandApp()
app.command(sweep, name="sweep", help="Run many experiments; the same command again does what is missing.")


@app.command
def demo(out: Path = Path("demo"), seed: int = 0, preset: str = "quick") -> None:
    """Train an agent without and with policy similarity embeddings and write a page that compares them.

    Args:
        out: folder of the runs and of report.html.
        seed: seed of both agents.
        preset: quick (minutes) or smoke (seconds).
    """
    from pisces.experiments.demo import demo_configs, run_demo
    from pisces.reports.console import RunDisplay
    from pisces.reports.demo import NAMES, write_demo_page

    demo_configs(seed, preset)
    with RunDisplay(list(NAMES), console) as display:
        folders = run_demo(out / "runs", seed, preset, display.update)
    write_demo_page(folders, out / "report.html")
    console.print(f"report: {out / 'report.html'}", soft_wrap=True)


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
            randconv+bisimulation-cme, randconv+psm-cme or randconv+true.
        grid: wide, narrow or random.
        seed: seed of the weights, of all draws and of the random grid.
        preset: paper (2000 epochs), quick (minutes) or smoke (seconds).
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

    changes = _parse_settings(set) | ({"weighted": False} if unweighted else {})
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
    threads: int = 2,
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
        preset: paper (500,000 steps, a GPU), cpu (two cores, an hour or two) or smoke (seconds).
        variant: paper, plain (no distraction), dcs-easy, dcs-medium or dcs-hard.
        davis: a DAVIS 2017 folder; without it built-in clips are used.
        set: other settings as name=value, e.g. temperature=0.01 steps=100000.
        threads: threads of the computation.
        device: cpu or cuda.
        out: root of the run folders.
    """
    from pisces.experiments.distracting import make_config

    config = make_config(method, task, seed, preset, init, variant, davis, threads, _parse_settings(set))  # type: ignore[arg-type]
    from pisces.experiments.distracting_run import run
    from pisces.reports.console import RunDisplay, evaluation_text

    with RunDisplay([f"{task}, {method}, {init}, seed {seed}"], console) as display:
        folder = run(config, out, device, [lambda progress: display.update(0, progress)], stage)  # type: ignore[arg-type]
    console.print(f"{evaluation_text(folder.read_json('result.json'))}; run folder: {folder.path}", soft_wrap=True)


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
    workers: int = 2,
    engine: str = "local",
    address: str | None = None,
    list: bool = False,
    out: Path = Path("runs"),
) -> None:
    """Train all combinations of methods, grids and seeds on the jumping task.

    Args:
        methods: names separated by commas; see `pisces train jumping --help`.
        grids: wide, narrow, random, separated by commas.
        seeds: e.g. 0-99 or 0,3,5-7.
        preset: paper (2000 epochs), quick (minutes) or smoke (seconds).
        epsilons: suboptimalities of the metric's policies.
        colors: red and green obstacles.
        unweighted: the contrastive loss without Eq. 4's weights.
        training_tasks: numbers of training tasks.
        set: other settings as name=value, e.g. learning_rate=0.001 epochs=500.
        workers: worker processes, one thread each; with ray, runs at a time.
        engine: local, or ray for a cluster (needs the extra `ray`).
        address: of a Ray cluster; without it one is started on this machine.
        list: print one command per run instead of running them, for job arrays.
        out: root of the run folders.
    """
    from pisces.experiments.lists import parse_names, parse_seeds
    from pisces.experiments.sweeps import jumping_jobs

    changes = _parse_settings(set) | ({"weighted": False} if unweighted else {})
    jobs = jumping_jobs(
        parse_names(methods), parse_names(grids), parse_seeds(seeds), preset, colors, epsilons, training_tasks, changes
    )
    _sweep(jobs, out, workers, engine, address, list)


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


def _sweep(jobs: Sequence[Any], out: Path, workers: int, engine: str, address: str | None, only_list: bool) -> None:
    from pisces.experiments.engines import run_sweep
    from pisces.reports.sweeps import SweepDisplay, sweep_summary

    if only_list:
        for job in jobs:
            print(job.experiment.command_line(job.config, out))
        return
    with SweepDisplay(jobs, console) as display:
        state = run_sweep(engine, jobs, out, workers, display.update, address)
    console.print(sweep_summary(jobs, state), soft_wrap=True)
    if state.failed:
        raise SystemExit(1)


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

    config = make_config(method, distractors, (seed,), preset, environments, _parse_settings(set))
    from pisces.reports.lqr import train_with_display

    console.print(train_with_display(config, out, threads, console), soft_wrap=True)


@app.command
def metric(
    x: Annotated[Path, tyro.conf.Positional],
    y: Annotated[Path, tyro.conf.Positional],
    discount: float = 0.99,
    metric: str = "psm",
    cost: str = "auto",
    last: str = "self-loop",
    tolerance: float = 1e-6,
    out: Path = Path("metric"),
) -> None:
    """Measure the distances between the states of two trajectories, or of two finite MDPs.

    Args:
        x: a trajectory (npz, written by Trajectory.save) or an MDP (npz, written by FiniteMDP.save).
        y: another; for an MDP, the same file again gives the distances within it.
        discount: discount of the metric, in [0, 1).
        metric: for MDPs: psm, pi-bisimulation, bisimulation or mico; policies are the optimal ones.
        cost: for trajectories: total-variation, l1, reward (pi-bisimulation), or auto for the policy similarity metric.
        last: for trajectories: self-loop or stop, what follows the last pair of states.
        tolerance: for MDPs: certified error at which to stop.
        out: folder for distance.npz, nearest.csv and heat_map.png.
    """
    from pisces.reports.metric import compare_files

    report = compare_files(x, y, discount, metric, cost, last, tolerance)  # type: ignore[arg-type]
    paths = report.write(out, x.stem, y.stem)
    table = Table("state of x", "nearest of y", "distance", title=f"{report.name}, discount {discount}")
    for i in range(min(len(report.nearest), 10)):
        table.add_row(str(i), str(report.nearest[i]), f"{report.distance[i, report.nearest[i]]:.6g}")
    console.print(table)
    size = f"{report.distance.shape[0]} x {report.distance.shape[1]} distances"
    bound = f", exact to {report.error_bound:.1e}" if report.error_bound else ""
    console.print(f"{size}{bound}: {', '.join(map(str, paths))}", soft_wrap=True)


@app.command
def report(
    runs: Annotated[tuple[Path, ...], tyro.conf.Positional] = (),
    out: Path = Path("report"),
    projection: str = "umap",
    mixed_versions: bool = False,
) -> None:
    """Write tables beside the paper's, figures, and a page to explore the runs with.

    Args:
        runs: folders with run folders anywhere below them.
        out: folder of report.html, tables/ and figures/.
        projection: umap or pca for the embeddings of runs with checkpoints, none to leave them out.
        mixed_versions: accept runs of several versions of pisces in one report.
    """
    from pisces.reports.report import write_report

    written = write_report(runs, out, projection, mixed_versions)
    for note in written.notes:
        errors.print(f"pisces: {note}", markup=False)
    console.print(f"report: {written.page}, and {len(written.files)} tables and figures beside it", soft_wrap=True)


@app.command
def doctor() -> None:
    """Say what works on this machine and how to mend the rest."""
    from pisces.reports.doctor import examine

    findings = examine()
    table = Table("", "what", "detail", box=None)
    for finding in findings:
        table.add_row(finding.state, finding.name, finding.detail)
    console.print(table)
    if any(finding.state == "broken" for finding in findings):
        raise SystemExit(1)


def _parse_settings(items: Sequence[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals:
            raise UserError(f"expected settings as name=value, got {item!r}")
        try:
            settings[name.replace("-", "_")] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            settings[name.replace("-", "_")] = value
    return settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments in (["--version"], ["-V"]):
        console.print(f"pisces {pisces.__version__}")
        return 0
    try:
        app.cli(prog="pisces", description="Behavioural similarity for reinforcement learning.", args=arguments)
    except UserError as error:
        errors.print(f"pisces: {error}", markup=False)
        return 2
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        errors.print(
            f"pisces: expected a disk that can be written to, got: {error}; results so far are safe", markup=False
        )
        return 2
    except KeyboardInterrupt:
        errors.print("pisces: stopped; the same command goes on from here")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
