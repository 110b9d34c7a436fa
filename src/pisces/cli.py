"""The command `pisces`: parses arguments and hands over; slow imports wait for the command that needs them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

import pisces
from pisces.errors import UserError

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False, soft_wrap=True)

app = tyro.extras.SubcommandApp()
train = tyro.extras.SubcommandApp()
app.command(train, name="train", help="Run one experiment.")


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
    cost: str = "auto",
    last: str = "self-loop",
    out: Path = Path("metric"),
) -> None:
    """Measure the distances between the states of two trajectories.

    Args:
        x: a trajectory (npz, written by Trajectory.save).
        y: another.
        discount: discount of the metric, in [0, 1).
        cost: total-variation, l1, reward (pi-bisimulation), or auto for the policy similarity metric.
        last: self-loop or stop, what follows the last pair of states.
        out: folder for distance.npz, nearest.csv and heat_map.png.
    """
    from pisces.reports.metric import compare_trajectories
    from pisces.trajectories import Trajectory

    report = compare_trajectories(Trajectory.load(x), Trajectory.load(y), discount, cost, last)  # type: ignore[arg-type]
    paths = report.write(out, x.stem, y.stem)
    table = Table("state of x", "nearest of y", "distance", title=f"{report.cost}, discount {discount}")
    for i in range(min(len(report.nearest), 10)):
        table.add_row(str(i), str(report.nearest[i]), f"{report.distance[i, report.nearest[i]]:.6g}")
    console.print(table)
    console.print(
        f"{report.distance.shape[0]} x {report.distance.shape[1]} distances: {', '.join(map(str, paths))}",
        soft_wrap=True,
    )


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
    except KeyboardInterrupt:
        errors.print("pisces: stopped; the same command goes on from here")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
